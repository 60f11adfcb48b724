"""The compiled core: built on first use, loaded once per process, called through ctypes."""

from __future__ import annotations

import contextlib
import ctypes
import os
import threading
from functools import lru_cache
from pathlib import Path

from simpler_runtime.toolchain import INCLUDE_DIR, build_library

RING_COUNT = 4
CSRC_DIR = Path(__file__).parent / "csrc"
DIAGNOSTICS_DIR = CSRC_DIR / "diagnostics"
# The first use on a machine waits for this build: more optimisation takes half as long again, tasks are hardly faster.
_FLAGS = ("-O1", "-finline-small-functions")

_lock = threading.Lock()


def _unlock_after_fork() -> None:
    """A thread of the parent may have held the lock; it does not exist here."""
    global _lock
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_unlock_after_fork)
_library: ctypes.CDLL | None = None


class RunRequest(ctypes.Structure):
    """Mirrors SimplerRunRequest of csrc/c_api.cpp."""

    _fields_ = [
        ("tensors", ctypes.c_void_p),
        ("scalars", ctypes.c_void_p),
        ("tensor_count", ctypes.c_int32),
        ("scalar_count", ctypes.c_int32),
        ("task_window", ctypes.c_uint32 * RING_COUNT),
        ("heap", ctypes.c_uint64 * RING_COUNT),
        ("dep_pool", ctypes.c_uint32 * RING_COUNT),
        ("host_build_graph", ctypes.c_int32),
        ("serial", ctypes.c_int32),
        ("swimlane_level", ctypes.c_int32),
        ("dump_level", ctypes.c_int32),
        ("pmu_event", ctypes.c_int32),
        ("dep_gen", ctypes.c_int32),
        ("scope_stats", ctypes.c_int32),
        ("output_prefix", ctypes.c_char_p),
        ("create_diagnostics", ctypes.c_void_p),
        ("timing_markers", ctypes.c_int32),
        ("callable_hash", ctypes.c_uint64),
        ("interrupts_needed", ctypes.c_int32),
    ]


def library() -> ctypes.CDLL:
    """The core. Raises ToolchainError when it must be compiled and cannot be."""
    global _library
    with _lock:
        if _library is None:
            path = build_library(
                CSRC_DIR.glob("*.cpp"), include_dirs=[INCLUDE_DIR], flags=_FLAGS, name="the task runtime"
            )
            # Global: kernels resolve the weak functions of simulated_core.h against it.
            _library = _declare(ctypes.CDLL(str(path), mode=os.RTLD_GLOBAL | os.RTLD_NOW))
        return _library


@lru_cache(maxsize=1)
def diagnostics_factory() -> int:
    """Address of the function that creates the collectors of a run; their library is built on first use."""
    path = build_library(
        DIAGNOSTICS_DIR.glob("*.cpp"), include_dirs=[CSRC_DIR, INCLUDE_DIR], flags=_FLAGS, name="the diagnostics"
    )
    create = ctypes.CDLL(str(path), mode=os.RTLD_NOW).simpler_diagnostics_create
    return ctypes.cast(create, ctypes.c_void_p).value or 0


def load_in_background() -> None:
    """Start loading (and building) the core while the caller does something else; errors show at the first use."""
    if _library is None and not _lock.locked():
        threading.Thread(target=_load_quietly, name="simpler-core", daemon=True).start()


def _load_quietly() -> None:
    with contextlib.suppress(Exception):
        library()


def _declare(lib: ctypes.CDLL) -> ctypes.CDLL:
    pointer, text, i32 = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int32
    signatures = {
        "simpler_default_worker_count": (i32, []),
        "simpler_set_log_level": (None, [i32]),
        "simpler_device_create": (pointer, [i32, i32, i32]),
        "simpler_device_destroy": (None, [pointer]),
        "simpler_callable_load": (
            pointer,
            [
                text,
                text,
                text,
                i32,
                ctypes.POINTER(i32),
                ctypes.POINTER(text),
                ctypes.POINTER(text),
                ctypes.POINTER(i32),
                text,
                i32,
            ],
        ),
        "simpler_callable_free": (None, [pointer]),
        "simpler_interrupt": (None, [pointer]),
        "simpler_run": (i32, [pointer, pointer, ctypes.POINTER(RunRequest), text, i32]),
    }
    for name, (result, arguments) in signatures.items():
        function = getattr(lib, name)
        function.restype = result
        function.argtypes = arguments
    return lib
