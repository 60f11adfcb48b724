"""Slices, windows, element access, assembly, creation and views."""

from __future__ import annotations

from typing import Any

from pypto.errors import user_error
from pypto.ir.enums import MemorySpace, TensorLayout
from pypto.ir.expr import Call, Expr, IterArg, Var, const_index, const_value
from pypto.ir.stmt import ForStmt, YieldStmt, seq
from pypto.ir.types import TensorType
from pypto.passes.lib.naming import base_name
from pypto.passes.tile.conversions.registry import (
    ConversionContext,
    elements,
    extents,
    is_tile,
    known_kwargs,
    op_conversion,
)


@op_conversion("tensor.slice", loads_itself=True)
def _slice(ctx: ConversionContext, args: list[Expr], kwargs: dict[str, Any], call: Call) -> Expr:
    source = args[0]
    if is_tile(source):
        return ctx.call("tile.slice", args, known_kwargs("tile.slice", kwargs))
    shape, offsets = elements(args[1]), elements(args[2])
    dropped = [const_value(d) for d in elements(args[4])] if len(args) > 4 else []
    valid = elements(args[3]) if len(args) > 3 else ()
    if not valid:
        remaining = iter(call.type.valid_shape)
        valid = tuple(const_index(1) if axis in dropped else next(remaining) for axis in range(len(shape)))
    space = MemorySpace.Mat if ctx.wants_mat else MemorySpace.Vec
    load = ctx.load_call(source, offsets, shape, valid, space)
    if kwargs.get("clamp"):
        load = ctx.call("tile.load", load.args, {**load.kwargs, "clamp": True})
    if not dropped:
        return load
    loaded = ctx.let(base_name(ctx.result.name_hint if ctx.result else "slice") + "__load", load)
    return ctx.call("tile.reshape", [loaded, extents(call.type.shape)])


@op_conversion("tensor.reshape", "tensor.set_validshape", loads_itself=True)
def _view(ctx: ConversionContext, args: list[Expr], kwargs: dict[str, Any], call: Call) -> Expr:
    name = call.op.name.replace("tensor.", "tile.")
    source = _on_chip(ctx, args[0])
    return ctx.call(name, [source, *args[1:]], known_kwargs(name, kwargs))


@op_conversion("tensor.reinterpret_view", loads_itself=True)
def _reinterpret(ctx: ConversionContext, args: list[Expr], kwargs: dict[str, Any], call: Call) -> Expr:
    kind = args[0].type
    view = kind.tensor_view if isinstance(kind, TensorType) else None
    if view is not None and (view.layout is not TensorLayout.ND or view.stride):
        raise user_error(
            "tensor.reinterpret_view in a kernel supports only packed ND tensors: the bytes of another layout are not "
            "contiguous along the last axis",
            span=call.span,
        )
    source = _on_chip(ctx, args[0])
    return ctx.call("tile.reinterpret_view", [source, *args[1:]], known_kwargs("tile.reinterpret_view", kwargs))


def _on_chip(ctx: ConversionContext, value: Expr) -> Expr:
    if is_tile(value):
        return value
    space = MemorySpace.Mat if ctx.wants_mat else MemorySpace.Vec
    name = base_name(value.name_hint if isinstance(value, Var) else "view")
    return ctx.let(f"{name}__tile", ctx.load_call(value, space=space))


@op_conversion("tensor.transpose")
def _transpose(ctx: ConversionContext, args: list[Expr], kwargs: dict[str, Any], call: Call) -> Expr:
    return ctx.call("tile.transpose", args[:3])


@op_conversion("tensor.fillpad", "tensor.fillpad_expand")
def _fillpad(ctx: ConversionContext, args: list[Expr], kwargs: dict[str, Any], call: Call) -> Expr:
    return ctx.call(call.op.name.replace("tensor.", "tile."), args, kwargs)


@op_conversion("tensor.create", loads_itself=True)
def _create(ctx: ConversionContext, args: list[Expr], kwargs: dict[str, Any], call: Call) -> Expr:
    return ctx.call("tile.create", args[:1], {"dtype": call.type.dtype, "target_memory": MemorySpace.Vec})


