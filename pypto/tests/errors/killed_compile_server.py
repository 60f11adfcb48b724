"""Forks compiles on request, so that a test can kill them without paying for the imports each time.

Every input line is ``<factor> <seconds> <stored>``: a child compiles and runs a kernel with this constant and is
killed, with its compilers, after that time; 0 lets it finish. ``stored`` 1 uses the store of compiled programs, 0 one
output folder for all. The answer is ``killed``, ``done`` or ``failed <message>``.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import traceback

import pypto.language as pl
import torch
from pypto.ir import CompiledProgram
from pypto.runtime import RunConfig


def entry(factor: float):
    """A program that no other factor shares."""

    @pl.jit
    def scaled(x: pl.Tensor, y: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            y[:] = pl.mul(x, factor)
        return y

    return scaled


def check_folder(folder: str) -> None:
    """What a killed compile left behind is no artifact, or a whole one."""
    try:
        artifact = CompiledProgram.from_dir(folder)
    except FileNotFoundError:
        return
    artifact(torch.ones(32, 64), torch.zeros(32, 64))


def compile_and_run(factor: float, stored: bool) -> None:
    x, y = torch.ones(32, 64), torch.zeros(32, 64)
    folder = os.environ.pop("PYPTO_PROG_BUILD_DIR")
    if stored:  # the call may be served by, and is published to, the store of compiled programs
        os.chdir(folder)
        entry(factor)(x, y)
    else:
        check_folder(os.path.join(folder, "same"))
        entry(factor)(x, y, config=RunConfig(save_kernels_dir=os.path.join(folder, "same")))
    assert torch.equal(y, x * factor), f"wrong result with factor {factor}"


def child(factor: float, stored: bool) -> None:
    os.setsid()
    torch.set_num_threads(1)
    try:
        compile_and_run(factor, stored)
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def serve(line: str) -> str:
    factor, seconds, stored = (float(word) for word in line.split())
    process = os.fork()
    if process == 0:
        child(factor, bool(stored))
    if seconds:
        watch = os.pidfd_open(process)
        select.select([watch], [], [], seconds)
        os.close(watch)
        try:
            os.killpg(process, signal.SIGKILL)
        except ProcessLookupError:
            os.kill(process, signal.SIGKILL)
    _, status = os.waitpid(process, 0)
    if os.WIFSIGNALED(status):
        return "killed"
    return "done" if status == 0 else f"failed with status {os.waitstatus_to_exitcode(status)}"


if __name__ == "__main__":
    # Children inherit the imports; nothing that starts threads may run here.
    entry(0.25).compile(torch.ones(32, 64), torch.zeros(32, 64))
    from pypto.runtime import binaries, worker  # noqa: F401

    import simpler_runtime  # noqa: F401

    for request in sys.stdin:
        print(serve(request), flush=True)
