"""SPMD and mixed tasks: which kernel calls happen, with which identity, and how the cores of a block cooperate."""

from __future__ import annotations

import numpy as np
import pytest

ARGS = "const ChipTensor &x = orch_args.tensor(0).ref();"
MARK = ("aiv", "data<std::atomic<int>>(args, 0)[get_block_idx(args)].fetch_add(get_block_num(args));")


@pytest.mark.parametrize("platform", ["a2a3sim", "a5sim"])
@pytest.mark.parametrize("setter", ["set_block_num", "set_core_num"])
def test_every_block_runs_once(lab, platform, setter):
    x = np.zeros(1000, np.int32)
    lab.run(
        ARGS + f"CoreTaskArgs a; a.add_inout(x); a.launch_spec.{setter}(1000); rt_submit_aiv_task(0, a);",
        {0: MARK},
        [x],
        platform=platform,
    )
    np.testing.assert_array_equal(x, 1000)


def test_consumers_wait_for_all_blocks(lab):
    x, y = np.zeros(300, np.int32), np.zeros(1, np.int32)
    total = ("aiv", "int s = 0; for (int i = 0; i < 300; ++i) s += data<int>(args, 0)[i]; *data<int>(args, 1) = s;")
    body = """const ChipTensor &y = orch_args.tensor(1).ref();
    CoreTaskArgs a; a.add_inout(x); a.launch_spec.set_block_num(300); rt_submit_aiv_task(0, a);
    CoreTaskArgs b; b.add_input(x); b.add_output(y); rt_submit_aiv_task(1, b);"""
    lab.run(ARGS + body, {0: MARK, 1: total}, [x, y])
    assert y[0] == 300 * 300


def test_sync_start_blocks_may_wait_for_each_other_in_memory(lab):
    x = np.zeros(1, np.int32)
    meet = (
        "aiv",
        "auto *c = data<std::atomic<int>>(args, 0); c->fetch_add(1); "
        "while (c->load() < get_block_num(args)) sched_yield();",
        "#include <sched.h>",
    )
    body = (
        "CoreTaskArgs a; a.add_inout(x); a.launch_spec.set_block_num(16); "
        "a.launch_spec.set_require_sync_start(true); rt_submit_aiv_task(0, a);"
    )
    lab.run(ARGS + body, {0: meet}, [x])
    assert x[0] == 16


def test_mixed_task_calls_every_slot_of_every_block(lab):
    x = np.zeros((2, 3), np.int32)
    cube = ("aic", "data<std::atomic<int>>(args, 0)[get_block_idx(args) * 3]++;")
    vector = ("aiv", "data<std::atomic<int>>(args, 0)[get_block_idx(args) * 3 + 1 + get_sub_block_id(args)]++;")
    body = (
        "CoreTaskArgs a; a.add_inout(x); a.launch_spec.set_block_num(2); MixedKernels m = {0, 1, 1}; "
        "rt_submit_task(m, a);"
    )
    lab.run(ARGS + body, {0: cube, 1: vector}, [x])
    np.testing.assert_array_equal(x, 1)


def test_lone_second_vector_lane_runs_as_the_first(lab):
    x = np.full(1, 9, np.int32)
    kernel = ("aiv", "*data<int>(args, 0) = get_sub_block_id(args) * 10 + simpler_current_core()->lane;")
    lab.run(
        ARGS + "CoreTaskArgs a; a.add_inout(x); MixedKernels m; m.aiv1_kernel_id = 0; rt_submit_task(m, a);",
        {0: kernel},
        [x],
    )
    assert x[0] == 0


PING_CUBE = (
    "aic",
    """
    auto *me = simpler_current_core();
    int *mat = reinterpret_cast<int *>(me->memory[1]);
    for (int i = 0; i < 1000; ++i) {
        *mat = i;
        simpler_counter_add(me->peers[1], 3, 1);
        simpler_counter_add(me->peers[2], 3, 1);
        simpler_counter_take(4, 2);
    }
    """,
)
PING_VECTOR = (
    "aiv",
    """
    auto *me = simpler_current_core();
    int *sum = data<int>(args, 0) + get_sub_block_id(args);
    for (int i = 0; i < 1000; ++i) {
        simpler_counter_take(3, 1);
        *sum += *reinterpret_cast<int *>(me->peers[0]->memory[1]);
        simpler_counter_add(me->peers[0], 4, 1);
    }
    """,
)


