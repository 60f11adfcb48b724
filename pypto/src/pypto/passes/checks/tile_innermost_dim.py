"""Performance hint PH001: transfers between global memory and tiles with short innermost rows."""

from __future__ import annotations

from collections import Counter

from pypto.ir.enums import is_incore_type
from pypto.ir.expr import Call, const_value
from pypto.ir.program import Program
from pypto.ir.types import TileType
from pypto.passes.context import DiagnosticPhase, backend_handler
from pypto.passes.diagnostics import Diagnostic, DiagnosticCheck, DiagnosticCheckRegistry, DiagnosticSeverity
from pypto.passes.lib.walk import iter_calls

_CODE = "PH001"


@DiagnosticCheckRegistry.register(
    DiagnosticCheck.TileInnermostDimGranularity, DiagnosticSeverity.PerfHint, DiagnosticPhase.POST_PIPELINE
)
def check_innermost_bytes(program: Program) -> list[Diagnostic]:
    """``tile.load`` and ``tile.store`` whose innermost bytes are below the backend's recommendation."""
    handler = backend_handler()
    if handler is None:
        return []
    hits: Counter[tuple[str, object]] = Counter()
    unknown: list[tuple[str, object]] = []
    for function in program.functions.values():
        if function.body is None or not is_incore_type(function.func_type):
            continue
        for _, call in iter_calls(function.body):
            text = _describe(call, handler)
            if text is None:
                continue
            if call.span.is_valid():
                hits[(text, call.span)] += 1
            else:
                unknown.append((text, call.span))
    records = [(f"{text} ({count} occurrences)" if count > 1 else text, s) for (text, s), count in hits.items()]
    return [Diagnostic(DiagnosticSeverity.PerfHint, _CODE, 0, t, s, _CODE) for t, s in records + unknown]


def _describe(call: Call, handler) -> str | None:
    name = call.op.name
    if name == "tile.load":
        tile = call.type
    elif name == "tile.store" and call.args:
        tile = call.args[0].type
    else:
        return None
    if not isinstance(tile, TileType) or not tile.shape:
        return None
    innermost = const_value(tile.shape[-1])
    wanted = handler.get_recommended_innermost_dim_bytes()
    if innermost is None:
        return None
    bits = tile.dtype.get_bit()
    row = innermost * bits // 8
    if row >= wanted:
        return None
    space = tile.memory_space.name if tile.memory_space else "unset"
    return (
        f"{name} moves {row} innermost bytes (tile {tile.dtype}[{innermost}], target_memory={space})"
        f"{_volume(tile, bits)}; recommended >= {wanted}B for backend {handler.arch} "
        f"(L2 cache line = {handler.get_l2_cache_line_bytes()}B)"
    )


def _volume(tile: TileType, bits: int) -> str:
    extents = [const_value(d) for d in tile.valid_shape]
    if None in extents:
        return ""
    rows = 1
    for extent in extents[:-1]:
        rows *= extent
    row_bytes = (extents[-1] * bits + 7) // 8
    return f", moves {rows * row_bytes}B as {rows} x {row_bytes}B rows"
