"""Calls served by the store of earlier processes; a second import of one file stands for the second process."""

from __future__ import annotations

import contextlib
import dataclasses
import importlib.util
import json

import pytest
from pypto.artifact import store
from pypto.jit import lowering, persistent
from pypto.jit.__main__ import main
from pypto.jit.cache_key import cache_key
from pypto.passes import PassContext
from pypto.runtime import RunConfig

import pypto

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
    for name in ("PYPTO_CACHE", "PYPTO_CACHE_DIR", "PYPTO_CACHE_READONLY"):
        monkeypatch.delenv(name, raising=False)
    yield
    pypto.configure_cache(None)


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


def place(entry, config=None):
    """The place of a call of ``entry`` in the store."""
    bound = entry._bind((torch.zeros(8, 16), torch.zeros(8, 16)), {})
    return persistent.place_of(entry, cache_key(entry, bound.tensors, bound.constants, config), config)


@contextlib.contextmanager
def counted(**expected):
    """Exactly these counters grow inside, times aside."""
    before = dataclasses.asdict(pypto.cache_stats())
    yield
    after = dataclasses.asdict(pypto.cache_stats())
    skipped = ("lookup_ns", "build_ns", "last_bypass_reason")
    assert {k: v - before[k] for k, v in after.items() if k not in skipped and v != before[k]} == expected


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
    with counted(forced_rebuilds=1):
        assert place(define()) is None


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


# -- settings ----------------------------------------------------------------------------------------------------


def test_every_request_is_counted_once(define):
    with counted(requests=1, misses=1, generation_builds=1, binary_builds=1):
        artifact(define())
    entry = define()
    with counted(requests=1, ready_hits=1):
        artifact(entry)
    with counted(requests=1, object_hits=1):
        artifact(entry)
    with counted(requests=1, forced_rebuilds=1, generation_builds=1, binary_builds=1):
        artifact(define(), config=RunConfig(dump_passes=True))
    class_body = "class Sizes:\n    ROWS = 8\n"
    with counted(requests=1, bypasses=1, generation_builds=1, binary_builds=1):
        artifact(define(extra=class_body, statement="x = Sizes.ROWS"))
    assert pypto.cache_stats().last_bypass_reason == "a value of type type"
    assert pypto.cache_stats().build_ns > 0


def test_counters_cannot_be_changed_from_outside():
    with pytest.raises(dataclasses.FrozenInstanceError):
        pypto.cache_stats().requests = 0


def test_the_call_wins_over_the_process_and_that_over_the_environment(define, monkeypatch, tmp_path):
    roots = {name: tmp_path / name for name in ("environment", "process", "call")}
    monkeypatch.setenv("PYPTO_CACHE_DIR", str(roots["environment"]))
    artifact(define())
    assert [name for name, root in roots.items() if root.exists()] == ["environment"]
    pypto.configure_cache(pypto.CacheConfig(enabled=True, root=roots["process"]))
    artifact(define())
    assert [name for name, root in roots.items() if root.exists()] == ["environment", "process"]
    call = RunConfig(cache_config=pypto.CacheConfig(enabled=True, root=str(roots["call"])))
    with counted(requests=1, misses=1, generation_builds=1, binary_builds=1):
        artifact(define(), config=call)
    with counted(requests=1, ready_hits=1):
        artifact(define(), config=call)
    pypto.configure_cache(pypto.CacheConfig())
    with counted(requests=1, disabled_requests=1, generation_builds=1, binary_builds=1):
        artifact(define())
    pypto.configure_cache(None)
    with counted(requests=1, ready_hits=1):
        artifact(define())


def test_a_read_only_store_serves_and_stays_as_it_is(define, monkeypatch, tmp_path):
    root = tmp_path / "root"
    monkeypatch.setenv("PYPTO_CACHE_DIR", str(root))
    artifact(define())
    before = sorted(root.rglob("*"))
    monkeypatch.setenv("PYPTO_CACHE_READONLY", "1")
    with counted(requests=1, ready_hits=1):
        artifact(define())
    with counted(requests=1, misses=1, generation_builds=1, binary_builds=1):
        artifact(define(factor=3.0))
    assert sorted(root.rglob("*")) == before
    monkeypatch.setenv("PYPTO_CACHE_READONLY", "yes")
    with pytest.raises(ValueError, match="PYPTO_CACHE_READONLY must be 0 or 1, got 'yes'"):
        artifact(define())