@pytest.mark.parametrize("platform", ["a2a3sim", "a5sim"])
def test_cores_of_a_block_exchange_data_through_counters(lab, platform):
    x = np.zeros(2, np.int32)
    body = "CoreTaskArgs a; a.add_inout(x); MixedKernels m = {0, 1, 1}; rt_submit_task(m, a);"
    lab.run(ARGS + body, {0: PING_CUBE, 1: PING_VECTOR}, [x], platform=platform)
    np.testing.assert_array_equal(x, 999 * 1000 // 2)


def test_counters_start_at_zero_in_every_block(lab):
    x = np.zeros(1, np.int32)
    lone = (
        "aiv",
        "simpler_counter_add(simpler_current_core(), 5, 2); simpler_counter_take(5, 1); "
        "data<std::atomic<int>>(args, 0)->fetch_add(1);",
    )
    greedy = ("aiv", "simpler_counter_take(5, 1);")
    lab.run(
        ARGS + "CoreTaskArgs a; a.add_inout(x); a.launch_spec.set_block_num(20); rt_submit_aiv_task(0, a);",
        {0: lone},
        [x],
    )
    assert x[0] == 20
    with pytest.raises(RuntimeError, match=r"-106.*kernel_1.*counter 5"):
        lab.run(
            ARGS + "CoreTaskArgs a; a.add_inout(x); rt_submit_aiv_task(0, a); rt_submit_aiv_task(1, a);",
            {0: lone, 1: greedy},
            [x],
        )


def test_block_whose_cores_all_wait_is_reported_with_what_each_waits_for(lab):
    x = np.zeros(1, np.int32)
    cube = ("aic", "simpler_counter_take(7, 1);")
    vector = ("aiv", "simpler_counter_take(8, 2); simpler_counter_add(simpler_current_core()->peers[0], 7, 1);")
    with pytest.raises(RuntimeError) as caught:
        lab.run(
            ARGS + "CoreTaskArgs a; a.add_inout(x); MixedKernels m = {0, 1, -1}; rt_submit_task(m, a);",
            {0: cube, 1: vector},
            [x],
        )
    message = str(caught.value)
    assert "code -106" in message
    assert "AIC 'kernel_0' waits for counter 7 (has 0, needs 1)" in message
    assert "AIV0 'kernel_1' waits for counter 8 (has 0, needs 2)" in message


def test_crash_of_one_core_frees_the_others(lab):
    x = np.zeros(1, np.int32)
    cube = ("aic", "__builtin_trap();")
    vector = ("aiv", "simpler_counter_take(8, 1);")
    with pytest.raises(RuntimeError, match=r"code -10[56]"):
        lab.run(
            ARGS + "CoreTaskArgs a; a.add_inout(x); MixedKernels m = {0, 1, 1}; rt_submit_task(m, a);",
            {0: cube, 1: vector},
            [x],
        )


def test_on_chip_memory_has_the_sizes_of_the_architecture(lab):
    x = np.zeros(16, np.int32)
    cube = ("aic", "for (int s = 0; s < 8; ++s) data<int>(args, 0)[s] = simpler_current_core()->memory_size[s] / 1024;")
    vector = (
        "aiv",
        "for (int s = 0; s < 8; ++s) data<int>(args, 0)[8 + s] = simpler_current_core()->memory_size[s] / 1024;",
    )
    body = ARGS + "CoreTaskArgs a; a.add_inout(x); rt_submit_aic_task(0, a); rt_submit_aiv_task(1, a);"
    lab.run(body, {0: cube, 1: vector}, [x])
    np.testing.assert_array_equal(x, [0, 512, 64, 64, 128, 1, 0, 0, 192, 0, 0, 0, 0, 0, 0, 0])
    lab.run(body, {0: cube, 1: vector}, [x], platform="a5sim")
    np.testing.assert_array_equal(x, [0, 512, 64, 64, 256, 4, 4, 4, 248, 0, 0, 0, 0, 0, 0, 0])


def test_stray_on_chip_address_faults(lab):
    x = np.zeros(1, np.int32)
    kernel = (
        "aiv",
        "auto *c = simpler_current_core(); *(volatile char *)(c->memory[0] + c->memory_size[0] + 4096) = 1;",
    )
    with pytest.raises(RuntimeError, match=r"-105.*SIGSEGV"):
        lab.run(ARGS + "CoreTaskArgs a; a.add_inout(x); rt_submit_aiv_task(0, a);", {0: kernel}, [x])


def test_geometry_of_the_simulated_chip(lab):
    lab.run("if (rt_available_cluster_count() != 8 || rt_available_aiv_count() != 16) __builtin_trap();")


def test_kernels_may_wait_for_tasks_that_are_submitted_later(lab):
    """A chip has more cores than the machine: waiting kernels must not keep the ones they wait for from starting."""
    x = np.zeros(2, np.int32)
    waits = (
        "aiv",
        "auto *c = data<std::atomic<int>>(args, 0); c[1]++; while (!c[0].load()) sched_yield();",
        "#include <sched.h>",
    )
    opens = ("aiv", "data<std::atomic<int>>(args, 0)[0] = 1;")
    body = """
    for (int i = 0; i < 6; ++i) { CoreTaskArgs a; a.add_no_dep(x); rt_submit_aiv_task(0, a); }
    CoreTaskArgs b; b.add_no_dep(x); rt_submit_aiv_task(1, b);
    """
    lab.run(ARGS + body, {0: waits, 1: opens}, [x])
    np.testing.assert_array_equal(x, [1, 6])


def test_blocks_may_wait_for_blocks_that_have_not_started(lab):
    """A thread claims several blocks at once; a barrier inside the first must not keep the others from starting."""
    x = np.zeros(2, np.int32)
    meet = (
        "aiv",
        "auto *c = data<std::atomic<int>>(args, 0); c[0]++; while (c[0].load() < get_block_num(args)) sched_yield(); "
        "c[1]++;",
    )
    body = "CoreTaskArgs a; a.add_inout(x); a.launch_spec.set_block_num(48); rt_submit_aiv_task(0, a);"
    lab.run(ARGS + body, {0: meet}, [x])
    np.testing.assert_array_equal(x, [48, 48])


def test_the_orchestrator_does_not_wait_inside_a_kernel_for_what_it_has_yet_to_submit(lab):
    x, y = np.zeros(1, np.int32), np.zeros(1, np.int32)
    waits = ("aiv", "auto *c = data<std::atomic<int>>(args, 0); while (!c[0].load()) sched_yield();")
    opens = ("aiv", "data<std::atomic<int>>(args, 0)[0] = 1;")
    later = ("aiv", "usleep(20000); *data<int>(args, 0) = 7;", "#include <unistd.h>")
    body = """const ChipTensor &y = orch_args.tensor(1).ref();
    for (int i = 0; i < 4; ++i) { CoreTaskArgs a; a.add_no_dep(x); rt_submit_aiv_task(0, a); }
    CoreTaskArgs b; b.add_inout(y); rt_submit_aiv_task(2, b);
    uint32_t first[1] = {0};
    if (get_tensor_data<int>(y, 1, first) != 7) __builtin_trap();
    CoreTaskArgs c; c.add_no_dep(x); rt_submit_aiv_task(1, c);"""
    lab.run(ARGS + body, {0: waits, 1: opens, 2: later}, [x, y])
    assert x[0] == 1


def test_a_fault_in_one_of_many_blocks_ends_the_run(lab):
    x = np.zeros(1, np.int32)
    kernel = ("aiv", "if (get_block_idx(args) == 5) __builtin_trap(); data<std::atomic<int>>(args, 0)[0]++;")
    body = "CoreTaskArgs a; a.add_inout(x); a.launch_spec.set_block_num(3000); rt_submit_aiv_task(0, a);"
    with pytest.raises(RuntimeError, match=r"-105.*block 5 of 3000"):
        lab.run(ARGS + body, {0: kernel}, [x])


def test_a_wait_for_what_never_comes_names_the_kernel(lab, monkeypatch):
    from simpler_runtime import ChipStorageTaskArgs, Worker

    monkeypatch.setenv("SIMPLER_SCHEDULER_TIMEOUT_MS", "200")
    kernel = ("aiv", "auto *c = data<std::atomic<int>>(args, 0); while (!c[0].load()) sched_yield();")
    body = "CoreTaskArgs a; a.add_inout(x); a.launch_spec.set_block_num(20); rt_submit_aiv_task(0, a);"
    args = ChipStorageTaskArgs()
    args.add_tensor(np.zeros(1, np.int32))
    with Worker(level=2, platform="a2a3sim") as worker:
        handle = worker.register(lab.build(ARGS + body, {0: kernel}, count=1))
        with pytest.raises(RuntimeError, match=r"-100.*S1:running-stalled.*kernel_0"):
            worker.run(handle, args)


def test_cores_of_a_block_may_poll_memory_for_each_other(lab):
    x = np.zeros(3, np.int32)
    cube = ("aic", "auto *c = data<std::atomic<int>>(args, 0); while (c[1] + c[2] < 2) sched_yield(); c[0] = 1;")
    vector = (
        "aiv",
        "auto *c = data<std::atomic<int>>(args, 0); c[1 + get_sub_block_id(args)] = 1; while (!c[0]) sched_yield();",
    )
    body = "CoreTaskArgs a; a.add_inout(x); MixedKernels m = {0, 1, 1}; rt_submit_task(m, a);"
    lab.run(ARGS + body, {0: cube, 1: vector}, [x])
    np.testing.assert_array_equal(x, 1)


ASYNC = '#include "pto_async_kernel_api.h"\nenum class Notify { AtomicAdd, Set };'


def test_task_completes_when_its_registered_counters_have_risen(lab):
    x = np.zeros(3, np.int32)
    kernels = {
        0: ("aiv", "save_expected_notification_counter(get_async_ctx(args), data<int>(args, 0), 2);", ASYNC),
        1: ("aiv", "send_notification(data<int>(args, 0), 1, Notify::AtomicAdd);", ASYNC),
        2: ("aiv", "data<int>(args, 0)[1] = data<int>(args, 0)[0];"),
    }
    body = """
    CoreTaskArgs a; a.add_no_dep(x); PTO2TaskId waits = rt_submit_aiv_task(0, a).task_id();
    CoreTaskArgs b; b.add_no_dep(x); b.set_dependencies(&waits, 1); rt_submit_aiv_task(2, b);
    for (int i = 0; i < 2; ++i) { CoreTaskArgs c; c.add_no_dep(x); rt_submit_aiv_task(1, c); }
    """
    lab.run(ARGS + body, kernels, [x])
    np.testing.assert_array_equal(x, [2, 2, 0])


def test_bad_completion_conditions_fail_the_run(lab):
    x = np.zeros(1, np.int32)
    submit = "CoreTaskArgs a; a.add_inout(x); rt_submit_aiv_task(0, a);"
    many = "for (int i = 0; i < 65; ++i) save_expected_notification_counter(get_async_ctx(args), args, 0);"
    with pytest.raises(RuntimeError, match=r"-102.*r0t0"):
        lab.run(ARGS + submit, {0: ("aiv", many, ASYNC)}, [x])
    null = "save_expected_notification_counter(get_async_ctx(args), nullptr, 1);"
    with pytest.raises(RuntimeError, match=r"-101.*r0t0"):
        lab.run(ARGS + submit, {0: ("aiv", null, ASYNC)}, [x])
