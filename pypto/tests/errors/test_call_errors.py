"""Wrong options, configurations and arguments of compiled programs, workers and JIT entries."""

from __future__ import annotations

import ctypes
import runpy
from decimal import Decimal

import numpy as np
import pypto.language as pl
import pytest
import torch
from pypto.backend import BackendType
from pypto.passes import PassContext, VerificationLevel
from pypto.runtime import ChipWorker, DeviceTensor, RunConfig

from pypto import ir


@pl.program
class Scale:
    @pl.function(type=pl.FunctionType.InCore)
    def kernel(
        self, x: pl.Tensor[[32, 64], pl.FP32], by: pl.Scalar[pl.FP32], y: pl.Out[pl.Tensor[[32, 64], pl.FP32]]
    ) -> pl.Tensor[[32, 64], pl.FP32]:
        return pl.store(pl.mul(pl.load(x, [0, 0], [32, 64]), by), [0, 0], y)

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self, x: pl.Tensor[[32, 64], pl.FP32], by: pl.Scalar[pl.FP32], y: pl.Out[pl.Tensor[[32, 64], pl.FP32]]
    ) -> pl.Tensor[[32, 64], pl.FP32]:
        return self.kernel(x, by, y)


@pl.jit
def add_one(x: pl.Tensor, y: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        y[:] = pl.add(x, 1.0)
    return y


def x() -> torch.Tensor:
    return torch.ones(32, 64)


@pytest.fixture
def scale():
    """An artifact that is never run: its arguments are refused before anything is compiled to machine code."""
    return ir.compile(Scale, dump_passes=False)


WRONG_ARGUMENTS = {
    "none": ((), TypeError, "expects 3 (in-place) or 2 (return) arguments, got 0. Parameters: ['x', 'by', 'y']"),
    "one": ((x(),), TypeError, "got 1"),
    "too many": ((x(), 2.0, x(), x()), TypeError, "got 4"),
    "text for a tensor": (("x", 2.0), TypeError, "parameter 'x' (position 0) expects a torch.Tensor, got str"),
    "array for a tensor": ((x().numpy(), 2.0), TypeError, "got ndarray"),
    "None for a tensor": ((x(), 2.0, None), TypeError, "'y' (position 2) expects a torch.Tensor, got NoneType"),
    "tensor for a scalar": ((x(), torch.ones(1)), TypeError, "'by' (position 1) expects a number of type fp32"),
    "text for a scalar": ((x(), "2"), TypeError, "expects a number of type fp32, got str"),
    "other ctypes class": ((x(), ctypes.c_int32(2)), TypeError, "expects c_float, got c_int"),
    "half precision": ((x().half(), 2.0), TypeError, "expects dtype torch.float32, got torch.float16; convert it with"),
    "double precision": ((x().double(), 2.0), TypeError, "got torch.float64"),
    "fewer rows": ((torch.ones(16, 64), 2.0), ValueError, "'x' (position 0) expects shape [32, 64], got [16, 64]"),
    "another rank": ((torch.ones(2048), 2.0), ValueError, "expects shape [32, 64], got [2048]"),
    "output of another shape": ((x(), 2.0, torch.ones(32, 32)), ValueError, "'y' (position 2) expects shape [32, 64]"),
    "transposed": ((torch.ones(64, 32).t(), 2.0), ValueError, "is not contiguous. Call .contiguous()"),
    "strided": ((torch.ones(32, 128)[:, ::2], 2.0), ValueError, "Tensor at position 0 is not contiguous"),
    "expanded output": ((x(), 2.0, torch.zeros(1, 64).expand(32, 64)), ValueError, "position 2 is not contiguous"),
    "other device": ((torch.ones(32, 64, device="meta"), 2.0), ValueError, "is on device 'meta'; move it to the CPU"),
    "sparse": ((x().to_sparse(), 2.0), ValueError, "has layout torch.sparse_coo"),
    "configuration of another kind": ((x(), 2.0, x()), TypeError, "config must be a pypto.runtime.RunConfig, got dict"),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG_ARGUMENTS)
def test_arguments_are_refused_before_anything_runs(scale, case, monkeypatch):
    monkeypatch.setattr(scale, "assembled", lambda platform: pytest.fail("the kernels were compiled"))
    args, error, message = WRONG_ARGUMENTS[case]
    config = {"platform": "a2a3sim"} if "configuration" in case else None
    with pytest.raises(error) as caught:
        scale(*args, config=config)
    assert message in str(caught.value)


def test_a_worker_says_the_same(scale):
    with ChipWorker(RunConfig()) as worker:
        for case in ("half precision", "transposed", "text for a scalar", "one"):
            args, error, message = WRONG_ARGUMENTS[case]
            with pytest.raises(error) as caught:
                worker.run(scale, *args)
            assert message in str(caught.value)
        with pytest.raises(ValueError, match="is freed or belongs to another worker"):
            worker.run(scale, DeviceTensor(4096, (32, 64), torch.float32), 2.0, x())
        tensor = worker.alloc_tensor((16, 64), torch.float32)
        with pytest.raises(TypeError, match=r"'x' expects shape \[32, 64\], got \[16, 64\]"):
            worker.run(scale, tensor, 2.0, x())
        with pytest.raises(ValueError, match="the program is for platform 'a5sim', the worker runs 'a2a3sim'"):
            worker.run(scale, x(), 2.0, config=RunConfig(platform="a5sim"))
    assert torch.equal(scale(x(), 2.0), x() * 2)


def test_a_worker_that_is_closed_says_so(scale):
    worker = ChipWorker(RunConfig())
    worker.close()
    for call in (lambda: worker.run(scale, x(), 1.0), lambda: worker.malloc(64), lambda: worker.register(scale)):
        with pytest.raises(RuntimeError, match=r"not initialised; call init\(\) first"):
            call()


def test_numbers_that_do_not_fit():
    @pl.jit
    def shifted(x: pl.Tensor, by: pl.INT32, y: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            y[:] = pl.add(x, pl.cast(by, pl.FP32))
        return y

    with pytest.raises(ValueError, match=r"'by' \(position 1\) is int32, which cannot hold 1099511627776"):
        shifted(x(), 2**40, x())
    with pytest.raises(TypeError, match=r"'by' \(position 1\) expects an integer, got 2\.5"):
        shifted(x(), 2.5, x())


def test_numbers_of_other_libraries_are_numbers(scale):
    assert torch.equal(scale(x(), np.float32(2)), x() * 2)
    assert torch.equal(scale(x(), np.int64(3)), x() * 3)
    with pytest.raises(ValueError, match=r"'by' \(position 1\) is fp32, which cannot hold 1000"):
        scale(x(), 10**400)
    for wrong in (1j, Decimal(2), [2.0], None, object()):
        with pytest.raises(TypeError, match=rf"expects a number of type fp32, got {type(wrong).__name__}"):
            scale(x(), wrong)


WRONG_MEMORY = {
    "no address": (lambda w, p: w.copy_to(p, None, 16), ValueError, "src_host_ptr must be an address"),
    "null": (lambda w, p: w.copy_from(0, p, 16), ValueError, "dst_host_ptr must be an address, a positive int, got 0"),
    "text as an address": (lambda w, p: w.copy_to("p", p, 16), ValueError, "dst_dev_ptr must be an address"),
    "negative length": (lambda w, p: w.copy_to(p, p, -1), ValueError, "nbytes must be an int >= 0, got -1"),
    "fractional length": (lambda w, p: w.copy_from(p, p, 1.5), ValueError, "nbytes must be an int >= 0"),
    "past the end": (lambda w, p: w.copy_to(p + 60, p, 16), ValueError, "16 bytes at .* are not inside an allocation"),
    "interior pointer": (lambda w, p: w.free(p + 4), ValueError, "is not the start of an allocation"),
    "free nothing": (lambda w, p: w.free(None), ValueError, "ptr must be an address"),
    "too much memory": (lambda w, p: w.malloc(2**63), MemoryError, "cannot allocate 9223372036854775808 bytes"),
    "shape of another kind": (lambda w, p: w.alloc_tensor(4, torch.float32), TypeError, "a sequence of ints, got int"),
    "dtype of another kind": (lambda w, p: w.alloc_tensor((4,), "float32"), TypeError, "a torch.dtype, got str"),
    "init of another kind": (
        lambda w, p: w.alloc_tensor((4,), torch.float32, init=[1.0] * 4), TypeError, "init must be a torch.Tensor",
    ),
    "free no tensor": (lambda w, p: w.free_tensor(p), TypeError, "expects a DeviceTensor, got int"),
    "run no program": (lambda w, p: w.run(add_one, x(), x()), TypeError, "a worker runs a CompiledProgram, got"),
    "register no program": (lambda w, p: w.register("scale"), TypeError, "a worker runs a CompiledProgram, got str"),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG_MEMORY)
def test_memory_of_a_worker_that_is_misused(case):
    call, error, message = WRONG_MEMORY[case]
    with ChipWorker(RunConfig()) as worker:
        pointer = worker.malloc(64)
        with pytest.raises(error, match=message):
            call(worker, pointer)
        worker.free(pointer)


def test_options_of_another_kind():
    for name in ("enable_dump_args", "enable_pmu"):
        with pytest.raises(TypeError, match=f"{name} must be a number, got str"):
            RunConfig(**{name: "2"})
    for wrong in (3, "UnusedControlFlowResult", [1]):
        with pytest.raises(TypeError, match="DiagnosticCheck"):
            ir.compile(Scale, dump_passes=False, disabled_diagnostics=wrong)


@pytest.mark.parametrize("platform", ["a2a3sim", "torch"])
def test_tensors_that_disagree_on_a_shared_extent(platform):
    rows = pl.dynamic("rows")

    @pl.jit
    def add_ten(x: pl.Tensor[[rows, 64], pl.FP32], y: pl.Out[pl.Tensor[[rows, 64], pl.FP32]]):
        for row in pl.range(0, rows, 16):
            with pl.at(level=pl.Level.CORE_GROUP):
                y = pl.store(pl.add(pl.load(x, [row, 0], [16, 64]), 10.0), [row, 0], y)
        return y

    config = RunConfig(platform=platform)
    with pytest.raises(ValueError, match="'x' and 'y' share the run-time extent rows, but got 64 and 32"):
        add_ten(torch.ones(64, 64), torch.zeros(32, 64), config=config)
    y = torch.zeros(64, 64)
    add_ten(torch.ones(64, 64), y, config=config)
    assert torch.equal(y, torch.full((64, 64), 11.0))
    if platform != "torch":
        loaded = ir.CompiledProgram.from_dir(add_ten.compile(x(), x(), config=config).output_dir)
        with pytest.raises(ValueError, match="share the run-time extent rows"):
            loaded(torch.ones(64, 64), torch.zeros(32, 64))


def test_more_tensors_than_a_task_carries(tmp_path):
    names = [f"a{number}" for number in range(40)]
    loads = "".join(f"        t = pl.add(t, pl.load({name}, [0, 0], [32, 64]))\n" for name in names)
    (tmp_path / "many.py").write_text(
        f"import pypto.language as pl\n\n@pl.jit\ndef many({', '.join(f'{n}: pl.Tensor' for n in names)}, "
        "y: pl.Out[pl.Tensor]):\n    with pl.at(level=pl.Level.CORE_GROUP):\n"
        f"        t = pl.load(a0, [0, 0], [32, 64])\n{loads}        y = pl.store(t, [0, 0], y)\n    return y\n"
    )
    many = runpy.run_path(str(tmp_path / "many.py"))["many"]
    with pytest.raises(RuntimeError, match="'many_incore_0' takes 41 tensors, but a task can carry 32"):
        many(*(x() for _ in names), x())


def test_hardware_platforms_name_the_simulator(scale, monkeypatch):
    monkeypatch.delenv("PYPTO_SIM_FALLBACK", raising=False)
    with pytest.raises(RuntimeError, match=r"needs the a2a3 hardware.*'a2a3sim'.*PYPTO_SIM_FALLBACK=1"):
        scale(x(), 2.0, config=RunConfig(platform="a2a3"))
    with pytest.raises(RuntimeError, match="needs the a5 hardware"):
        add_one(x(), x(), config=RunConfig(platform="a5"))


def test_no_entry_to_run(tmp_path):
    @pl.program
    class Helper:
        @pl.function
        def double(self, x: pl.Tensor[[32, 64], pl.FP32]):
            return pl.mul(x, 2.0)

    with pytest.raises(FileNotFoundError, match="has no Orchestration function to start at"):
        ir.compile(Helper, dump_passes=False)(x())


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"platform": "a9"}, ValueError, "Unknown platform 'a9': expected one of 'a2a3sim', 'a2a3', 'a5sim', 'a5'"),
        ({"platform": None}, ValueError, "Unknown platform 'None'"),
        ({"platform": ["a2a3sim"]}, ValueError, "Unknown platform"),
        ({"platfrom": "a2a3sim"}, TypeError, "unexpected keyword argument 'platfrom'"),
        ({"enable_chip_swimlane": 5}, ValueError, "must be in 0..4, got 5"),
        ({"enable_chip_swimlane": "3"}, TypeError, "must be an int 0..4 or a bool, got str"),
        ({"ring_task_window": 1000}, ValueError, "ring_task_window must be a power of 2 >= 4, got 1000"),
        ({"ring_heap": 100}, ValueError, "ring_heap must be a power of 2 >= 1024 (bytes per ring), got 100"),
        ({"ring_dep_pool": [8, 8]}, ValueError, "exactly 4 entries (one per scope-depth ring), got 2"),
        ({"ring_dep_pool": True}, ValueError, "ring_dep_pool must be in [4, INT32_MAX], got True"),
        ({"ring_heap": [0, 5, 0, 0]}, ValueError, "(or 0 to keep default), got 5"),
    ],
)
def test_run_configurations(options, error, message):
    with pytest.raises(error) as caught:
        RunConfig(**options)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"platform": "a9"}, ValueError, "Unknown platform 'a9'"),
        ({"backend_type": "910B"}, TypeError, "backend_type must be a member of BackendType (Ascend910B, Ascend950)"),
        ({"verification_level": "full"}, TypeError, "must be a member of VerificationLevel (NONE, BASIC, ROUNDTRIP)"),
        ({"memory_planner": 1}, TypeError, "memory_planner must be a member of MemoryPlanner"),
        ({"diagnostic_phase": "late"}, TypeError, "diagnostic_phase must be a member of DiagnosticPhase"),
        ({"runtime": "ring"}, TypeError, "runtime must be a member of RuntimeKind"),
        ({"strategy": "fast"}, ValueError, "Unsupported optimization strategy: 'fast'"),
        ({"dump_passes": "all"}, TypeError, "a dump level is a PassDumpLevel or a bool, got str"),
    ],
)
def test_compile_options(options, error, message):
    with pytest.raises(error) as caught:
        ir.compile(Scale, **options)
    assert message in str(caught.value)


