"""When calls share an artifact, and what lowering and compiling hand on."""

# Bodies rebind a result before they return it, as users write them.
# ruff: noqa: RET504

from __future__ import annotations

import pypto.language as pl
import pytest
from pypto.jit import lowering
from pypto.jit.cache_key import cache_key
from pypto.passes import CallbackInstrument, MemoryPlanner, PassContext, ReportInstrument
from pypto.runtime import RunConfig

from pypto import backend, ir

torch = pytest.importorskip("torch")

ROWS = pl.dynamic("ROWS")
SCALE = 2.0


@pl.jit.incore
def scaled(a: pl.Tensor, out: pl.Out[pl.Tensor]):
    out = pl.store(pl.mul(pl.load(a, [0, 0], [8, 16]), SCALE), [0, 0], out)
    return out


@pl.jit
def entry(a: pl.Tensor[[ROWS, 16], pl.FP32], out: pl.Out[pl.Tensor[[ROWS, 16], pl.FP32]]):
    out = scaled(a, out)
    return out


@pl.jit
def with_number(a: pl.Tensor, n: pl.Scalar[pl.INT32], out: pl.Out[pl.Tensor]):
    out = scaled(a, out)
    return out


@pytest.fixture
def built(monkeypatch):
    """Compilation without code generation: each one gives a new object."""
    monkeypatch.setattr(entry, "_cache", {})
    monkeypatch.setattr(lowering, "compile_program", lambda program, config: (object(), program, config))


def zeros(*shape, dtype=torch.float32):
    return torch.zeros(shape, dtype=dtype)


def key(function, *args, config=None):
    bound = function._bind(args, {})
    return cache_key(function, bound.tensors, bound.constants, config)


@pytest.mark.usefixtures("built")
def test_equal_calls_share_the_artifact():
    first = entry.compile(zeros(8, 16), zeros(8, 16))
    assert entry.compile(zeros(8, 16), zeros(8, 16)) is first
    assert entry.compile(zeros(40, 16), zeros(40, 16)) is first, "ROWS is symbolic"
    assert entry.compile() is first, "the annotations say the same"
    assert entry.compile(zeros(8, 16), zeros(8, 16), config=RunConfig()) is first


@pytest.mark.parametrize(
    "config",
    [
        RunConfig(platform="a5sim"), RunConfig(memory_planner=MemoryPlanner.PTOAS), RunConfig(dump_ptoas_passes=True),
        RunConfig(analyze_auto_scopes_for_deps=True),
    ],
)  # fmt: skip
def test_the_configuration_separates(config):
    args = zeros(8, 16), zeros(8, 16)
    assert key(entry, *args) == key(entry, *args, config=RunConfig())
    assert key(entry, *args) != key(entry, *args, config=config)


def test_run_options_do_not_separate():
    args = zeros(8, 16), zeros(8, 16)
    assert key(entry, *args) == key(entry, *args, config=RunConfig(device_id=3, rtol=0.5))


def test_types_and_scalars_separate():
    args = zeros(8, 16), 1, zeros(8, 16)
    base = key(with_number, *args)
    assert key(with_number, zeros(8, 16), 2, zeros(8, 16)) != base
    assert key(with_number, zeros(8, 16), True, zeros(8, 16)) != base
    assert key(with_number, zeros(16, 16), 1, zeros(8, 16)) != base
    assert key(with_number, zeros(8, 16, dtype=torch.float16), 1, zeros(8, 16)) != base


def test_captured_numbers_separate(monkeypatch):
    args = zeros(8, 16), zeros(8, 16)
    before, text = key(entry, *args), ir.python_print(entry.specialize(*args))
    monkeypatch.setattr(f"{__name__}.SCALE", 3.0)
    assert key(entry, *args) != before
    assert ir.python_print(entry.specialize(*args)) == text.replace("2.0", "3.0")


def test_an_active_context_separates():
    args = zeros(8, 16), zeros(8, 16)
    before = key(entry, *args)
    with PassContext([], memory_planner=MemoryPlanner.PTOAS):
        assert key(entry, *args) != before


# -- lowering ----------------------------------------------------------------------------------------------------


