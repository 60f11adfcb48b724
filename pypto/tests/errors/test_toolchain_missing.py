"""Machines without a C++ compiler, with a broken one, or with a cache that cannot be written."""

from __future__ import annotations

import stat
import sys

import pypto.language as pl
import pytest
import torch
from pypto.runtime import RunConfig

from simpler_runtime import ToolchainError, toolchain


def program():
    """A fresh entry: nothing of it is in the process or on the disk."""

    @pl.jit
    def add_one(x: pl.Tensor, y: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            y[:] = pl.add(x, 1.0)
        return y

    return add_one


@pytest.fixture
def bare_machine(tmp_path, monkeypatch):
    """An empty PATH, no ziglang wheel, an empty compile cache."""
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("PTO_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setitem(sys.modules, "ziglang", None)
    toolchain._find_compiler.cache_clear()
    yield tmp_path / "bin"
    toolchain._find_compiler.cache_clear()


def sample() -> list[torch.Tensor]:
    return [torch.ones(32, 64), torch.zeros(32, 64)]


def test_the_error_says_how_to_get_a_compiler(bare_machine):
    with pytest.raises(ToolchainError) as caught:
        program()(*sample())
    message = str(caught.value)
    for part in ("no C++ compiler found", "$CXX", "apt install g++", "pip install ziglang"):
        assert part in message
    assert isinstance(caught.value, RuntimeError)


def test_platform_torch_needs_none(bare_machine):
    x, y = sample()
    program()(x, y, config=RunConfig(platform="torch"))
    assert torch.equal(y, x + 1)


def test_compiling_without_running_needs_none(bare_machine):
    compiled = program().compile(*sample())
    assert (compiled.output_dir / "kernel_config.py").exists()


def test_a_compiler_that_does_not_exist(bare_machine, monkeypatch):
    monkeypatch.setenv("CXX", "no-such-compiler")
    with pytest.raises(ToolchainError, match=r"named by \$CXX was not found: 'no-such-compiler'. Correct or unset CXX"):
        program()(*sample())


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("echo licence expired >&2; exit 3", r"--version failed:\nlicence expired"),
        (
            '[ "$1" = --version ] && exit 0; echo out of licences >&2; exit 3',
            r"(?s)compiling .* failed.*out of licences",
        ),
        ('[ "$1" = --version ] && exit 0; kill -9 $$', "ended by signal 9; is there enough memory"),
    ],
)
def test_a_compiler_that_fails(bare_machine, monkeypatch, script, message):
    fake = bare_machine / "g++"
    fake.write_text(f"#!/bin/sh\n{script}\n")
    fake.chmod(fake.stat().st_mode | stat.S_IXUSR)
    with pytest.raises(ToolchainError, match=message):
        program()(*sample())


def test_a_cache_that_cannot_be_written(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("PTO_CACHE_DIR", str(tmp_path / "file" / "cache"))
    with pytest.raises(ToolchainError, match=r"cannot be written \(Not a directory\); set PTO_CACHE_DIR"):
        program()(*sample())
