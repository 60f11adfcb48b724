"""The command-line tools on files of real runs."""

from __future__ import annotations

import json

import numpy as np
import pytest
from simpler_setup.tools import deps_viewer, dump_viewer, strace_timing, swimlane_converter

from simpler_runtime import CallConfig

BODY = """
const ChipTensor &x = orch_args.tensor(0).ref();
TensorCreateInfo ci(x.shapes, 1);
CoreTaskArgs a; a.add_input(x); a.add_output(ci); a.add_scalar(1.5f); a.launch_spec.set_block_num(2);
TaskOutputTensors o = rt_submit_aiv_task(0, a);
const ChipTensor &t = o.get_ref(0);
CoreTaskArgs b; b.add_input(t); b.add_output(x); rt_submit_aiv_task(1, b);
"""


@pytest.fixture(scope="module")
def folder(lab, tmp_path_factory):
    path = tmp_path_factory.mktemp("dfx")
    config = CallConfig(output_prefix=str(path), enable_chip_swimlane=4, enable_dep_gen=True, enable_dump_args=2)
    lab.run(BODY, {0: ("aiv", ""), 1: ("aiv", "")}, [np.arange(6, dtype=np.float32)], config=config)
    names = {"level": 2, "orchestrator_name": "main", "callable_id_to_name": {"0": "spread", "1": "gather"}}
    (path / "name_map_case.json").write_text(json.dumps(names))
    return path


def test_swimlane_becomes_a_trace_with_names_and_arrows(folder, capsys):
    data = swimlane_converter.read_perf_data(folder / "chip_swimlane_records.json")
    assert len(data["tasks"]) == 3
    assert {task["func_id"] for task in data["tasks"]} == {0, 1}
    assert all(task["dispatch_time_us"] <= task["finish_time_us"] for task in data["tasks"])
    assert swimlane_converter.main([str(folder / "chip_swimlane_records.json")]) == 0
    trace = json.loads((folder / "merged_swimlane.json").read_text())["traceEvents"]
    names = {event["name"] for event in trace if event["ph"] == "X" and event["pid"] == swimlane_converter.WORKERS}
    assert names == {"spread_spmd(r0t0)", "gather(r0t1)"}
    assert {event["ph"] for event in trace} == {"M", "X", "s", "f"}
    assert any(event["pid"] == swimlane_converter.ORCHESTRATOR for event in trace if event["ph"] == "X")


def test_dependency_graph_as_text_and_page(folder, capsys):
    assert deps_viewer.main([str(folder / "deps.json")]) == 0
    text = capsys.readouterr().out
    assert "2 tasks, 2 tensors, 1 edges" in text
    assert "<- r0t0 spread x2  [arg 0: creator]" in text
    assert deps_viewer.main([str(folder / "deps.json"), "--format", "html", "--show-tensor-info"]) == 0
    page = (folder / "deps.html").read_text()
    assert page.count("<rect") == 2 and "gather" in page and "http" not in page


def test_args_are_listed_and_exported(folder, capsys):
    dump = folder / "args_dump"
    assert dump_viewer.main([str(dump), "--stage", "before", "--role", "input", "--task", "0"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2 and "float32 [6]" in lines[0] and "0x000000003fc00000" in lines[1]
    assert dump_viewer.main([str(dump), "--index", "0"]) == 0
    exported = next(dump.glob("arg_0_*.txt")).read_text()
    assert "[5] 5.0" in exported
    assert dump_viewer.main([str(dump), "--index", "99"]) == 1
    assert dump_viewer.decode_elements(np.array([0x3FC0], np.uint16).tobytes(), "bfloat16", 1) == [1.5]


def test_timing_markers_of_a_run(lab, tmp_path, monkeypatch, capfd):
    monkeypatch.setenv("SIMPLER_STRACE", "1")
    for _ in range(2):
        lab.run(BODY, {0: ("aiv", ""), 1: ("aiv", "")}, [np.arange(6, dtype=np.float32)])
    log = tmp_path / "run.log"
    log.write_text(capfd.readouterr().err)
    spans = strace_timing.parse_spans(log.read_text())
    rows = strace_timing.rounds_table(spans)
    assert len(rows) == 2
    assert all(row["run"] >= row["device"] >= row["sched"] >= row["orch"] > 0 for row in rows)
    assert strace_timing.main([str(log), "--rounds-table"]) == 0
    assert strace_timing.main([str(log), "--tree"]) == 0
    assert "device_wall" in capfd.readouterr().out
    assert strace_timing.main([str(log), "--trace-out", str(tmp_path / "t.json")]) == 0
    assert len(json.loads((tmp_path / "t.json").read_text())["traceEvents"]) == len(spans)
    (tmp_path / "empty").write_text("")
    assert strace_timing.main([str(tmp_path / "empty")]) == 1
