"""Tensors, views, allocation, predicates and element access as orchestration code sees them."""

from __future__ import annotations

import numpy as np
import pytest

ARGS = "const ChipTensor &x = orch_args.tensor(0).ref();"
CHECK = '#define CHECK(c) do { if (!(c)) rt_report_fatal(9, "line %d: %s", __LINE__, #c); } while (0)\n'


def check(lab, body: str, tensor=None, kernels=None, **options) -> None:
    tensor = np.zeros((4, 6), np.float32) if tensor is None else tensor
    lab.run(ARGS + body, kernels or {0: ("aiv", "")}, [tensor], helpers=CHECK, **options)


def test_stepped_slice(lab):
    check(
        lab,
        """
        ChipTensor s = x.slice(1, 1, 6, 2);
        CHECK(s.shapes[0] == 4 && s.shapes[1] == 3 && s.strides[0] == 6 && s.strides[1] == 2);
        CHECK(s.start_offset == 1 && !s.is_contiguous && s.extent_elem() == 23 && s.numel() == 12);
        """,
    )


def test_empty_view_accepts_any_offset(lab):
    check(
        lab,
        """
        uint32_t shape[2] = {0, 2}, offset[2] = {9, 9};
        ChipTensor v = x.view(shape, offset);
        CHECK(v.numel() == 0 && v.start_offset == 0 && v.extent_elem() == 0 && v.is_contiguous);
        CoreTaskArgs a; a.add_inout(v); rt_submit_aiv_task(0, a);
        """,
    )


def test_views_set_manual_dep_to_their_argument(lab):
    check(
        lab,
        """
        ChipTensor m = x; m.manual_dep = true;
        uint32_t shape[2] = {1, 6}, offset[2] = {1, 0}, flat[1] = {24}, order[2] = {1, 0};
        CHECK(!m.view(shape, offset).manual_dep && m.view(shape, offset, true).manual_dep);
        CHECK(!m.transpose(0, 1).manual_dep && !m.permute(order).manual_dep && !m.reshape(flat, 1).manual_dep);
        CHECK(m.view(shape, offset).is_contiguous && m.transpose(0, 1).strides[0] == 1);
        CHECK(!m.valid_reshape(shape, 2) && !m.transpose(0, 1).valid_reshape(flat, 1) && m.valid_transpose(0, 1));
        """,
    )


def test_factories(lab):
    check(
        lab,
        """
        float memory[24];
        uint32_t shape[2] = {4, 2}, strides[2] = {6, 1};
        ChipTensor e = make_tensor_external(memory, shape, 2);
        CHECK(e.buffer.size == 32 && e.owner_task_id.is_invalid() && e.version == 0 && e.is_contiguous);
        ChipTensor s = make_tensor_strided(memory, shape, strides, 2);
        CHECK(s.buffer.size == 80 && !s.is_contiguous && s.compute_flat_offset(strides, 1) == 36);
        """,
    )


def test_task_ids(lab):
    check(
        lab,
        """
        PTO2TaskId id = PTO2TaskId::make(2, 7);
        CHECK(id.raw == ((2ull << 32) | 7) && id.ring() == 2 && id.local() == 7 && id.is_valid());
        CHECK(PTO2TaskId::invalid().is_invalid() && PTO2TaskId::invalid().raw == ~0ull && id != PTO2TaskId::invalid());
        """,
    )


def test_scalars_are_packed_without_sign_extension(lab):
    check(
        lab,
        """
        CoreTaskArgs a; a.add_scalar(1.0f, int32_t(-1)); a.add_scalar(int8_t(-2)); a.add_scalar(PredicateOp::GT);
        int32_t raw[2] = {-1, 5}; a.add_scalars_i32(raw, 2);
        CHECK(a.scalar(0) == 0x3F800000u && a.scalar(1) == 0xFFFFFFFFu && a.scalar(2) == 0xFE && a.scalar(3) == 3);
        CHECK(a.scalar(4) == 0xFFFFFFFFu && a.scalar(5) == 5 && a.scalar_count() == 6);
        CoreTaskArgs b; b.copy_scalars_from(a, 1, 2);
        CHECK(b.scalar_count() == 2 && b.scalar(1) == 0xFE && from_u64<int32_t>(b.scalar(0)) == -1);
        a.clear();
        CHECK(a.scalar_count() == 0 && a.tensor_count() == 0);
        """,
    )


