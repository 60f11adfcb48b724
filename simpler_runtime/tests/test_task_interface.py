"""The Python types of the task interface."""

from __future__ import annotations

import ctypes
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simpler_runtime import (
    Access,
    ArgDirection,
    Buffer,
    CallConfig,
    ChipCallable,
    ChipStorageTaskArgs,
    ChipTensor,
    CoreCallable,
    DataType,
    RuntimeEnv,
    TaskArgs,
    TensorArgType,
    Worker,
    arg_direction_name,
    get_dtype_name,
    get_element_size,
    make_chip_tensor_arg,
    parse_platform,
    scalar_to_uint64,
    span_prefix,
    torch_dtype_to_datatype,
)


def test_import_is_light_and_lazy():
    code = "import sys, simpler; assert 'torch' not in sys.modules; simpler.task_interface.DataType; simpler.CallConfig"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_element_types():
    assert [int(code) for code in DataType] == [*range(11), 12, 13, 14]
    assert get_element_size(DataType.INT64) == 8 and get_element_size(99) == 0
    assert (
        get_dtype_name(DataType.FP8E8M0) == "FP8E8M0"
        and get_dtype_name(11) == "BOOL"
        and get_dtype_name(99) == "UNKNOWN"
    )
    assert arg_direction_name(ArgDirection.INOUT) == "INOUT"
    with pytest.raises(KeyError, match="complex64"):
        torch_dtype_to_datatype(np.dtype("complex64"))


def test_platforms_and_levels():
    assert parse_platform("a5sim") == ("a5", "sim") and parse_platform("a2a3") == ("a2a3", "onboard")
    with pytest.raises(ValueError, match="a2a3, a2a3sim, a5, a5sim"):
        parse_platform("a3")
    assert span_prefix(3) == "node"
    for level in (1, 7, -1):
        with pytest.raises(ValueError, match="no span prefix"):
            span_prefix(level)
    with pytest.raises(RuntimeError, match="needs an accelerator"):
        Worker(level=2, platform="a5").init()


def test_call_config():
    config = CallConfig()
    config.enable_chip_swimlane = True
    assert config.enable_chip_swimlane == 4
    config.enable_chip_swimlane = 9
    config.enable_dump_args = True
    assert (config.enable_chip_swimlane, config.enable_dump_args) == (4, 1)
    with pytest.raises(ValueError, match="output_prefix"):
        CallConfig(enable_pmu=2).validate()
    with pytest.raises(ValueError, match="1024"):
        config.output_prefix = "x" * 1024
    with pytest.raises(AttributeError, match="no field"):
        config.enable_everything = True
    config.runtime_env.ring_heap = 4096
    assert config.runtime_env.ring_heap == [4096] * 4


def test_ring_sizes():
    env = RuntimeEnv()
    env.ring_task_window = [4, 0, 8, 16]
    env.validate()
    assert env.resolved()[0] == [4, 16384, 8, 16]
    for bad in ([1, 2, 3], "big", 1.5, True, -1, [1, 2, 3, 4.0]):
        with pytest.raises(ValueError, match="ring_heap"):
            env.ring_heap = bad
    for name, value in (("ring_task_window", 6), ("ring_task_window", 2), ("ring_heap", 1000), ("ring_dep_pool", 3)):
        with pytest.raises(ValueError, match=f"{name}.*{value}"):
            RuntimeEnv(**{name: value}).validate()


@given(st.integers(-(2**63), 2**64 - 1))
def test_integers_keep_their_low_64_bits(value):
    assert scalar_to_uint64(value) == value % 2**64


def test_scalar_packing():
    assert scalar_to_uint64(1.0) == 0x3F800000
    assert scalar_to_uint64(ctypes.c_int32(-1)) == 0xFFFFFFFF
    assert scalar_to_uint64(np.float64(1.0)) == 0x3F800000
    assert scalar_to_uint64(ctypes.c_double(1.0)) == 0x3FF0000000000000
    assert scalar_to_uint64(np.int16(-1)) == 0xFFFF
    assert scalar_to_uint64(True) == 1
    with pytest.raises(ValueError, match="64 bits"):
        scalar_to_uint64(2**64)
    with pytest.raises(TypeError, match="str"):
        scalar_to_uint64("1")


def test_chip_tensor():
    tensor = ChipTensor.make(4096, (2, 3), DataType.INT16)
    assert (tensor.ndims, tensor.strides, tensor.nbytes(), tensor.is_contiguous) == (2, (3, 1), 12, True)
    tensor.shapes = (6,)
    assert tensor.strides == (1,)
    assert len(tensor.pack()) == 128
    for shape in ((), (1,) * 6, (-1,)):
        with pytest.raises(ValueError):
            ChipTensor.make(0, shape, DataType.INT8)


