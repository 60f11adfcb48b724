"""Artifact folders that are incomplete, damaged or of another kind."""

from __future__ import annotations

import json
import os
import shutil

import pypto.language as pl
import pytest
import torch
from pypto.ir import CompiledProgram
from pypto.runtime import RunConfig


@pl.jit
def add_one(x: pl.Tensor, y: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        y[:] = pl.add(x, 1.0)
    return y


def sample() -> list[torch.Tensor]:
    return [torch.ones(32, 64), torch.zeros(32, 64)]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("artifact")
    add_one.compile(*sample(), config=RunConfig(save_kernels_dir=str(folder / "whole")))
    return folder / "whole"


@pytest.fixture
def artifact(whole, tmp_path):
    return shutil.copytree(whole, tmp_path / "artifact")


def sidecar(folder, **changes):
    path = folder / "compiled_meta.json"
    record = json.loads(path.read_text())
    for key, value in changes.items():
        if value is None:
            del record[key]
        else:
            record[key] = value
    path.write_text(json.dumps(record))


def test_a_copy_works(artifact):
    loaded = CompiledProgram.from_dir(artifact)
    assert torch.equal(loaded(torch.ones(32, 64)), torch.full((32, 64), 2.0))


@pytest.mark.parametrize("folder", ["absent", "."])
def test_a_folder_without_artifact(tmp_path, folder):
    with pytest.raises(FileNotFoundError, match=r"compiled_meta\.json not found: not a compiled program"):
        CompiledProgram.from_dir(tmp_path / folder)


@pytest.mark.parametrize("text", ["", "{", "nonsense", "\x00\x01", '{"schema": 1, "par'])
def test_a_sidecar_that_is_no_json(artifact, text):
    (artifact / "compiled_meta.json").write_text(text)
    with pytest.raises(ValueError, match=r"Invalid compiled_meta\.json in .*: not JSON .*; recompile the program"):
        CompiledProgram.from_dir(artifact)


def test_a_sidecar_that_is_no_text(artifact):
    (artifact / "compiled_meta.json").write_bytes(bytes(range(128, 256)))
    with pytest.raises(ValueError, match="not JSON"):
        CompiledProgram.from_dir(artifact)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"schema": 999}, r"Incompatible compiled_meta\.json schema 999 \(expected 1\)"),
        ({"schema": "1"}, "'schema' must be int, got str"),
        ({"params": None}, "missing key 'params'"),
        ({"params": {}}, "'params' must be list, got dict"),
        ({"params": ["x"]}, "a parameter is not an object"),
        ({"params": [{"name": "x", "direction": "In", "dtype": "fp32"}]}, "'x' has no 'shape'"),
        ({"params": [{"name": "x", "direction": "In", "shape": "8", "dtype": "fp32"}]}, "must be a list of integers"),
        ({"params": [{"name": "x", "direction": "Inn", "shape": [8], "dtype": "fp32"}]}, "unknown direction 'Inn'"),
        ({"params": [{"name": "x", "direction": "In", "shape": [8], "dtype": "fp33"}]}, "fp33"),
        ({"num_return_types": True}, "'num_return_types' must be int, got bool"),
        ({"backend_type": "Ascend1"}, "unknown backend_type 'Ascend1'"),
    ],
)
def test_a_sidecar_with_wrong_fields(artifact, changes, message):
    sidecar(artifact, **changes)
    with pytest.raises(ValueError, match=message) as caught:
        CompiledProgram.from_dir(artifact)
    assert "recompile" in str(caught.value)
    assert str(artifact) in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "in the file, 'RUNTIME_CONFIG' must be dict, but it is missing; recompile the program"),
        ("KERNELS = [", "was never closed"),
        ("RUNTIME_CONFIG = {}\nORCHESTRATION = {}\nKERNELS = []\n", "in RUNTIME_CONFIG, 'runtime' must be str"),
        ("RUNTIME_CONFIG = 1\nORCHESTRATION = 2\nKERNELS = 3\n", "'RUNTIME_CONFIG' must be dict, but it is int"),
        ("raise SystemExit(3)\n", "SystemExit"),
    ],
)
def test_a_damaged_manifest(artifact, text, message):
    (artifact / "kernel_config.py").write_text(text)
    with pytest.raises(ValueError, match=r"kernel_config\.py is not a valid manifest") as caught:
        CompiledProgram.from_dir(artifact)(*sample())
    assert message in str(caught.value)


def test_a_missing_source(artifact):
    for source in (artifact / "kernels").rglob("*.cpp"):
        source.unlink()
    with pytest.raises(RuntimeError, match=r"source file not found: .*\.cpp"):
        CompiledProgram.from_dir(artifact)(*sample())


def test_a_source_that_does_not_compile(artifact):
    source = next((artifact / "kernels").rglob("*.cpp"))
    source.write_text(source.read_text() + "\nint broken( {\n")
    with pytest.raises(
        RuntimeError, match=r"(?s)compiling add_one_incore_0 failed \(exit status \d+\).*error.*command: "
    ):
        CompiledProgram.from_dir(artifact)(*sample())


def test_a_distributed_folder_is_named(tmp_path):
    (tmp_path / "orchestration").mkdir()
    (tmp_path / "orchestration" / "host_orch.py").write_text("")
    with pytest.raises(ValueError, match=r"holds a distributed artifact; open it with DistributedCompiledProgram"):
        CompiledProgram.from_dir(tmp_path)


def test_a_folder_keeps_no_trace_of_a_failed_compile(tmp_path):
    @pl.jit
    def wide(x: pl.Tensor, y: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            pl.store(pl.load(x, [0, 0], [32, 5]), [0, 0], y)
        return y

    config = RunConfig(save_kernels_dir=str(tmp_path / "a"))
    with pytest.raises(RuntimeError, match="32-byte aligned"):
        wide.compile(*sample(), config=config)
    assert "32-byte aligned" in (tmp_path / "a" / "report" / "codegen_errors.txt").read_text()
    assert (tmp_path / "a" / "ptoas" / "wide_incore_0.pto").exists()
    with pytest.raises(FileNotFoundError, match=r"compiled_meta\.json"):
        CompiledProgram.from_dir(tmp_path / "a")
    add_one.compile(*sample(), config=config)
    assert not (tmp_path / "a" / "report" / "codegen_errors.txt").exists()
    assert os.listdir(tmp_path / "a" / "kernels")


@pytest.mark.parametrize("name", ["compiled_meta.json", "kernel_config.py"])
@pytest.mark.parametrize("other", ["folder", "pipe"])
def test_a_file_that_is_something_else(artifact, name, other):
    (artifact / name).unlink()
    (os.mkdir if other == "folder" else os.mkfifo)(artifact / name)  # reading a pipe would wait for a writer
    with pytest.raises(FileNotFoundError, match=f"{name} not found"):
        CompiledProgram.from_dir(artifact)(*sample())


def test_a_source_that_is_no_text(artifact):
    (source,) = (artifact / "kernels" / "aiv").glob("*.cpp")
    source.write_bytes(bytes(range(256)))
    with pytest.raises(RuntimeError, match="compiling add_one_incore_0 failed"):
        CompiledProgram.from_dir(artifact)(*sample())