def test_allocation_aligns_and_fills(lab):
    check(
        lab,
        """
        uint32_t shape[2] = {3, 5};
        TensorCreateInfo a(shape, 2), b(shape, 2, DataType::INT16);
        a.set_initial_value(7.0f);
        b.set_initial_value(static_cast<int16_t>(-3));
        TaskOutputTensors o = alloc_tensors(a, b);
        CHECK(o.size() == 2 && o.task_id().is_valid() && !o.empty());
        const ChipTensor &first = o.get_ref(0), &second = o.get_ref(1);
        CHECK((second.buffer.addr - first.buffer.addr) % 1024 == 0 && first.buffer.addr % 1024 == 0);
        CHECK(first.owner_task_id == o.task_id() && first.is_contiguous && first.start_offset == 0);
        for (int i = 0; i < 15; ++i) {
            CHECK(first.data_as<float>()[i] == 7.0f);
            CHECK(second.data_as<int16_t>()[i] == -3);
        }
        TensorCreateInfo list[2] = {a, b};
        TaskOutputTensors again = alloc_tensors(list, 2);
        CHECK(again.size() == 2 && again.task_id() != o.task_id());
        """,
    )


def test_output_with_initial_value_is_filled_before_the_kernel_runs(lab):
    y = np.zeros(15, np.float32)
    kernels = {0: ("aiv", "for (int i = 0; i < 15; ++i) data<float>(args, 1)[i] = data<float>(args, 0)[i] + 1;")}
    body = """
    uint32_t shape[1] = {15};
    TensorCreateInfo ci(shape, 1); ci.set_initial_value(2.5f);
    CoreTaskArgs a; a.add_output(ci); a.add_output(x); rt_submit_aiv_task(0, a);
    """
    check(lab, body, y, kernels)
    np.testing.assert_array_equal(y, 3.5)


PREDICATED = """
PTO2TaskId producer;
{ CoreTaskArgs a; a.add_inout(x); a.add_scalar(orch_args.scalar(0)); producer = rt_submit_aiv_task(0, a).task_id(); }
CoreTaskPredicate p; p.operand.tensor = &x; p.operand.ndims = 1; p.operand.indices[0] = 0;
p.op = PredicateOp::GT; p.target = 0;
CoreTaskArgs b; b.add_no_dep(x); b.set_dependencies(&producer, 1); b.set_predicate(p);
PTO2TaskId gated = rt_submit_aiv_task(1, b).task_id();
CoreTaskArgs c; c.add_no_dep(x); c.set_dependencies(&gated, 1); rt_submit_aiv_task(2, c);
"""


@pytest.mark.parametrize("runtime", ["tensormap_and_ringbuffer", "host_build_graph"])
@pytest.mark.parametrize("value", [0, 3, -1])
def test_predicate_is_evaluated_when_the_task_could_start(lab, runtime, value):
    x = np.zeros(3, np.int32)
    kernels = {
        0: ("aiv", "data<int>(args, 0)[0] = static_cast<int>(args[1]);"),
        1: ("aiv", "data<int>(args, 0)[1]++;"),
        2: ("aiv", "data<int>(args, 0)[2]++;"),
    }
    lab.run(ARGS + PREDICATED, kernels, [x], [value], runtime=runtime)
    np.testing.assert_array_equal(x, [value, int(value > 0), 1])


COUNT_UP = {0: ("aiv", "usleep(2000); *data<int>(args, 0) += 1;", "#include <unistd.h>"), 1: ("aiv", "")}


def test_reading_an_element_waits_for_its_producers(lab):
    x = np.zeros(4, np.int32)
    body = """
    uint32_t zero[1] = {0};
    for (int i = 0; i < 3; ++i) { CoreTaskArgs a; a.add_inout(x); rt_submit_aiv_task(0, a); }
    CHECK(get_tensor_data<int32_t>(x, 1, zero) == 3);
    uint32_t shape[1] = {4}; TensorCreateInfo ci(shape, 1, DataType::INT32); ci.set_initial_value(int32_t(5));
    CoreTaskArgs b; b.add_output(ci); TaskOutputTensors o = rt_submit_aiv_task(0, b);
    const ChipTensor &t = o.get_ref(0);
    CHECK(get_tensor_data<int32_t>(t, 1, zero) == 6);
    """
    check(lab, body, x, COUNT_UP)


def test_writing_an_element_waits_for_the_tasks_that_still_read(lab):
    x, y = np.zeros(1, np.int32), np.zeros(1, np.int32)
    kernels = {
        0: ("aiv", "*data<int>(args, 0) = 1;"),
        1: ("aiv", "usleep(5000); *data<int>(args, 1) = *data<int>(args, 0);", "#include <unistd.h>"),
    }
    body = """
    const ChipTensor &y = orch_args.tensor(1).ref();
    uint32_t zero[1] = {0};
    CoreTaskArgs a; a.add_inout(x); rt_submit_aiv_task(0, a);
    CoreTaskArgs b; b.add_input(x); b.add_output(y); rt_submit_aiv_task(1, b);
    set_tensor_data<int32_t>(x, 1, zero, 9);
    """
    lab.run(ARGS + body, kernels, [x, y])
    assert (x[0], y[0]) == (9, 1)