def test_what_is_no_program(tmp_path):
    function = Scale.get_function("kernel")
    for value, remedy in ((None, "@pl.program"), (function, r"ir\.Program\(\[kernel\]"), (add_one, r"own compile\(")):
        with pytest.raises(TypeError, match=rf"ir\.compile needs an ir\.Program, got \w+; .*{remedy}"):
            ir.compile(value)
    with pytest.raises(ValueError, match="program 'Empty' has no functions"):
        ir.compile(ir.Program([], "Empty", ir.Span.unknown()))
    (tmp_path / "file").write_text("")
    with pytest.raises(FileExistsError, match="file"):
        ir.compile(Scale, output_dir=tmp_path / "file")


def test_options_decided_by_an_active_context():
    with PassContext([]), pytest.raises(RuntimeError, match="Set the verification level on the existing PassContext"):
        ir.compile(Scale, verification_level=VerificationLevel.NONE)


def test_jit_calls(scale):
    with pytest.raises(TypeError, match=r"unexpected keyword argument 'skip_ptoas'"):
        add_one.compile(x(), x(), skip_ptoas=True)
    with pytest.raises(TypeError, match=r"config must be a pypto\.runtime\.RunConfig, got str"):
        add_one(x(), x(), config="a2a3sim")
    with pytest.raises(TypeError, match="multiple values for argument 'x'"):
        add_one(x(), x=x())
    with pytest.raises(TypeError, match=r"has a bare 'pl\.Tensor' annotation with no shape"):
        add_one.lower()
    with pytest.raises(TypeError, match=r"is a scalar; got torch\.Tensor of shape"):

        @pl.jit
        def scaled(x: pl.Tensor, by: pl.FP32, y: pl.Out[pl.Tensor]):
            with pl.at(level=pl.Level.CORE_GROUP):
                y[:] = pl.mul(x, by)
            return y

        scaled(x(), torch.ones(1), x())


def test_kernels_are_not_called_directly():
    @pl.jit.incore
    def kernel(x: pl.Tensor, y: pl.Out[pl.Tensor]):
        return pl.store(pl.load(x, [0, 0], [32, 64]), [0, 0], y)

    with pytest.raises(TypeError, match=r"@pl\.jit\.incore function 'kernel' is called from a @pl\.jit entry"):
        kernel(x(), x())


def test_the_target_of_a_process_is_one():
    from pypto import backend

    backend.reset_for_testing()
    backend.set_backend_type(BackendType.Ascend910B)
    with pytest.raises(ValueError, match="Backend type already set to Ascend910B, cannot change to Ascend950"):
        backend.set_backend_type(BackendType.Ascend950)
    with pytest.raises(TypeError, match=r"must be one of BackendType\.Ascend910B"):
        backend.get_backend_instance("a2a3")