def test_extra_files_and_fingerprints_keep_entries_apart(define, tmp_path):
    folder = tmp_path / "tables"
    folder.mkdir()
    (folder / "a.txt").write_text("one")

    def name(**options):
        return place(define(), RunConfig(cache_config=pypto.CacheConfig(enabled=True, **options))).name

    names = [name(), name(extra_fingerprint="x"), name(extra_source_paths=[folder])]
    (folder / "a.txt").write_text("two")
    names.append(name(extra_source_paths=[folder]))
    (folder / "a.txt").rename(folder / "b.txt")
    names += [name(extra_source_paths=[folder]), name(extra_source_paths=[folder / "b.txt"])]
    assert len(set(names)) == len(names)
    assert name(extra_source_paths=[folder]) == names[4]


@pytest.mark.parametrize(
    "options",
    [{"enabled": 1}, {"root": 3}, {"readonly": "1"}, {"extra_source_paths": "a"}, {"extra_fingerprint": 1}],
    ids=str,
)
def test_wrong_settings_are_refused(options):
    with pytest.raises(TypeError, match=f"CacheConfig.{next(iter(options))} must be"):
        pypto.CacheConfig(**options)


def test_only_cache_configurations_configure(define):
    with pytest.raises(TypeError, match="takes a CacheConfig or None"):
        pypto.configure_cache(True)
    with pytest.raises(TypeError, match="cache_config must be a CacheConfig or None"):
        artifact(define(), config=RunConfig(cache_config=True))


def test_a_disk_that_cannot_be_written_does_not_fail_the_call(define, tmp_path):
    (tmp_path / "file").write_text("")
    config = RunConfig(cache_config=pypto.CacheConfig(enabled=True, root=tmp_path / "file"))
    with counted(requests=1, misses=1, generation_builds=1, binary_builds=1, storage_errors=1):
        assert artifact(define(), config=config).program is not None


# -- command line ------------------------------------------------------------------------------------------------


@pytest.fixture
def warm(tmp_path, monkeypatch, define):
    """Run ``warm`` for requests on an importable module; gives the exit status."""
    define()
    monkeypatch.syspath_prepend(str(tmp_path))

    def run(*requests, schema_version=1, **cache):
        (tmp_path / "requests.json").write_text(
            json.dumps({"schema_version": schema_version, "cache": cache, "requests": requests})
        )
        return main(["warm", "--module", "module_0", "--config", str(tmp_path / "requests.json")])

    return run


def request(dtype="FP32", **changes):
    tensors = {name: {"shape": [8, 16], "dtype": dtype} for name in ("a", "out")}
    return {"kernel": "entry", "tensors": tensors, **changes}


def test_warming_fills_the_store_and_stat_shows_it(warm, define, tmp_path, capsys, monkeypatch):
    root = tmp_path / "root"
    built = []
    monkeypatch.setattr("pypto.runtime.CompiledProgram.load", lambda self: built.append(self))
    assert warm(request(), request(run_config={"platform": "a5sim"}), root=str(root)) == 0
    assert capsys.readouterr().out.count("entry: ready after") == 2
    assert len(built) == 2
    assert main(["stat", "--root", str(root)]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["entries"] == 2 and shown["bytes"] > 0
    assert shown["compilers"] == {store.compiler_fingerprint(): {"entries": 2, "bytes": shown["bytes"]}}


@pytest.mark.parametrize(
    ("requests", "message"),
    [
        ([request(kernel="nothing")], "has no @pl.jit function 'nothing'"),
        ([request(dtype="FP33")], "unknown dtype 'FP33'"), ([request(colour=1)], "unknown key 'colour'"),
        ([request(run_config={"platform": "a9"})], "a9"), ([request(tensors={})], "cannot specialize"),
    ],
)  # fmt: skip
def test_wrong_requests_are_answered_with_an_error(warm, capsys, requests, message):
    assert warm(*requests) == 1
    answer = capsys.readouterr().err
    assert answer.startswith("error: ") and message in answer


def test_unknown_files_and_folders_are_answered_with_an_error(warm, capsys, tmp_path):
    assert warm(schema_version=2) == 1
    assert main(["stat", "--root", str(tmp_path / "missing")]) == 1
    assert main(["warm", "--module", "module_0", "--config", str(tmp_path / "missing")]) == 1
    assert capsys.readouterr().err.count("error: ") == 3
