"""The assembler as one list of steps: parse, verify, passes, emit."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from .dialect.ir import Module
from .dialect.printer import write_dump
from .emit import emit_module
from .errors import AssemblerError
from .parser import parse_module
from .passes.column_moves import rewrite_column_moves
from .passes.implicit_tmp import add_implicit_tmp
from .passes.inject_barriers import inject_barriers
from .passes.pipes import lower_pipes
from .passes.plan_memory import plan_memory
from .passes.remove_copies import remove_copies
from .passes.sync import insert_sync
from .verify import verify_module
from .verify.allocation import check_level

Step = Callable[[Module], None]
LEVELS = ("level1", "level2", "level3")


def assemble(
    text: str,
    *,
    arch: str | None = "a3",
    level: str = "level3",
    enable_insert_sync: bool = True,
    filename: str = "<pto>",
    dump_dir: Path | None = None,
) -> str:
    """Translate `.pto` text to kernel C++. Raises AssemblerError for every mistake in the text.

    `arch` is `a2`, `a3`, `a2a3` or `a5`; None takes the module's own attribute. Levels 1 and 2 plan memory, level 3
    takes the addresses of the text. With `dump_dir` the program is written there as text after every step.
    """
    if level not in LEVELS:
        raise AssemblerError(
            f"invalid --pto-level='{level}'. Expected 'level1', 'level2', or 'level3'.", stage="options"
        )
    with paused_collection():
        module = parse_module(text, arch=arch, filename=filename)
        for name, step in pipeline(level, "insert" if enable_insert_sync else "none"):
            step(module)
            if dump_dir is not None:
                write_dump(module, Path(dump_dir), name)
        return emit_module(module)


@contextmanager
def paused_collection() -> Iterator[None]:
    """No cyclic garbage collection meanwhile: everything built here lives to the end, so scanning it is wasted time."""
    running = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if running:
            gc.enable()


def pipeline(level: str, sync: str) -> list[tuple[str, Step]]:
    """The named steps between parsing and emission, in order; `sync` is `none`, `insert` or `barriers`."""
    steps: list[tuple[str, Step]] = [
        ("verify", verify_module),
        ("check_level", lambda module: check_level(module, level, automatic_sync=sync != "none")),
    ]
    steps.append(("column_moves", rewrite_column_moves))
    if level != "level3":
        steps += [("implicit_tmp", add_implicit_tmp), ("plan_memory", plan_memory)]
    steps += [("lower_pipes", lower_pipes), ("remove_copies", remove_copies)]
    if sync == "insert":
        steps.append(("insert_sync", insert_sync))
    elif sync == "barriers":
        steps.append(("inject_barriers", inject_barriers))
    return steps