@op_conversion("tensor.create_l1", loads_itself=True)
def _create_l1(ctx: ConversionContext, args: list[Expr], kwargs: dict[str, Any], call: Call) -> Expr:
    options: dict[str, Any] = {"dtype": call.type.dtype, "target_memory": MemorySpace.Mat}
    if kwargs.get("transpose"):
        options["transpose"] = True
    return ctx.call("tile.create", args[:1], options)


@op_conversion("tensor.read", loads_itself=True)
def _read(ctx: ConversionContext, args: list[Expr], kwargs: dict[str, Any], call: Call) -> Expr:
    return ctx.call("tile.read" if is_tile(args[0]) else "tensor.read", args)


@op_conversion("tensor.write", loads_itself=True)
def _write(ctx: ConversionContext, args: list[Expr], kwargs: dict[str, Any], call: Call) -> Expr:
    return ctx.call("tile.write" if is_tile(args[0]) else "tensor.write", args, kwargs)


@op_conversion("tensor.assemble", loads_itself=True)
def _assemble(ctx: ConversionContext, args: list[Expr], kwargs: dict[str, Any], call: Call) -> Expr:
    target, source, offset = args
    source = ctx.tile(source, "assemble_src")
    if is_tile(target):
        return ctx.call("tile.assemble", [target, source, offset])
    return ctx.call("tile.store", [source, offset, target], known_kwargs("tile.store", kwargs))


@op_conversion("tensor.expand_clone", loads_itself=True)
def _expand_clone(ctx: ConversionContext, args: list[Expr], kwargs: dict[str, Any], call: Call) -> Expr:
    """Repeat along the one axis of extent 1, writing the target in global memory."""
    source, target = args
    have, want = source.type.shape, target.type.shape
    axis = next((i for i, (a, b) in enumerate(zip(have, want)) if const_value(a) == 1 != const_value(b)), None)
    rank = len(want)
    if axis is None:
        return ctx.call("tile.store", [ctx.tile(source, "expand_clone_input"), extents([0] * rank), target])
    if axis == rank - 1:
        whole = ctx.tile(source, "expand_clone_input")
        wide = ctx.emit("expand_clone_d2_target", "tile.create", [extents(want)], {"dtype": source.type.dtype})
        row = ctx.emit("expand_clone_d2_row", "tile.row_expand", [wide, whole])
        return ctx.call("tile.store", [row, extents([0] * rank), target])
    index = Var("i", const_index(0).type, ctx.span)
    carry = IterArg("expand_clone_acc", target.type, target, ctx.span)
    if axis == 0:
        whole = ctx.tile(source, "expand_clone_input")
        body = ConversionContext(ctx.span, None)
        stored = body.emit("expand_clone_d0_store", "tile.store", [whole, extents([index] + [0] * (rank - 1)), carry])
    else:
        body = ConversionContext(ctx.span, None)
        offsets = [index] + [0] * (rank - 1)
        row = body.let(
            "expand_clone_d1_input", body.load_call(source, offsets, [1, *have[1:]])
        )  # fmt: skip
        shape = extents([1, *want[1:]])
        wide = body.emit("expand_clone_d1_target", "tile.create", [shape], {"dtype": source.type.dtype})
        column = body.emit("expand_clone_d1_col", "tile.col_expand", [wide, row])
        stored = body.emit("expand_clone_d1_store", "tile.store", [column, extents(offsets), carry])
    result = Var(f"expand_clone_d{axis}_result", target.type, ctx.span)
    ctx.stmts.append(
        ForStmt(
            index,
            const_index(0),
            want[0],
            const_index(1),
            (carry,),
            seq([*body.stmts, YieldStmt((stored,), ctx.span)]),
            (result,),
            ctx.span,
        )
    )
    return result


@op_conversion("tensor.aiv_shard", "tensor.aic_gather")
def _split_boundary(ctx: ConversionContext, args: list[Expr], kwargs: dict[str, Any], call: Call) -> Expr:
    return ctx.call(call.op.name.replace("tensor.", "tile."), args, kwargs)
