"""Every way a run can fail ends in one error that names the code, the place and the remedy."""

from __future__ import annotations

import numpy as np
import pytest

NOTHING = ("aiv", "")
CUBE = ("aic", "")
ARGS = "const ChipTensor &x = orch_args.tensor(0).ref();"


def one() -> np.ndarray:
    return np.zeros(8, np.float32)


def fails(lab, code: int, body: str, *texts: str, kernels=None, **options) -> str:
    with pytest.raises(RuntimeError) as caught:
        lab.run(ARGS + body, {0: NOTHING, 1: CUBE} if kernels is None else kernels, [one()], **options)
    message = str(caught.value)
    assert message.startswith(f"run failed with code -{code}:"), message
    for text in texts:
        assert text in message
    return message


def test_auto_scope_inside_manual_scope(lab):
    fails(
        lab,
        5,
        "PTO2_SCOPE(PTO2ScopeMode::MANUAL) { PTO2_SCOPE() { CoreTaskArgs a; a.add_input(x); "
        "rt_submit_aiv_task(0, a); } }",
        "auto scope nested inside manual scope is not supported",
    )


def test_dependency_arrays(lab):
    lab.run(
        ARGS + "CoreTaskArgs a; a.add_inout(x); a.set_dependencies(nullptr, 0); rt_submit_aiv_task(0, a);",
        {0: NOTHING},
        [one()],
    )
    fails(lab, 5, "CoreTaskArgs a; a.set_dependencies(nullptr, 4); rt_submit_aiv_task(0, a);", "null")
    fails(
        lab,
        5,
        """CoreTaskArgs f; f.add_inout(x); PTO2TaskId id = rt_submit_aiv_task(0, f).task_id();
        CoreTaskArgs a; a.set_dependencies(&id, 1); a.set_dependencies(&id, 1); rt_submit_aiv_task(0, a);""",
        "twice",
    )
    fails(
        lab,
        5,
        "PTO2TaskId id = PTO2TaskId::make(0, 77); CoreTaskArgs a; a.set_dependencies(&id, 1); "
        "rt_submit_aiv_task(0, a);",
        "names no submitted task",
    )


def test_more_dependencies_than_the_args_object_holds(lab):
    fails(
        lab,
        5,
        """CoreTaskArgs f; f.add_inout(x); PTO2TaskId id = rt_submit_aiv_task(0, f).task_id();
        CoreTaskArgsWithDeps<1> a; a.add_dep(id, id); rt_submit_aiv_task(0, a);""",
        "more dependencies",
    )


def test_argument_order_and_capacity(lab):
    fails(lab, 5, "CoreTaskArgs a; a.add_scalar(1); a.add_input(x); rt_submit_aiv_task(0, a);", "before any scalars")
    fails(
        lab,
        5,
        "CoreTaskArgs a; for (int i = 0; i < 33; ++i) a.add_input(x); rt_submit_aiv_task(0, a);",
        "Too many tensor args (max 32)",
    )
    fails(
        lab,
        5,
        "CoreTaskArgs a; for (int i = 0; i < 17; ++i) a.add_scalar(i); rt_submit_aiv_task(0, a);",
        "Too many scalar args (max 16)",
    )


def test_kernel_ids_and_slots(lab):
    fails(lab, 5, "CoreTaskArgs a; a.add_input(x); rt_submit_aiv_task(9, a);", "no kernel with id 9")
    fails(lab, 5, "CoreTaskArgs a; a.add_input(x); rt_submit_aiv_task(1, a);", "kernel_1", "aic code")
    fails(lab, 5, "CoreTaskArgs a; a.add_input(x); rt_submit_aic_task(0, a);", "kernel_0", "aiv code")


def test_block_count_must_be_positive(lab):
    fails(lab, 5, "CoreTaskArgs a; a.launch_spec.set_block_num(0); rt_submit_aiv_task(0, a);", "at least 1")


def test_one_scope_fills_the_window_but_separate_scopes_do_not(lab):
    many = "for (int i = 0; i < 8; ++i) { CoreTaskArgs a; a.add_inout(x); rt_submit_aiv_task(0, a); }"
    fails(lab, 1, f"PTO2_SCOPE() {{ {many} }}", "ring_task_window", "ring 1", ring_task_window=4)
    lab.run(ARGS + many.replace("{ CoreTask", "PTO2_SCOPE() { CoreTask"), {0: NOTHING}, [one()], ring_task_window=4)


def test_nested_scopes_that_share_a_ring_fill_it(lab):
    body = """
    for (int depth = 0; depth < 8; ++depth) {
        rt_scope_begin();
        for (int i = 0; i < 3; ++i) { CoreTaskArgs a; a.add_inout(x); rt_submit_aiv_task(0, a); }
    }
    for (int depth = 0; depth < 8; ++depth) rt_scope_end();
    """
    fails(lab, 3, body, "ring 3", ring_task_window=4)


