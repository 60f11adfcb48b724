"""Emission of operators: one function per operator whose text is more than its mnemonic.

Every other tile operator prints as ``pto.<mnemonic> ins(operands) outs(result)`` from its definition.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pypto.codegen.pto.kernel import KernelEmitter, TileHandle
from pypto.codegen.pto.scalars import operand, typed_value
from pypto.codegen.pto.types import signless_text
from pypto.errors import InternalError, user_error
from pypto.ir import DataType, Expr, Span, TileType, Var
from pypto.ir.expr import Call, GlobalVar
from pypto.ir.types import ScalarType
from pypto.ops.registry import get_op

#: Emits the lines of one call; ``result`` is the assigned variable or None.
Emission = Callable[[KernelEmitter, Call, "Var | None", Span], None]
#: Emits a scalar-valued call and returns its SSA name.
ScalarEmission = Callable[[KernelEmitter, Call, str, Span], str]

EMISSIONS: dict[str, Emission] = {}
SCALAR_EMISSIONS: dict[str, ScalarEmission] = {}


def emits(*names: str) -> Callable[[Emission], Emission]:
    """Register the emission of operators that define a tile, a tensor or nothing."""

    def register(function: Emission) -> Emission:
        for name in names:
            EMISSIONS[name] = function
        return function

    return register


def emits_scalar(*names: str) -> Callable[[ScalarEmission], ScalarEmission]:
    """Register the emission of operators whose value is a scalar."""

    def register(function: ScalarEmission) -> ScalarEmission:
        for name in names:
            SCALAR_EMISSIONS[name] = function
        return function

    return register


def call_span(stmt_span: Span, call: Call) -> Span:
    """Location of an operation: the call's own span when it lies inside the statement's."""
    span = call.span
    inside = (
        span.is_valid()
        and span.filename == stmt_span.filename
        and span.begin_line >= stmt_span.begin_line
        and (stmt_span.end_line < 0 or span.begin_line <= stmt_span.end_line)
    )
    return span if inside else stmt_span


def emit_call(emitter: KernelEmitter, call: Call, result: Var | None, span: Span) -> None:
    """Lines of a tile, tensor or effect-only operator call."""
    if isinstance(call.op, GlobalVar):
        raise user_error(
            f"kernel '{emitter.function.name}' calls function '{call.op.name}', but a kernel cannot call other "
            "functions; make the callee @pl.inline, or call it from the orchestration",
            span=call_span(span, call),
        )
    emission = EMISSIONS.get(call.op.name, _plain)
    emission(emitter, call, result, span)


def emit_scalar_call(emitter: KernelEmitter, call: Call, hint: str, span: Span) -> str:
    emission = SCALAR_EMISSIONS.get(call.op.name)
    if emission is None:
        raise InternalError(
            f"operator {call.op.name} has no scalar emission in kernel '{emitter.function.name}'", span=span
        )
    return emission(emitter, call, hint, span)


def target(emitter: KernelEmitter, call: Call, result: Var | None, span: Span, **options: Any) -> TileHandle:
    """Handle of the result tile: the aliased operand's for in-place operators, else a new allocation."""
    if result is None:
        raise InternalError(f"the tile of {call.op.name} is not bound to a variable", span=span)
    definition = get_op(call.op.name)
    if definition.result_is_arg is not None:
        source = emitter.tile(call.args[definition.result_is_arg])
        if same_configuration(source.tile, result.type):
            emitter.tiles[result] = source
            return source
    return emitter.alloc_tile(result, span, **options)


def same_configuration(a: TileType, b: TileType) -> bool:
    """Same buffer shape, element type, space and layout."""
    x, y = a.get_effective_tile_view(), b.get_effective_tile_view()
    return (
        a.dtype == b.dtype
        and a.memory_space == b.memory_space
        and len(a.shape) == len(b.shape)
        and all(getattr(p, "value", p) == getattr(q, "value", q) for p, q in zip(a.shape, b.shape))
        and (x.blayout, x.slayout, x.fractal, x.pad) == (y.blayout, y.slayout, y.fractal, y.pad)
    )


def clause(operands: list[tuple[str, str]], attrs: str = "") -> str:
    """``%a, %b {attrs} : TA, TB``."""
    names = ", ".join(name for name, _ in operands)
    types = ", ".join(text for _, text in operands)
    return f"{names}{' ' + attrs if attrs else ''} : {types}"


def tile_operand(handle: TileHandle) -> tuple[str, str]:
    return handle.name, handle.type_text


def operands_of(emitter: KernelEmitter, args: list[Expr] | tuple, dtype: DataType | None, span: Span):
    """Tile operands by handle, scalar operands signless and converted to ``dtype`` when given."""
    found = []
    for arg in args:
        if isinstance(arg.type, TileType):
            found.append(tile_operand(emitter.tile(arg)))
        elif isinstance(arg.type, ScalarType):
            if dtype is not None:
                found.append((typed_value(emitter, arg, dtype, span=span), signless_text(dtype)))
            else:
                found.append(operand(emitter, arg, span=span))
        else:
            raise InternalError(f"operand of type {arg.type} has no text form", span=span)
    return found


def instruction(
    emitter: KernelEmitter,
    mnemonic: str,
    ins: list[tuple[str, str]],
    outs: list[tuple[str, str]],
    span: Span,
    *,
    ins_attrs: str = "",
    attrs: str = "",
) -> None:
    """``mnemonic ins(...) outs(...) {attrs}``."""
    tail = f" {attrs}" if attrs else ""
    emitter.line(f"{mnemonic} ins({clause(ins, ins_attrs)}) outs({clause(outs)}){tail}", span)


def _plain(emitter: KernelEmitter, call: Call, result: Var | None, span: Span) -> None:
    definition = get_op(call.op.name)
    if definition.pto is None:
        raise InternalError(f"operator {call.op.name} cannot be printed in kernel '{emitter.function.name}'", span=span)
    operation_span = call_span(span, call)
    out = target(emitter, call, result, span)
    args = definition.pto_operands(call) if definition.pto_operands else list(call.args)
    ins = operands_of(emitter, args, out.tile.dtype, operation_span)
    instruction(emitter, definition.pto, ins, [tile_operand(out)], operation_span)


def load_emissions() -> None:
    """Import the modules that register emissions."""
    from pypto.codegen.pto.operators import compute, cross_core, memory, movement, scalar_access, system
