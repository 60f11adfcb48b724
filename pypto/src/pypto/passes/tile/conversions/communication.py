"""Remote transfers of whole tensors: a staging tile per transfer."""

from __future__ import annotations

from typing import Any

from pypto.errors import user_error
from pypto.ir.enums import MemorySpace
from pypto.ir.expr import Call, Expr, const_value
from pypto.ops.registry import find_op
from pypto.passes.tile.conversions.registry import (
    ConversionContext,
    elements,
    extents,
    is_tile,
    known_kwargs,
    op_conversion,
)


@op_conversion("pld.tensor.put", "pld.tensor.get", loads_itself=True)
def _transfer(ctx: ConversionContext, args: list[Expr], kwargs: dict[str, Any], call: Call) -> Expr:
    """``put``/``get`` through one staging tile, or two when pipelined."""
    leaf = call.op.name.rsplit(".", 1)[-1]
    if is_tile(args[2]) or is_tile(args[0]):
        raise user_error(
            f"pld.tensor.{leaf} transfers tensors in global memory, but an operand is a value computed on chip; store "
            "it to a tensor first, or write a computed value with pld.tensor.remote_store",
            span=call.span,
        )
    shape = [const_value(d) for d in (elements(args[5]) if len(args) > 5 else args[2].type.shape)]
    if None in shape:
        raise user_error(f"pld.tensor.{leaf} needs a static transfer shape", span=call.span)
    columns = shape[-1]
    rows = 1
    for extent in shape[:-1]:
        rows *= extent
    rows = kwargs.get("chunk_rows") or rows
    columns = kwargs.get("chunk_cols") or columns
    word = "tput" if leaf == "put" else "tget"
    names = [f"{word}_stage_ping", f"{word}_stage_pong"] if kwargs.get("pipeline") else [f"{word}_stage"]
    options = {"dtype": args[2].type.dtype, "target_memory": MemorySpace.Vec}
    stages = [ctx.emit(n, "tile.create", [extents([rows, columns])], options) for n in names]
    target = f"pld.tile.{leaf}"
    operands = [*args[:3], *stages, *args[3:]]
    return ctx.call(target, operands, known_kwargs(target, kwargs))


@op_conversion("pld.tensor.remote_store")
def _remote_store(ctx: ConversionContext, args: list[Expr], kwargs: dict[str, Any], call: Call) -> Expr:
    target = "pld.tile.remote_store"
    definition = find_op(target)
    names = [p.name for p in definition.params] if definition else []
    source = next((i for i, n in enumerate(names) if n in ("src", "tile", "source")), 0)
    operands = [ctx.tile(a, "remote_store_src") if i == source else a for i, a in enumerate(args)]
    return ctx.call(target, operands, known_kwargs(target, kwargs))
