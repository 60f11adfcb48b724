"""Allocation and creation of tiles."""

from __future__ import annotations

from pypto.codegen.pto.kernel import KernelEmitter
from pypto.codegen.pto.operators import call_span, emits, instruction, tile_operand
from pypto.codegen.pto.scalars import typed_value
from pypto.codegen.pto.types import signless_text
from pypto.ir import Span, Var
from pypto.ir.expr import Call


@emits("tile.alloc")
def alloc(emitter: KernelEmitter, call: Call, result: Var, span: Span) -> None:
    """Prints nothing: addresses come from the MemRefs of the tiles."""


@emits("tile.create")
def create(emitter: KernelEmitter, call: Call, result: Var, span: Span) -> None:
    emitter.alloc_tile(result, span)


@emits("tile.full", "tile.expands")
def full(emitter: KernelEmitter, call: Call, result: Var, span: Span) -> None:
    at = call_span(span, call)
    dtype = result.type.dtype
    out = emitter.alloc_tile(result, span)
    value = typed_value(emitter, call.args[1], dtype, span=at)
    instruction(emitter, "pto.texpands", [(value, signless_text(dtype))], [tile_operand(out)], at)
