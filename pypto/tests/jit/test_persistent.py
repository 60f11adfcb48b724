"""Calls served by the store of earlier processes; a second import of one file stands for the second process."""

from __future__ import annotations

import importlib.util

import pytest
from pypto.artifact import store
from pypto.jit import lowering, persistent
from pypto.passes import PassContext
from pypto.runtime import RunConfig

torch = pytest.importorskip("torch")

SOURCE = """
import enum
import math
import pypto.language as pl

ROWS = {rows}
SHAPE = {shape}
DTYPE = pl.FP32
WIDTH = pl.dynamic("WIDTH")
{extra}

@pl.jit.incore
def twice(a: pl.Tensor, out: pl.Out[pl.Tensor]):
    out = pl.store(pl.mul(pl.load(a, [0, 0], SHAPE), {factor}), [0, 0], out)
    return out

@pl.jit
def entry(a: pl.Tensor, out: pl.Out[pl.Tensor]):
    {statement}
    out = twice(a, out)
    return out
"""


@pytest.fixture(autouse=True)
def places(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PTO_CACHE_DIR", str(tmp_path / "cache"))


@pytest.fixture
def define(tmp_path):
    """An entry of a freshly imported module; equal arguments give equal source."""
    count = iter(range(100))

    def make(rows=8, shape="[8, 16]", factor=2.0, statement="pass", extra=""):
        path = tmp_path / f"module_{next(count)}.py"
        path.write_text(SOURCE.format(rows=rows, shape=shape, factor=factor, statement=statement, extra=extra))
        spec = importlib.util.spec_from_file_location(path.stem, path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module.entry

    return make


def artifact(entry, *shape, config=None, dtype=torch.float32):
    tensors = [torch.zeros(shape or (8, 16), dtype=dtype) for _ in range(2)]
    return entry._runnable(entry._bind(tuple(tensors), {}), config)


def test_a_later_process_does_not_compile(define, monkeypatch):
    first = artifact(define())
    assert first.program is not None
    monkeypatch.setattr(lowering, "compile_program", None)
    again = artifact(define())
    assert again.program is None
    assert again.params == first.params
    assert again.output_dir != first.output_dir
    assert (again.output_dir / "kernel_config.py").exists()


def test_one_process_restores_once(define):
    artifact(define())
    entry = define()
    assert artifact(entry) is artifact(entry)


@pytest.mark.parametrize("change", [{"factor": 3.0}, {"rows": 9, "statement": "x = ROWS"}, {"shape": "[4, 16]"}])
def test_another_source_or_captured_value_is_another_program(define, change):
    unchanged = {"statement": "x = ROWS"} if "rows" in change else {}
    artifact(define(**unchanged))
    assert artifact(define(**unchanged)).program is None
    assert artifact(define(**change)).program is not None


def test_another_shape_or_type_is_another_program(define):
    artifact(define())
    assert artifact(define(), 16, 16).program is not None
    assert artifact(define(), dtype=torch.int32).program is not None


def test_compile_always_builds(define):
    artifact(define())
    entry = define()
    assert artifact(entry).program is None
    tensors = [torch.zeros(8, 16), torch.zeros(8, 16)]
    built = entry.compile(*tensors)
    assert built.program is not None
    assert artifact(entry) is built


@pytest.mark.parametrize(
    "options",
    [
        {"dump_passes": True}, {"enable_pmu": 1}, {"save_kernels_dir": "here"}, {"compile_profiling": True},
        {"dump_ptoas_passes": True}, {"platform": "torch"},
    ],
    ids=str,
)  # fmt: skip
def test_a_request_that_wants_files_is_compiled(options):
    assert persistent.serves(None)
    assert persistent.serves(RunConfig())
    assert not persistent.serves(RunConfig(**options))


@pytest.mark.parametrize(
    "name", ["PTOAS_ROOT", "PYPTO_PROG_BUILD_DIR", "PYPTO_VERIFY_LEVEL", "PYPTO_COMPILE_PROFILING"]
)
def test_an_environment_that_wants_a_fresh_compile_gets_it(define, monkeypatch, tmp_path, name):
    artifact(define())
    monkeypatch.setenv(name, "1" if name.endswith("PROFILING") else str(tmp_path / "x"))
    entry = define()
    bound = entry._bind((torch.zeros(8, 16), torch.zeros(8, 16)), {})
    from pypto.jit.cache_key import cache_key

    assert persistent.restore(entry, cache_key(entry, bound.tensors, bound.constants, None), None) is None


def test_an_active_pass_context_is_not_served(define):
    artifact(define())
    with PassContext([]):
        assert artifact(define()).program is not None


def test_the_store_can_be_switched_off(define, monkeypatch, tmp_path):
    monkeypatch.setenv("PYPTO_CACHE", "0")
    artifact(define())
    assert artifact(define()).program is not None
    assert not (tmp_path / "cache" / "programs").exists()
    monkeypatch.setenv("PYPTO_CACHE", "maybe")
    with pytest.raises(ValueError, match="PYPTO_CACHE must be 0 or 1, got 'maybe'"):
        artifact(define())


def test_values_without_a_stable_description_prevent_storing(define):
    class_body = "class Sizes:\n    ROWS = 8\n"
    artifact(define(extra=class_body, statement="x = Sizes.ROWS"))
    assert artifact(define(extra=class_body, statement="x = Sizes.ROWS")).program is not None


def test_a_damaged_entry_is_compiled_again(define):
    artifact(define())
    sidecar = artifact(define()).output_dir / "compiled_meta.json"
    good = sidecar.read_text()
    sidecar.write_text('{"schema": 99}'.ljust(len(good)))
    assert artifact(define()).program is not None
    sidecar.write_text(good)
    assert artifact(define()).program is None
    sidecar.write_text("{}")
    assert artifact(define()).program is not None
    assert artifact(define()).program is None


def test_a_wrong_configuration_is_refused_before_the_look_up(define):
    with pytest.raises(TypeError, match="config must be"):
        artifact(define(), config="fast")


@pytest.mark.parametrize(
    ("left", "right"),
    [(1, 1.0), (1, True), (0.0, -0.0), ("1", 1), ((1,), [1]), (None, "None"), ([1, [2]], [[1], 2]), ({1: 2}, {2: 1})],
)
def test_values_of_different_types_or_signs_differ(left, right):
    assert persistent._describe(left) != persistent._describe(right)
    assert persistent._describe(left) == persistent._describe(left)


def test_the_order_of_a_mapping_does_not_matter():
    assert persistent._describe({"a": 1, "b": 2}) == persistent._describe({"b": 2, "a": 1})


def test_published_entries_lie_below_the_fingerprint_of_the_compiler(define, tmp_path):
    artifact(define())
    (generation,) = (tmp_path / "cache" / "programs").iterdir()
    assert generation.name == store.compiler_fingerprint()
