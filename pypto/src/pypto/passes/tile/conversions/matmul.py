"""Matrix products: operands go to Mat, transposed ones through a zero-copy view."""

from __future__ import annotations

from typing import Any

from pypto.ir.enums import MemorySpace
from pypto.ir.expr import Call, Expr, Var
from pypto.passes.tile.conversions.registry import ConversionContext, is_tile, op_conversion


def _operand(ctx: ConversionContext, value: Expr, transposed: bool) -> Expr:
    """A product operand: global tensors are loaded to Mat here, at every use."""
    name = value.name_hint if isinstance(value, Var) else "operand"
    if not is_tile(value):
        value = ctx.let(f"{name}_mat", ctx.load_call(value, space=MemorySpace.Mat))
        name += "_mat"
    if not transposed:
        return value
    if value.type.memory_space is not MemorySpace.Mat:
        # A Vec tile cannot carry the layout of the view: move it in its natural shape first.
        value = ctx.emit(f"{name}_mat", "tile.move", [value], {"target_memory": MemorySpace.Mat})
        name += "_mat"
    return ctx.emit(f"{name}_t", "tile.transpose_view", [value])


def _is_batched(*operands: Expr) -> bool:
    return any(len(o.type.shape) > 2 for o in operands)


@op_conversion("tensor.matmul", loads_itself=True)
def _matmul(ctx: ConversionContext, args: list[Expr], kwargs: dict[str, Any], call: Call) -> Expr:
    lhs = _operand(ctx, args[0], bool(kwargs.get("a_trans")))
    rhs = _operand(ctx, args[1], bool(kwargs.get("b_trans")))
    return ctx.call("tile.batch_matmul" if _is_batched(lhs, rhs) else "tile.matmul", [lhs, rhs])


@op_conversion("tensor.matmul_acc", loads_itself=True)
def _matmul_acc(ctx: ConversionContext, args: list[Expr], kwargs: dict[str, Any], call: Call) -> Expr:
    acc = ctx.tile(args[0], "acc_tile")
    lhs = _operand(ctx, args[1], bool(kwargs.get("a_trans")))
    rhs = _operand(ctx, args[2], bool(kwargs.get("b_trans")))
    name = "tile.batch_matmul_acc" if _is_batched(acc, lhs, rhs) else "tile.matmul_acc"
    return ctx.call(name, [acc, lhs, rhs, *args[3:]])
