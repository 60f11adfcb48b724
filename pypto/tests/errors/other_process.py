"""Uses compiled programs around a fork, or while the compile cache disappears: ``python other_process.py CASE``."""

from __future__ import annotations

import faulthandler
import os
import shutil
import sys
import threading

import pypto.language as pl
import torch
from pypto.runtime import ChipWorker, RunConfig

faulthandler.dump_traceback_later(170, exit=True)


def entry(number: float):
    @pl.jit
    def add(x: pl.Tensor, y: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            y[:] = pl.add(x, number)
        return y

    return add


def tensors() -> list[torch.Tensor]:
    return [torch.ones(32, 64), torch.zeros(32, 64)]


def right(run, number: float) -> None:
    x, y = tensors()
    run(x, y)
    assert torch.equal(y, x + number), y[0, 0]


def fork() -> None:
    one, two = entry(1.0), entry(2.0)
    right(one, 1.0)
    for _ in range(2):
        process = os.fork()
        if process == 0:
            try:
                right(one, 1.0)
                right(two, 2.0)
            except BaseException as error:
                print(error)
                os._exit(1)
            os._exit(0)
        print("child", os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]))
    right(two, 2.0)


def removed() -> None:
    one = entry(1.0)
    right(one, 1.0)
    compiled = one.compile(*tensors())
    shutil.rmtree(os.environ["PTO_CACHE_DIR"])
    right(one, 1.0)
    with ChipWorker(RunConfig()) as worker:
        right(lambda *args: worker.run(compiled, *args), 1.0)
    right(entry(2.0), 2.0)


def threads() -> None:
    entries = [entry(float(number)) for number in range(3)]
    failures: list[BaseException] = []

    def use(first: int) -> None:
        try:
            for step in range(12):
                number = (first + step) % 3
                right(entries[number], float(number))
        except BaseException as error:
            failures.append(error)

    users = [threading.Thread(target=use, args=(number,)) for number in range(6)]
    for user in users:
        user.start()
    for user in users:
        user.join()
    assert not failures, failures


{"fork": fork, "removed": removed, "threads": threads}[sys.argv[1]]()
print("done")
