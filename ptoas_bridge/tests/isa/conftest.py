"""Builds the C++ drivers of the instruction tests (two compilers at a time) and calls them through ctypes."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
DRIVERS = HERE / "drivers"
INCLUDE = HERE.parents[1] / "src" / "ptoas_bridge" / "isa" / "include"
RUNTIME_INCLUDE = HERE.parents[2] / "simpler_runtime" / "src" / "simpler_runtime" / "include"
# The instruction headers choose register widths by target: PTO_ISA_MARCH=x86-64-v3 tests the AVX2 forms.
MARCH = os.environ.get("PTO_ISA_MARCH", "native")
# The flags of the task runtime, plus warnings.
FLAGS = ["-O3", "-std=gnu++17", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math"]
FLAGS += ["-fPIC", "-shared", "-Wall", "-Wextra", "-Werror"]

_pool = ThreadPoolExecutor(max_workers=2)
_builds: dict[tuple[str, str], Future[Path]] = {}


class Driver:
    """One driver library: every entry takes arrays, integers and floats and returns an error text or nothing."""

    def __init__(self, path: Path) -> None:
        self._library = ctypes.CDLL(str(path))

    def call(self, entry: str, arrays=(), numbers=(), scalars=()) -> None:
        """Run an entry; an instruction that refuses its operands raises RuntimeError with its message."""
        function = getattr(self._library, entry)
        function.restype = ctypes.c_char_p
        pointers = (ctypes.c_void_p * max(len(arrays), 1))(*(a.ctypes.data for a in arrays))
        integers = (ctypes.c_int64 * max(len(numbers), 1))(*numbers)
        floats = (ctypes.c_double * max(len(scalars), 1))(*scalars)
        message = function(pointers, integers, floats)
        if message is not None:
            raise RuntimeError(message.decode())


def _compiler() -> str | None:
    return shutil.which(os.environ.get("CXX", "g++")) or shutil.which("clang++")


def _build(name: str, march: str, folder: Path) -> Path:
    target = folder / f"{name}-{march}.so"
    command = [
        str(_compiler()),
        *FLAGS,
        f"-march={march}",
        f"-I{INCLUDE}",
        f"-I{RUNTIME_INCLUDE}",
        str(DRIVERS / f"{name}.cpp"),
        "-o",
        str(target),
        "-pthread",
    ]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"driver {name} does not compile:\n{done.stderr[:8000]}")
    return target


@pytest.fixture(scope="session")
def _build_folder(tmp_path_factory, request):
    folder = tmp_path_factory.mktemp("drivers")
    modules = {item.module for item in request.session.items if hasattr(item, "module")}
    modules = {module for module in modules if hasattr(module, "DRIVER")}
    for name, march in sorted({(module.DRIVER, march) for module in modules for march in _marches(module)}):
        _builds[name, march] = _pool.submit(_build, name, march, folder)
    return folder


def _marches(module) -> list[str]:
    """The targets of a module's driver: MARCH, and those of ALSO_MARCH that this machine runs."""
    cpuinfo = Path("/proc/cpuinfo")
    flags = cpuinfo.read_text() if MARCH == "native" and cpuinfo.exists() else ""
    return [MARCH, *(march for march, flag in getattr(module, "ALSO_MARCH", {}).items() if f" {flag} " in flags)]


def pytest_generate_tests(metafunc):
    if "driver" in metafunc.fixturenames and hasattr(metafunc.module, "ALSO_MARCH"):
        metafunc.parametrize("driver", _marches(metafunc.module), indirect=True, scope="module")


@pytest.fixture(scope="module")
def driver(request, _build_folder) -> Driver:
    """The library of the driver that the test module names in DRIVER."""
    if _compiler() is None:
        pytest.skip("no C++ compiler")
    return Driver(_builds[request.module.DRIVER, getattr(request, "param", MARCH)].result())


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20240607)
