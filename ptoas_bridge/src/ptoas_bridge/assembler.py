"""The assembler as one list of steps: parse, verify, passes, emit."""

from __future__ import annotations

from pathlib import Path

from .emit import emit_module
from .parser import parse_module
from .passes.pipes import lower_pipes
from .passes.sync import insert_sync
from .verify import verify_module
from .verify.allocation import check_level


def assemble(
    text: str,
    *,
    arch: str | None = "a3",
    level: str = "level3",
    enable_insert_sync: bool = True,
    filename: str = "<pto>",
    dump_dir: Path | None = None,
) -> str:
    """Translate `.pto` text to kernel C++. Raises AssemblerError for every mistake in the text."""
    module = parse_module(text, arch=arch, filename=filename)
    verify_module(module)
    check_level(module, level, automatic_sync=enable_insert_sync)
    lower_pipes(module)
    if enable_insert_sync:
        insert_sync(module)
    return emit_module(module)
