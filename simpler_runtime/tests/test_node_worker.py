"""Level-3 workers: several chips and Python sub-workers ordered by the memory they touch."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from simpler_runtime import CommBufferSpec, DataType, TaskArgs, TensorArgType, Worker

IN, OUT, INOUT = TensorArgType.INPUT, TensorArgType.OUTPUT_EXISTING, TensorArgType.INOUT

ADD_ONE = (
    """
    const ChipTensor &x = orch_args.tensor(0).ref(), &y = orch_args.tensor(1).ref();
    CoreTaskArgs a; a.add_input(x); a.add_output(y); rt_submit_aiv_task(0, a);
    """,
    {
        0: (
            "aiv",
            "for (uint64_t i = 0; i < count(args, 0); ++i) data<float>(args, 1)[i] = data<float>(args, 0)[i] + 1;",
        )
    },
)


@pytest.fixture(scope="module")
def worker():
    with Worker(level=3, platform="a2a3sim", device_ids=[0, 1], num_sub_workers=1) as machine:
        yield machine


@pytest.fixture(scope="module")
def add_one(lab, worker):
    return worker.register(lab.build(*ADD_ONE, count=2))


def call(worker, *tensors) -> TaskArgs:
    args = TaskArgs()
    for tensor, tag in tensors:
        args.add_tensor(worker.make_tensor_arg(tensor), tag)
    return args


def test_chips_hand_over_through_memory_and_sub_workers_see_the_result(worker, add_one):
    a, b, c = (np.zeros(64, np.float32) for _ in range(3))
    seen = []
    look = worker.register(lambda args: seen.append((args[0].shapes, float(c[0]))))

    def orchestration(orch, args, config):
        orch.submit_next_level(add_one, call(worker, (a, IN), (b, OUT)), worker=0)
        orch.submit_next_level(add_one, call(worker, (b, IN), (c, OUT)), worker=1)
        orch.submit_sub(look, call(worker, (c, IN)))

    worker.run(orchestration)
    np.testing.assert_array_equal(c, 2)
    assert seen == [((64,), 2.0)]


def test_failed_chip_task_poisons_its_consumers_and_raises_every_time(worker, lab, add_one):
    broken = worker.register(
        lab.build(
            "const ChipTensor &x = orch_args.tensor(0).ref(); CoreTaskArgs a; a.add_inout(x); "
            "rt_submit_aiv_task(0, a);",
            {0: ("aiv", "__builtin_trap();")},
            count=1,
        )
    )
    a, b = np.zeros(4, np.float32), np.zeros(4, np.float32)
    calls = []
    after = worker.register(lambda args: calls.append(1))

    def orchestration(orch, args, config):
        orch.submit_next_level(broken, call(worker, (a, OUT)), worker=0)
        orch.submit_next_level(add_one, call(worker, (a, IN), (b, OUT)), worker=1)
        orch.submit_sub(after, call(worker, (b, IN)))

    handle = worker.submit(orchestration)
    for _ in range(2):
        with pytest.raises(RuntimeError, match="code -105"):
            handle.wait(timeout=60)
    assert handle.done
    assert not calls
    assert b[0] == 0


def test_argument_errors(worker, add_one, lab):
    a, b = np.zeros(4, np.float32), np.zeros(4, np.float32)
    target = lab.build(*ADD_ONE, count=2)

    def with_(**options):
        handle = options.pop("handle", add_one)
        args = options.pop("args", call(worker, (a, IN), (b, OUT)))
        worker.run(lambda orch, _args, _config: orch.submit_next_level(handle, args, **options))

    with pytest.raises(TypeError, match="worker must be an int"):
        with_(worker=True)
    with pytest.raises(ValueError, match=r"outside 0\.\.1"):
        with_(worker=-1)
    with pytest.raises(TypeError, match="register"):
        with_(handle=target, worker=0)
    with pytest.raises(ValueError, match="overlapping"):
        with_(args=call(worker, (a, OUT), (a, OUT)), worker=0)
    with pytest.raises(ValueError, match="distinct"):
        args = call(worker, (a, IN), (b, OUT))
        worker.run(lambda orch, *_: orch.submit_next_level_group(add_one, [args, args], workers=[0, 0]))
    with pytest.raises(ValueError, match="2 argument lists for 1"):
        worker.run(lambda orch, *_: orch.submit_next_level_group(add_one, [args, args], workers=[0]))


def test_exception_of_the_orchestration_function_propagates_from_submit(worker, add_one):
    a, b = np.zeros(4, np.float32), np.zeros(4, np.float32)

    def orchestration(orch, args, config):
        orch.submit_next_level(add_one, call(worker, (a, IN), (b, OUT)), worker=0)
        raise KeyError("my own mistake")

    with pytest.raises(KeyError, match="my own mistake"):
        worker.submit(orchestration)
    assert b[0] == 1


MEET = (
    """
    const ChipTensor &y = orch_args.tensor(0).ref();
    CoreTaskArgs a; a.add_output(y); a.add_scalar(orch_args.scalar(0)); rt_submit_aiv_task(0, a);
    """,
    {
        0: (
            "aiv",
            """
            // Context record: rank, rank count, then the window of every rank.
            auto *ctx = reinterpret_cast<unsigned char *>(args[1]);
            uint32_t rank = *reinterpret_cast<uint32_t *>(ctx + 16), ranks = *reinterpret_cast<uint32_t *>(ctx + 20);
            auto window = [&](uint32_t r) {
                return reinterpret_cast<std::atomic<int> *>(*reinterpret_cast<uint64_t *>(ctx + 32 + 8 * r));
            };
            int sum = 0;
            for (uint32_t r = 0; r < ranks; ++r) window(r)[rank].store(100 + rank);
            for (uint32_t r = 0; r < ranks; ++r) {
                while (!window(rank)[r].load()) sched_yield();
                sum += window(rank)[r].load();
            }
            *data<int>(args, 0) = sum;
            """,
            "#include <sched.h>",
        )
    },
)


@pytest.mark.parametrize("grouped", [False, True])
def test_kernels_of_different_chips_meet_in_a_domain(worker, lab, grouped):
    meet = worker.register(lab.build(*MEET, count=2))
    results = [np.zeros(1, np.int32) for _ in range(2)]
    domains = []

    def orchestration(orch, args, config):
        spec = CommBufferSpec("cells", "int32", 2, 32)
        with orch.allocate_domain(name="d", workers=[0, 1], window_size=64, buffers=[spec]) as domain:
            domains.append(domain)
            assert worker.live_domains["d"] is domain
            assert domain[1].buffers["cells"].tensor((2,), DataType.INT32).buffer.chip == 1
            calls = []
            for rank in range(2):
                task = call(worker, (results[rank], OUT))
                task.add_scalar(domain[rank].device_ctx)
                calls.append(task)
            if grouped:
                orch.submit_next_level_group(meet, calls, workers=[0, 1])
            else:
                for rank in range(2):
                    orch.submit_next_level(meet, calls[rank], worker=rank)
        with pytest.raises(RuntimeError, match="released"):
            domain[0]

    worker.run(orchestration)
    assert [int(r[0]) for r in results] == [201, 201]
    assert domains[0].freed


def test_domain_errors(worker):
    spec = CommBufferSpec("big", "opaque", 100, 128)

    def too_small(orch, *_):
        orch.allocate_domain(name="d", workers=[0], window_size=64, buffers=[spec])

    def twice(orch, *_):
        orch.allocate_domain(name="d", workers=[0], window_size=64)
        orch.allocate_domain(name="d", workers=[1], window_size=64)

    with pytest.raises(ValueError, match="need 128 bytes"):
        worker.run(too_small)
    with pytest.raises(ValueError, match="already live"):
        worker.run(twice)


def test_device_memory_round_trip_and_rules(worker):
    device = worker.alloc_child_tensor(1, (16,), DataType.FLOAT32)
    host = worker.create_buffer(64)
    host.shm.buf[:4] = b"abcd"
    worker.copy_to(device, host)
    host.shm.buf[:4] = b"wxyz"
    worker.copy_from(host, device)
    assert bytes(host.shm.buf[:4]) == b"abcd"
    assert worker.committed_device_memory(1) == 64
    with pytest.raises(TypeError, match="Buffer"):
        worker.copy_to(device, np.zeros(4, np.float32))
    with pytest.raises(ValueError, match="do not fit"):
        worker.copy_to(device, worker.create_buffer(65))
    with pytest.raises(TypeError, match="level 2"):
        worker.malloc(4)
    look = worker.register(print)
    args = TaskArgs()
    args.add_tensor(device.tensor((16,), DataType.FLOAT32))
    with pytest.raises(ValueError, match="device memory"):
        worker.run(lambda orch, *_: orch.submit_sub(look, args))
    worker.free(device)
    with pytest.raises(ValueError, match="freed"):
        worker.free(device)

    def late(orch, *_):
        orch.submit_sub(look, TaskArgs())
        orch.alloc_child_tensor(0, (4,), DataType.INT32)

    with pytest.raises(RuntimeError, match="before the first submit"):
        worker.run(late)


def test_two_runs_are_admitted_and_run_one_after_the_other(worker):
    gate, order = threading.Event(), []
    first = worker.register(lambda args: (gate.wait(30), order.append(1)))
    second = worker.register(lambda args: order.append(2))
    one = worker.submit(lambda orch, *_: orch.submit_sub(first))
    two = worker.submit(lambda orch, *_: orch.submit_sub(second))
    assert not one.done and not two.done
    gate.set()
    two.wait(30)
    assert one.done and order == [1, 2]


def test_levels_and_states():
    with pytest.raises(ValueError, match="device_ids"):
        Worker(level=3, platform="a2a3sim").init()
    with pytest.raises(NotImplementedError, match="level=4"):
        Worker(level=4, platform="a2a3sim").init()
    with pytest.raises(ValueError, match="level must be"):
        Worker(level=1).init()