def test_output_larger_than_the_heap(lab):
    body = """uint32_t shape[1] = {8192}; TensorCreateInfo ci(shape, 1);
    CoreTaskArgs a; a.add_output(ci); rt_submit_aiv_task(0, a);"""
    fails(lab, 2, body, "ring_heap", ring_heap=1024)


def test_dependency_pool_of_one_scope(lab):
    body = """PTO2_SCOPE() { PTO2TaskId ids[8];
    for (int i = 0; i < 8; ++i) { CoreTaskArgs a; a.add_input(x); ids[i] = rt_submit_aiv_task(0, a).task_id(); }
    CoreTaskArgs a; a.set_dependencies(ids, 8); rt_submit_aiv_task(0, a); }"""
    lab.run(ARGS + body, {0: NOTHING}, [one()], ring_dep_pool=8)
    fails(lab, 4, body, "ring_dep_pool", ring_dep_pool=4)


def test_sync_start_needs_enough_cores(lab):
    launch = (
        "CoreTaskArgs a; a.add_input(x); a.launch_spec.set_block_num({}); a.launch_spec.set_require_sync_start(true);"
    )
    fails(lab, 7, launch.format(1000) + "rt_submit_aiv_task(0, a);", "1000 blocks")
    fails(lab, 7, launch.format(9) + "rt_submit_aic_task(1, a);", "clusters")
    lab.run(ARGS + launch.format(16) + "rt_submit_aiv_task(0, a);", {0: NOTHING}, [one()])


def test_reported_fatal_turns_later_calls_into_no_ops(lab):
    fails(
        lab,
        9,
        """rt_report_fatal(PTO2_ERROR_EXPLICIT_ORCH_FATAL, "batch %d is odd", 3);
        CoreTaskArgs a; a.add_inout(x); TaskOutputTensors out = rt_submit_aiv_task(0, a);
        if (!out.empty() || out.task_id().is_valid() || !rt_is_fatal()) __builtin_trap();""",
        "batch 3 is odd",
    )


def test_result_index_of_an_empty_submit_is_reported_not_fatal_to_the_process(lab):
    fails(
        lab,
        12,
        "CoreTaskArgs a; a.add_inout(x); TaskOutputTensors o = rt_submit_aiv_task(0, a); o.get_ref(0);",
        "get_ref",
    )


def test_alloc_tensors_takes_outputs_only(lab):
    fails(lab, 5, "CoreTaskArgs a; alloc_tensors(a);", "at least one")
    fails(
        lab,
        5,
        "TensorCreateInfo ci(x.shapes, 1); CoreTaskArgs a; a.add_output(ci); a.add_scalar(1); alloc_tensors(a);",
        "scalars",
    )
    fails(lab, 5, "CoreTaskArgs a; a.add_input(x); alloc_tensors(a);", "TensorCreateInfo")


def test_too_few_arguments_fail_and_further_ones_are_allowed(lab):
    from simpler_runtime import ChipStorageTaskArgs

    worker = lab.worker()
    handle = worker.register(lab.build("", {}, count=1))
    with pytest.raises(RuntimeError, match=r"expects 1 arguments.*0 were supplied"):
        worker.run(handle)
    args = ChipStorageTaskArgs()
    args.add_tensor(one())
    args.add_tensor(one())
    worker.run(handle, args)


def test_missing_entry_point(lab):
    from simpler_runtime import ChipCallable

    target = lab.build("", {}, count=0)
    renamed = ChipCallable((), "another_entry", target.code.path, ())
    with pytest.raises(RuntimeError, match="does not export 'another_entry'"):
        lab.worker().register(renamed)


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ("*reinterpret_cast<volatile int *>(64) = 1;", "SIGSEGV"),
        ("volatile int n = 7, z = 0; *data<int>(args, 0) = n / z;", "SIGFPE"),
        ("__builtin_trap();", "SIGILL"),
        ("::abort();", "SIGABRT"),
        ('throw std::runtime_error("no such mode");', "threw: no such mode"),
        ("throw 3;", "unknown type"),
        ('SIMPLER_REQUIRE(count(args, 0) == 3, "three please");', "three please"),
    ],
)
def test_crashing_kernel_is_named_and_the_process_lives_on(lab, body, text):
    kernels = {0: ("aiv", body, "#include <stdexcept>\n#include <cstdlib>")}
    submit = "CoreTaskArgs a; a.add_inout(x); rt_submit_aiv_task(0, a);"
    fails(lab, 105, submit, text, "kernel_0", "task r0t0", "AIV0", kernels=kernels)
    lab.run(ARGS + submit, {0: NOTHING}, [one()])