def test_tensors_of_torch_and_numpy_share_their_memory():
    torch = pytest.importorskip("torch")
    source = torch.zeros(4, 6, dtype=torch.bfloat16)
    record = make_chip_tensor_arg(source[:, 1:3])
    assert (record.data, record.shapes, record.strides) == (source.data_ptr() + 2, (4, 2), (6, 1))
    assert record.dtype is DataType.BFLOAT16 and not record.is_contiguous
    assert make_chip_tensor_arg(torch.tensor(3.0)).shapes == (1,)
    with pytest.raises(ValueError, match="positive"):
        make_chip_tensor_arg(torch.zeros(1, 4).expand(3, 4))
    with pytest.raises(ValueError, match="positive"):
        make_chip_tensor_arg(np.zeros(4, np.float32)[::-1])
    with pytest.raises(KeyError):
        make_chip_tensor_arg(np.zeros(4, np.complex64))
    with pytest.raises(TypeError, match="list"):
        make_chip_tensor_arg([1, 2])


def test_argument_lists():
    args = ChipStorageTaskArgs()
    args.add_tensor(np.zeros(3, np.float32))
    args.add_scalar(7)
    assert (len(args), args.tensor_count(), args.scalar_count(), args.scalar(0), args[1], args[-1]) == (
        2,
        1,
        1,
        7,
        7,
        7,
    )
    with pytest.raises(RuntimeError, match="before any scalars"):
        args.add_tensor(np.zeros(3, np.float32))
    for call in (args.tensor, args.scalar):
        with pytest.raises(IndexError, match="out of range"):
            call(1)
    args.clear()
    assert len(args) == 0


def test_access_rules_of_tagged_arguments():
    buffer = Buffer.allocate(64, owner=None)
    buffer.access = Access.READ
    tensor = buffer.tensor((4, 4), DataType.FLOAT32)
    args = TaskArgs()
    args.add_tensor(tensor)
    for tag in (TensorArgType.INOUT, TensorArgType.OUTPUT_EXISTING):
        with pytest.raises(ValueError, match=tag.name):
            args.add_tensor(tensor, tag)
        with pytest.raises(ValueError, match=tag.name):
            args.set_tag(0, tag)
    args.set_tag(0, TensorArgType.NO_DEP)
    assert args.tag(0) is TensorArgType.NO_DEP
    with pytest.raises(ValueError, match="does not fit"):
        buffer.tensor((17,), DataType.FLOAT32)
    with pytest.raises(AttributeError):
        tensor.shapes = (1,)
    buffer.close()
    with pytest.raises(ValueError, match="freed"):
        tensor.address  # noqa: B018
    for size in (0, -1, True, 1.5):
        with pytest.raises(ValueError, match="positive int"):
            Buffer.allocate(size, owner=None)


def test_callables_describe_themselves_and_survive_a_round_trip():
    kernel = CoreCallable.build([ArgDirection.IN], b"kernel code", core_type="aiv", name="k")
    program = ChipCallable.build([ArgDirection.OUT], "entry", b"orchestration", [(3, kernel)], "config")
    assert (program.sig_count, program.sig(0), program.binary_size) == (1, ArgDirection.OUT, 13)
    assert (program.child_count, program.child_func_id(0), kernel.sig(0)) == (1, 3, ArgDirection.IN)
    twin = ChipCallable.from_bytes(program.to_bytes())
    assert twin.identity == program.identity and twin.children[0][1].code.content == b"kernel code"
    other = ChipCallable.build([ArgDirection.OUT], "entry", b"orchestration!", [(3, kernel)], "config")
    assert other.identity != program.identity
    with pytest.raises(IndexError):
        program.sig(1)
    with pytest.raises(ValueError, match="twice"):
        ChipCallable.build([], "e", b"x", [(1, kernel), (1, kernel)])
    with pytest.raises(ValueError, match=r"0\.\.1023"):
        ChipCallable.build([], "e", b"x", [(1024, kernel)])
    for raw in (b"", b"nonsense", program.to_bytes()[:-1]):
        with pytest.raises(ValueError):
            ChipCallable.from_bytes(raw)


def test_life_cycle_of_a_worker(lab):
    program = lab.build("", {}, count=0)
    worker = Worker(level=2, platform="a2a3sim")
    with pytest.raises(TypeError, match="ChipCallable"):
        worker.register(lambda: 0)
    handle = worker.register(program)
    with pytest.raises(RuntimeError, match="init"):
        worker.run(handle)
    worker.init()
    with pytest.raises(RuntimeError, match="init works once"):
        worker.init()
    worker.run(handle)
    with pytest.raises(TypeError, match="handle"):
        worker.run(program)
    twin = worker.register(program)
    worker.unregister(handle)
    worker.run(twin)
    worker.unregister(twin)
    with pytest.raises(RuntimeError, match="not registered"):
        worker.run(twin)
    worker.close()
    worker.close()
    with pytest.raises(RuntimeError, match="closed"):
        worker.run(twin)
    with pytest.raises(TypeError, match="unknown settings"):
        Worker(level=2, platfrom="a2a3sim")
    for timeout in (0, -1, float("inf"), "soon"):
        with pytest.raises(ValueError, match="startup_timeout_s"):
            Worker(level=2, startup_timeout_s=timeout)