def test_lowering_runs_the_passes_and_caches_nothing():
    seen = []
    observer = CallbackInstrument(before_pass=lambda p, _: seen.append(p.get_name()), name="observer")
    cached = len(entry._cache)
    with PassContext([observer]):
        program = entry.lower(zeros(8, 16), zeros(8, 16))
    assert isinstance(program, ir.Program)
    assert "ConvertTensorToTileOps" in seen
    assert len(entry._cache) == cached


def test_an_explicit_configuration_selects_a_free_target():
    backend.reset_for_testing()
    entry.lower(zeros(8, 16), zeros(8, 16))
    assert not backend.is_backend_configured()
    entry.lower(zeros(8, 16), zeros(8, 16), config=RunConfig(platform="a5sim"))
    assert backend.get_backend_type() is backend.BackendType.Ascend950


def test_lowering_writes_no_reports(tmp_path):
    config = RunConfig(save_kernels_dir=str(tmp_path / "artifact"), dump_passes=True)
    with PassContext([ReportInstrument(str(tmp_path / "report"))]):
        entry.lower(zeros(8, 16), zeros(8, 16), config=config)
    assert list(tmp_path.iterdir()) == []


def test_lowering_refuses_two_sources_of_an_option():
    config = RunConfig(memory_planner=MemoryPlanner.PTOAS)
    with PassContext([]), pytest.raises(RuntimeError, match=r"lower\(\) was called with memory_planner"):
        entry.lower(zeros(8, 16), zeros(8, 16), config=config)


def test_errors_of_passes_use_the_names_of_the_user(monkeypatch):
    def fail(program, config):
        raise ValueError("pass rejected 'out_v1' and 'out_v1__ssa_v0', not 'out_v12'")

    monkeypatch.setattr(lowering, "lower", fail)
    with pytest.raises(ValueError, match="rejected 'out' and 'out__ssa_v0', not 'out_v12'"):
        entry.lower(zeros(8, 16), zeros(8, 16))


def test_an_unusable_external_assembler_means_source_only(monkeypatch, tmp_path):
    monkeypatch.setenv("PTOAS_ROOT", str(tmp_path / "missing"))
    compiled = entry.compile(
        zeros(8, 16), zeros(8, 16), config=RunConfig(save_kernels_dir=str(tmp_path / "artifact"), rtol=0.25)
    )
    assert compiled.output_dir is not None
    assert list((tmp_path / "artifact").rglob("*.pto"))


def test_bound_arguments_are_known_by_parameter():
    names, arguments, tensors, constants, dtypes, dims = entry._bind((zeros(8, 16), zeros(8, 16)), {})
    assert (names, len(arguments), constants, dtypes) == (["a", "out"], 2, {}, {})
    assert dims["a", 0] == "ROWS"
    assert tensors["a"].shape == (None, 16) and tensors["a"].dynamic_dim_indices() == {0}
    assert entry._bind((), {}).tensors == tensors, "the annotations say the same"
    assert with_number._bind((zeros(8, 16), 3, zeros(8, 16)), {}).scalar_dtypes == {"n": pl.INT32}


def test_the_key_follows_the_files_of_external_kernels(tmp_path):
    source, quoted, headers = tmp_path / "k.cpp", tmp_path / "impl.inc", tmp_path / "include"
    headers.mkdir()
    (headers / "config.h").write_text("// one\n")
    quoted.write_text('#include "impl.inc"\n// one\n')
    source.write_text('#include "impl.inc"\n#include "absent.h"\n#include <config.h>\n')

    def entry_with(dirs):
        @pl.jit.extern(core_type="aiv", source=source, include_dirs=dirs)
        def external(a: pl.Tensor, out: pl.Out[pl.Tensor]): ...

        @pl.jit
        def calls_it(a: pl.Tensor, out: pl.Out[pl.Tensor]):
            out = external(a, out)
            return out

        return calls_it

    function = entry_with([headers])
    seen = {function.source_hash, entry_with([]).source_hash}
    for path in (source, quoted, headers / "config.h"):
        path.write_text(path.read_text() + "// two\n")
        seen.add(function.source_hash)
    assert len(seen) == 5
    assert function.source_hash in seen