def test_stack_overflow_in_a_kernel_is_reported(lab):
    recursion = (
        "static __attribute__((noinline)) int dive(int n) { volatile char pad[4096]; pad[0] = n; "
        "return n ? dive(n + 1) + pad[0] : 0; }"
    )
    kernels = {0: ("aiv", "*data<int>(args, 0) = dive(1);", recursion)}
    fails(lab, 105, "CoreTaskArgs a; a.add_inout(x); rt_submit_aiv_task(0, a);", "kernel_0", kernels=kernels)


def test_crashing_orchestration_is_reported(lab):
    fails(lab, 12, "*reinterpret_cast<volatile int *>(64) = 1;", "orchestration", "SIGSEGV")


def test_tasks_after_a_failure_do_not_run(lab):
    x = one()
    kernels = {0: ("aiv", "__builtin_trap();"), 1: ("aiv", "*data<float>(args, 0) = 1;")}
    body = ARGS + "CoreTaskArgs a; a.add_inout(x); rt_submit_aiv_task(0, a); rt_submit_aiv_task(1, a);"
    with pytest.raises(RuntimeError, match="-105"):
        lab.run(body, kernels, [x])
    assert x[0] == 0


def test_views_outside_their_parent(lab):
    fails(lab, 12, "uint32_t s[1] = {8}, o[1] = {1}; ChipTensor v = x.view(s, o); v.dump();", "exceeds the parent")
    fails(lab, 12, "uint32_t s[1] = {9}; ChipTensor v = x.reshape(s, 1); v.dump();", "equal element count")


def test_kernel_that_never_ends_is_named_and_interrupted(lab, monkeypatch):
    from simpler_runtime import ChipStorageTaskArgs, Worker

    monkeypatch.setenv("SIMPLER_SCHEDULER_TIMEOUT_MS", "100")
    target = lab.build(
        """
        const ChipTensor &g = orch_args.tensor(0).ref();
        for (int i = 0; i < 4; ++i) { CoreTaskArgs a; a.add_inout(g); rt_submit_aiv_task(0, a); }
        """,
        {0: ("aiv", "auto *gate = data<std::atomic<int>>(args, 0); while (!gate->load()) continue;")},
        count=1,
    )
    gate = np.zeros(1, np.int32)
    args = ChipStorageTaskArgs()
    args.add_tensor(gate)
    with Worker(level=2, platform="a2a3sim") as worker:
        handle = worker.register(target)
        with pytest.raises(RuntimeError, match=r"-100.*S1:running-stalled.*kernel_0"):
            worker.run(handle, args)
        gate[0] = 1
        worker.run(handle, args)


ENDLESS = {
    "a loop of calls after a failure": (
        "CoreTaskArgs a; a.add_inout(x); rt_submit_aiv_task(7, a); "
        "for (;;) { PTO2_SCOPE() { CoreTaskArgs b; b.add_inout(x); rt_submit_aiv_task(0, b); } }",
        "-5: .*no kernel with id 7",
    ),
    "a wait for a value after a failure": (
        "CoreTaskArgs a; a.add_inout(x); rt_submit_aiv_task(7, a); "
        "uint32_t i[1] = {0}; while (get_tensor_data<float>(x, 1, i) == 0) continue;",
        "-5: .*no kernel with id 7",
    ),
    "a loop without calls after a failure": (
        "CoreTaskArgs a; a.add_inout(x); rt_submit_aiv_task(7, a); for (volatile int n = 0;; ++n) continue;",
        "-5: .*no kernel with id 7",
    ),
    "a loop without calls": (
        "for (volatile int n = 0;; ++n) continue;",
        "-100: .*S5:orchestrator-starvation.*neither ended nor called the runtime for",
    ),
}


@pytest.mark.parametrize("case", ENDLESS)
def test_orchestration_that_never_ends_is_left(lab, monkeypatch, case):
    from simpler_runtime import ChipStorageTaskArgs, Worker

    monkeypatch.setenv("SIMPLER_SCHEDULER_TIMEOUT_MS", "300")
    body, message = ENDLESS[case]
    args = ChipStorageTaskArgs()
    args.add_tensor(one())
    healthy = ARGS + "CoreTaskArgs a; a.add_inout(x); rt_submit_aiv_task(0, a);"
    with Worker(level=2, platform="a2a3sim") as worker:
        with pytest.raises(RuntimeError, match=message):
            worker.run(worker.register(lab.build(ARGS + body, {0: NOTHING}, count=1)), args)
        worker.run(worker.register(lab.build(healthy, {0: NOTHING}, count=1)), args)