def test_background_runs(lab):
    worker = lab.worker()
    handle = worker.register(lab.build('rt_report_fatal(9, "no");', {}, count=0))
    run = worker.submit(handle)
    with pytest.raises(ValueError, match="timeout"):
        run.wait(-1)
    for _ in range(2):
        with pytest.raises(RuntimeError, match="code -9"):
            run.result(30)
    assert run.done
    worker.unregister(handle)


def test_device_memory_of_one_chip(lab):
    torch = pytest.importorskip("torch")
    worker = lab.worker()
    source = torch.arange(16, dtype=torch.float32)
    device = worker.malloc(64)
    worker.copy_to(device, source)
    args = TaskArgs()
    args.add_tensor(device.tensor((16,), DataType.FLOAT32), TensorArgType.INOUT)
    body = 'const ChipTensor &x = orch_args.tensor(0).ref(); if (!x.is_device_memory()) rt_report_fatal(9, "host");'
    handle = worker.register(
        lab.build(
            body + "CoreTaskArgs a; a.add_inout(x); rt_submit_aiv_task(0, a);",
            {0: ("aiv", "for (int i = 0; i < 16; ++i) data<float>(args, 0)[i] += 1;")},
            count=1,
        )
    )
    worker.run(handle, args)
    result = torch.zeros(16)
    worker.copy_from(result, device)
    assert torch.equal(result, source + 1)
    with pytest.raises(TypeError, match="writable"):
        worker.copy_from(b"1234", device)
    worker.copy_from(memoryview(bytearray(8)), device)
    with pytest.raises(ValueError, match="do not fit"):
        worker.copy_to(device, torch.zeros(17))
    worker.free(device)
    with pytest.raises(ValueError, match="freed"):
        worker.copy_to(device, source)
    with pytest.raises(ValueError, match="does not belong"):
        worker.free(Buffer.allocate(4, owner=None))


def test_chip_driven_directly(lab):
    from simpler_setup import RuntimeBuilder

    from simpler_runtime import ChipWorker

    chip = ChipWorker()
    with pytest.raises(RuntimeError, match="init"):
        chip.malloc(4)
    chip.init(0, RuntimeBuilder("a5sim").get_binaries("tensormap_and_ringbuffer"))
    with pytest.raises(RuntimeError, match="once"):
        chip.init(0, None)
    source, result = np.arange(4, dtype=np.int32), np.zeros(4, np.int32)
    block = chip.malloc(16)
    chip.copy_to(block, source.ctypes.data, 16)
    body = "const ChipTensor &x = orch_args.tensor(0).ref(); CoreTaskArgs a; a.add_inout(x); rt_submit_aiv_task(0, a);"
    double = {0: ("aiv", "for (int i = 0; i < 4; ++i) data<int>(args, 0)[i] *= 2;")}
    handle = chip.register_callable(lab.build(body, double, count=1, platform="a5sim"))
    args = ChipStorageTaskArgs()
    args.add_tensor(ChipTensor.make(block, (4,), DataType.INT32, child_memory=True))
    chip.run(handle, args, aicpu_thread_num=2)
    chip.copy_from(result.ctypes.data, block, 16)
    np.testing.assert_array_equal(result, source * 2)
    with pytest.raises(ValueError, match=r"2\.\.5, got 6"):
        chip.run(handle, args, aicpu_thread_num=6)
    with pytest.raises(ValueError, match="not inside"):
        chip.copy_to(block, source.ctypes.data, 17)
    chip.unregister_callable(handle)
    chip.free(block)
    with pytest.raises(ValueError, match="malloc returned"):
        chip.free(block)
    chip.finalize()
    with pytest.raises(RuntimeError, match="finalize"):
        chip.malloc(4)


def test_forked_child_makes_its_own_worker(lab):
    worker = lab.worker()
    handle = worker.register(lab.build("", {}, count=0))
    code = """
import os, sys
from simpler_runtime import ChipCallable, Worker
program = ChipCallable.from_bytes(open(sys.argv[1], 'rb').read())
parent = Worker(level=2, platform='a2a3sim'); parent.init(); handle = parent.register(program); parent.run(handle)
child = os.fork()
if child == 0:
    try:
        parent.run(handle)
    except RuntimeError as error:
        assert 'another process' in str(error)
    else:
        os._exit(2)
    with Worker(level=2, platform='a2a3sim') as own:
        own.run(own.register(program))
    parent.close()
    sys.exit(0)
assert os.waitpid(child, 0)[1] == 0
parent.run(handle); parent.close()
"""
    path = lab._folder / "program.bin"
    path.write_bytes(handle.target.to_bytes())
    worker.unregister(handle)
    subprocess.run([sys.executable, "-c", code, str(path)], check=True, timeout=120)
