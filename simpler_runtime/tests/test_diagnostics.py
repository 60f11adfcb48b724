"""The diagnostics files of a run."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest

from simpler_runtime import CallConfig

ARGS = "const ChipTensor &x = orch_args.tensor(0).ref();"
NOTHING = ("aiv", "")
SCALE = ("aiv", "for (uint64_t i = 0; i < count(args, 0); ++i) data<float>(args, 1)[i] = 2 * data<float>(args, 0)[i];")


def collect(lab, folder, body, kernels, tensors, scalars=(), **flags) -> None:
    config = CallConfig(output_prefix=str(folder), **flags)
    lab.run(ARGS + body, kernels, tensors, scalars, config=config)


def test_dependency_graph_names_the_reason_of_every_edge(lab, tmp_path):
    body = """
    TensorCreateInfo ci(x.shapes, 1);
    CoreTaskArgs a; a.add_inout(x); a.add_output(ci); TaskOutputTensors o = rt_submit_aiv_task(0, a);
    const ChipTensor &t = o.get_ref(0);
    CoreTaskArgs b; b.add_input(x); b.add_input(t); PTO2TaskId second = rt_submit_aiv_task(0, b).task_id();
    CoreTaskArgs c; c.set_dependencies(&second, 1); rt_submit_dummy_task(c);
    """
    collect(lab, tmp_path, body, {0: NOTHING}, [np.zeros(8, np.float32)], enable_dep_gen=True)
    graph = json.loads((tmp_path / "deps.json").read_text())
    assert [task["kernel_ids"] for task in graph["tasks"]] == [[-1, 0, -1], [-1, 0, -1], [-1, -1, -1]]
    first, second, third = (task["task_id"] for task in graph["tasks"])
    summary = [(e["pred"], e["succ"], e["arg"], e["source"], tuple(e["flags"])) for e in graph["edges"]]
    assert summary == [
        (first, second, 0, "tensormap", ("wait",)),
        (first, second, 1, "creator", ("wait", "retain")),
        (second, third, -1, "explicit", ("wait", "retain")),
    ]
    assert graph["edges"][0]["overlap"] == "covered"
    assert {arg["type"] for task in graph["tasks"] for arg in task["args"]} == {"INOUT", "OUTPUT", "INPUT"}
    assert {t["tensor_id"] for t in graph["tensors"]} == {a["tensor_id"] for t in graph["tasks"] for a in t["args"]}


def test_graph_keeps_edges_to_recycled_producers(lab, tmp_path):
    body = "for (int i = 0; i < 50; ++i) PTO2_SCOPE() { CoreTaskArgs a; a.add_inout(x); rt_submit_aiv_task(0, a); }"
    config = CallConfig(output_prefix=str(tmp_path), enable_dep_gen=True)
    lab.run(ARGS + body, {0: NOTHING}, [np.zeros(8, np.float32)], config=config, ring_task_window=4)
    assert len(json.loads((tmp_path / "deps.json").read_text())["edges"]) == 49


def test_scope_statistics_pair_up(lab, tmp_path):
    body = """
    uint32_t shape[1] = {8192};
    for (int i = 0; i < 2; ++i) PTO2_SCOPE() {
        TensorCreateInfo ci(shape, 1); CoreTaskArgs a; a.add_output(ci); rt_submit_aiv_task(0, a);
    }
    """
    collect(lab, tmp_path, body, {0: NOTHING}, [np.zeros(8, np.float32)], enable_scope_stats=True)
    head, *lines = map(json.loads, (tmp_path / "scope_stats" / "scope_stats.jsonl").read_text().splitlines())
    assert (head["version"], head["fatal"], head["total"]) == (6, False, 6)
    assert [(line["phase"], line["depth"], line["ring"]) for line in lines] == [
        ("begin", 0, 0), ("begin", 1, 1), ("end", 1, 1), ("begin", 1, 1), ("end", 1, 1), ("end", 0, 0),
    ]  # fmt: skip
    begin, end = lines[1], lines[2]
    assert end["task_window_end"] - begin["task_window_end"] == 1
    assert end["heap_end"] - begin["heap_end"] == 32768
    assert begin["site"].split(":")[0].endswith(".cpp")


def test_scope_statistics_are_kept_when_the_run_fails(lab, tmp_path):
    with pytest.raises(RuntimeError, match="code -9"):
        collect(lab, tmp_path, 'rt_report_fatal(9, "stop");', {}, [np.zeros(8, np.float32)], enable_scope_stats=True)
    head = json.loads((tmp_path / "scope_stats" / "scope_stats.jsonl").read_text().splitlines()[0])
    assert head["fatal"] is True


@pytest.mark.parametrize("level", [1, 2, 3, 4])
def test_swimlane_levels(lab, tmp_path, level):
    body = """CoreTaskArgs a; a.add_inout(x); a.launch_spec.set_block_num(3); MixedKernels m = {1, 0, 0};
    rt_submit_task(m, a); rt_submit_aiv_task(0, a);"""
    kernels = {0: NOTHING, 1: ("aic", "")}
    collect(lab, tmp_path, body, kernels, [np.zeros(8, np.float32)], enable_chip_swimlane=level)
    records = json.loads((tmp_path / "chip_swimlane_records.json").read_text())
    assert records["chip_swimlane_level"] == level
    assert len(records["aicore_tasks"]) == 3 * 3 + 3
    kinds = records["metadata"]["core_types"]
    assert len(kinds) == records["metadata"]["num_cores"]
    assert sum(kinds[record[0]] == "aic" for record in records["aicore_tasks"]) == 3
    assert all(start <= end for _, _, _, start, end in records["aicore_tasks"])
    assert ("aicpu_tasks" in records) == (level >= 2)
    assert ("aicpu_scheduler_phases" in records) == (level >= 3)
    assert ("aicpu_orchestrator_phases" in records) == (level >= 4)
    if level >= 2:
        keys = [(record[0], record[2]) for record in records["aicore_tasks"]]
        assert len(set(keys)) == len(keys)
        assert keys == [(record[0], record[1]) for record in records["aicpu_tasks"]]
    if level >= 4:
        assert len(records["aicpu_orchestrator_phases"][0]) == 2


def test_full_args_dump_shows_values_before_and_after(lab, tmp_path):
    body = """
    const ChipTensor &y = orch_args.tensor(1).ref();
    CoreTaskArgs a; a.add_input(x); a.add_output(y); a.add_scalar(2.5f, int32_t(-1)); rt_submit_aiv_task(0, a);
    """
    base = np.arange(12, dtype=np.float32).reshape(3, 4)
    x, y = base[:, :2], np.zeros(6, np.float32)
    copy = ("aiv", "for (int i = 0; i < 6; ++i) data<float>(args, 1)[i] = i;")
    collect(lab, tmp_path, body, {0: copy}, [x, y], enable_dump_args=2)
    manifest = json.loads((tmp_path / "args_dump" / "args_dump.json").read_text())
    payload = (tmp_path / "args_dump" / "args.bin").read_bytes()
    assert (manifest["total_args"], manifest["before_dispatch"], manifest["after_completion"]) == (4, 3, 1)
    entries = {(entry["arg_index"], entry["stage"]): entry for entry in manifest["args"]}
    source = entries[0, "before_dispatch"]
    assert (source["role"], source["dtype"], source["shape"], source["strides"]) == ("input", "float32", [3, 2], [4, 1])
    got = np.frombuffer(payload[source["bin_offset"] :][: source["bin_size"]], np.float32)
    np.testing.assert_array_equal(got, x.flatten())
    result = entries[1, "after_completion"]
    got = np.frombuffer(payload[result["bin_offset"] :][: result["bin_size"]], np.float32)
    np.testing.assert_array_equal(got, np.arange(6))
    scalars = [entries[i, "before_dispatch"] for i in (2, 3)]
    assert [(s["kind"], s["dtype"]) for s in scalars] == [("scalar", "float32"), ("scalar", "int32")]
    assert scalars[1]["value"] == "0x00000000ffffffff"


def test_selective_args_dump(lab, tmp_path):
    body = """
    float scale = 2; int32_t n = 7;
    CoreTaskArgs a; a.add_inout(x); a.add_scalar(scale); a.add_scalar(n); a.add_scalar(n); a.dump(x, n);
    rt_submit_aiv_task(0, a);
    CoreTaskArgs b; b.add_inout(x); rt_submit_aiv_task(0, b);
    """
    collect(lab, tmp_path, body, {0: NOTHING}, [np.zeros(8, np.float32)], enable_dump_args=1)
    args = json.loads((tmp_path / "args_dump" / "args_dump.json").read_text())["args"]
    assert [(entry["arg_index"], entry["stage"]) for entry in args] == [
        (0, "before_dispatch"),
        (2, "before_dispatch"),
        (0, "after_completion"),
    ]
    assert args[1]["arg_index_ambiguous"] is True


def test_level_one_without_marks_writes_nothing(lab, tmp_path):
    body = "CoreTaskArgs a; a.add_inout(x); rt_submit_aiv_task(0, a);"
    collect(lab, tmp_path, body, {0: NOTHING}, [np.zeros(8, np.float32)], enable_dump_args=1)
    assert not (tmp_path / "args_dump").exists()


def test_marking_something_that_is_not_an_argument(lab, tmp_path):
    body = "float other = 1; CoreTaskArgs a; a.add_inout(x); a.dump(other); rt_submit_aiv_task(0, a);"
    with pytest.raises(RuntimeError, match=r"-5.*not an argument"):
        lab.run(ARGS + body, {0: NOTHING}, [np.zeros(8, np.float32)])


def test_pmu_table_has_one_row_per_kernel_call(lab, tmp_path):
    body = "CoreTaskArgs a; a.add_inout(x); a.launch_spec.set_block_num(5); rt_submit_aiv_task(0, a);"
    collect(lab, tmp_path, body, {0: NOTHING}, [np.zeros(8, np.float32)], enable_pmu=3)
    with open(tmp_path / "pmu.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 5
    assert {(row["func_id"], row["core_type"], row["event_type"]) for row in rows} == {("0", "1", "2")}


def test_unwritable_folder_is_an_error(lab, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(RuntimeError, match="cannot write the diagnostics files"):
        collect(lab, tmp_path / "file" / "below", "", {}, [np.zeros(8, np.float32)], enable_dep_gen=True)