def test_element_access_rules(lab):
    at = "uint32_t i[2] = {3, 5};"
    check(lab, at + "set_tensor_data<float>(x, 2, i, 2.0f); CHECK(get_tensor_data<float>(x, 2, i) == 2.0f);")
    check(lab, at + "ChipTensor none = x; none.buffer.addr = 0; CHECK(get_tensor_data(none, 2, i) == 0);")
    with pytest.raises(RuntimeError, match=r"-5.*index 6 is out of range"):
        check(lab, "uint32_t i[2] = {0, 6}; get_tensor_data<float>(x, 2, i);")
    with pytest.raises(RuntimeError, match=r"-5.*no task has run yet"):
        body = (
            "uint32_t i[2] = {0, 0}; CoreTaskArgs a; a.add_inout(x); rt_submit_aiv_task(0, a); "
            "get_tensor_data(x, 2, i);"
        )
        check(lab, body, runtime="host_build_graph")


def test_dummy_tasks_order_without_running(lab):
    x = np.zeros(1, np.int32)
    kernels = {
        0: ("aiv", "usleep(1000); *data<int>(args, 0) += 1;", "#include <unistd.h>"),
        1: ("aiv", "*data<int>(args, 0) *= 10;"),
    }
    body = """
    PTO2TaskId ids[3];
    CoreTaskArgs a; a.add_no_dep(x); ids[0] = rt_submit_aiv_task(0, a).task_id();
    for (int i = 1; i < 3; ++i) {
        CoreTaskArgs d; d.set_dependencies(ids + i - 1, 1); ids[i] = rt_submit_dummy_task(d).task_id();
    }
    CoreTaskArgs b; b.add_no_dep(x); b.set_dependencies(ids + 2, 1); rt_submit_aiv_task(1, b);
    """
    lab.run(ARGS + body, kernels, [x])
    assert x[0] == 10


def test_ordering_only_dependencies_and_resubmission(lab):
    x = np.zeros(1, np.int32)
    body = """
    CoreTaskArgsWithDeps<4> a; a.add_no_dep(x);
    PTO2TaskId last = rt_submit_aiv_task(0, a).task_id();
    for (int i = 0; i < 3; ++i) { a.add_dep_wait(last); last = rt_submit_aiv_task(0, a).task_id(); }
    """
    lab.run(ARGS + body, COUNT_UP, [x])
    assert x[0] == 4


def test_graph_bodies_run_inline(lab):
    x = np.zeros(4, np.int32)
    helpers = """
    static void twice(const GraphTaskArgs &args, int times) {
        for (int i = 0; i < times; ++i) {
            const ChipTensor &t = args.tensor(0).ref();
            CoreTaskArgs a; a.add_inout(t); a.copy_scalars_from(a, 0, 0); rt_submit_aiv_task(0, a);
        }
    }
    """
    body = """
    GraphTaskArgs g; g.add_inout(x);
    for (int i = 0; i < 3; ++i) rt_submit_graph(&twice, g, 2);
    rt_submit_graph(GRAPH_KEY("named"), &twice, g, 1);
    """
    lab.run(ARGS + body, COUNT_UP, [x], runtime="host_build_graph", helpers=helpers)
    assert x[0] == 7


def test_initial_values_do_not_exist_on_host_build_graph(lab):
    from simpler_runtime import ToolchainError

    body = "TensorCreateInfo ci(x.shapes, 1); ci.set_initial_value(1.0f);"
    with pytest.raises(ToolchainError, match="set_initial_value"):
        lab.build(ARGS + body, {}, count=1, runtime="host_build_graph")


@pytest.mark.parametrize(
    "body",
    [
        "CoreTaskArgs a; a.add_input(x.transpose(0, 1));",
        "TensorCreateInfo ci(x.shapes, 1); CoreTaskArgs a; a.add_output(ci, x);",
        "CoreTaskArgs a; CoreTaskArgs b = a;",
        "CoreTaskArgs a; a.dump(1.0f);",
        "const ChipTensor &t = rt_submit_dummy_task(CoreTaskArgs{}).get_ref(0);",
    ],
)
def test_misuse_that_must_not_compile(lab, body):
    from simpler_runtime import ToolchainError

    with pytest.raises(ToolchainError):
        lab.build(ARGS + body, {}, count=1)


def test_log_lines_and_levels(lab, capfd):
    check(lab, 'LOG_ERROR("count is %d", 3); LOG_INFO("hidden");')
    text = capfd.readouterr().err
    assert "[ERROR] aicpu_orchestration_entry:" in text and "count is 3" in text
    assert "hidden" not in text
