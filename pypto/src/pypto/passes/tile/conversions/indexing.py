"""Gather and scatter: flat-index arithmetic, per-row loops and blends that keep unwritten elements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pypto.errors import UnsupportedFeatureError, user_error
from pypto.ir.dtype import DataType
from pypto.ir.enums import MemorySpace
from pypto.ir.expr import (
    Add,
    Call,
    ConstInt,
    Expr,
    FloorDiv,
    FloorMod,
    IterArg,
    Mul,
    Var,
    const_index,
    const_value,
)
from pypto.ir.scalar_ops import cast
from pypto.ir.stmt import ForStmt, YieldStmt, seq
from pypto.passes.context import backend_handler
from pypto.passes.tile.conversions.registry import (
    ConversionContext,
    extents,
    is_tile,
    op_conversion,
)

_NE = 1
_I16_LIMIT = 1 << 15


def _int32(value: int) -> ConstInt:
    return ConstInt(value, DataType.INT32)


def _static(kind, what: str, span) -> list[int]:
    values = [const_value(d) for d in kind.shape]
    if None in values:
        raise user_error(f"{what} needs static extents", span=span)
    return values  # type: ignore[return-value]


def _loop(
    ctx: ConversionContext, names: tuple[str, str, str], trips: Expr, init: Expr,
    body: Callable[[ConversionContext, Var, IterArg], Expr],
) -> Var:  # fmt: skip
    """``for v, (carry,) in range(trips): yield body(...)``; returns the loop's result."""
    index = Var(names[0], const_index(0).type, ctx.span)
    carry = IterArg(names[1], init.type, init, ctx.span)
    inner = ConversionContext(ctx.span, None)
    value = body(inner, index, carry)
    result = Var(names[2], init.type, ctx.span)
    statements = [*inner.stmts, YieldStmt((value,), ctx.span)]
    ctx.stmts.append(
        ForStmt(index, const_index(0), trips, const_index(1), (carry,), seq(statements), (result,), ctx.span)
    )
    return result


# -- gather ---------------------------------------------------------------------------------------------------------


@op_conversion("tensor.gather", loads_itself=True)
def _gather(ctx: ConversionContext, args: list[Expr], kwargs: dict[str, Any], call: Call) -> Expr:
    source, index = args
    handler = backend_handler()
    if handler is not None and handler.name == "950":
        return _gather_flat(ctx, source, index)
    return _gather_rows(ctx, source, index)


def _gather_rows(ctx: ConversionContext, source: Expr, index: Expr) -> Expr:
    """One hardware gather per row: the instruction indexes inside a row."""
    rows, cols = _static(index.type, "tensor.gather", ctx.span)
    width = _static(source.type, "tensor.gather", ctx.span)[1]
    acc = ctx.scratch("gather_acc_init", [rows, cols], source.type.dtype)

    def row(inner: ConversionContext, i: Var, carry: IterArg) -> Expr:
        values = _row(inner, source, i, width, "gather_inp_row")
        wanted = _row(inner, index, i, cols, "gather_idx_row")
        scratch = inner.scratch("gather_row_tmp", [1, cols], DataType.INT32)
        taken = inner.emit("gather_row", "tile.gather", [values, wanted, scratch])
        return inner.emit("gather_asmbl", "tile.assemble", [carry, taken, extents([i, 0])])

    return _loop(ctx, ("gather_lv", "gather_ia", "gather_rv"), const_index(rows), acc, row)


def _row(ctx: ConversionContext, value: Expr, row: Var, width: int, name: str) -> Expr:
    if is_tile(value):
        return ctx.emit(name, "tile.slice", [value, extents([1, width]), extents([row, 0])])
    return ctx.let(name, ctx.load_call(value, [row, 0], [1, width], [1, width]))


def _gather_flat(ctx: ConversionContext, source: Expr, index: Expr) -> Expr:
    """One hardware gather for the whole tile, over row-major flat indices."""
    if is_tile(source):
        # A slice keeps the stride of its parent; the flat index needs rows that follow each other.
        rows, cols = _static(source.type, "tensor.gather", ctx.span)
        window = ctx.emit(
            "gather_inp", "tile.slice", [source, *(extents(e) for e in ([rows, cols], [0, 0], [rows, cols]))]
        )
        alloc = ctx.scratch("gather_src_alloc", [rows, cols], source.type.dtype)
        source = ctx.emit("gather_src_copy", "tile.assemble", [alloc, window, extents([0, 0])])
    else:
        source = ctx.let("gather_inp", ctx.load_call(source))
    index = index if is_tile(index) else ctx.let("gather_idx", ctx.load_call(index))
    narrow = index.type.dtype
    if narrow != DataType.INT32:
        index = ctx.emit("gather_idx_i32", "tile.cast", [index], {"target_type": DataType.INT32, "mode": 0})
    flat = _flat_index(ctx, index, _static(source.type, "tensor.gather", ctx.span)[1], "gather")
    if narrow != DataType.INT32:
        flat = ctx.emit("gather_flat_idx_narrow", "tile.cast", [flat], {"target_type": narrow, "mode": 0})
    scratch = ctx.scratch("gather_tmp", index.type.shape, DataType.INT32)
    return ctx.emit("gather", "tile.gather", [source, flat, scratch])


def _flat_index(ctx: ConversionContext, index: Expr, width: int, word: str) -> Expr:
    """``index[i, j] + i * width`` in INT32."""
    rows, cols = _static(index.type, f"tensor.{word}", ctx.span)
    if word == "gather" and (cols * 4) % 32 == 0:
        linear = ctx.emit(f"{word}_lin", "tile.ci", [_int32(0), extents([1, rows * cols])],
                          {"dtype": DataType.INT32, "descending": False})  # fmt: skip
        square = ctx.emit(f"{word}_lin2d", "tile.reshape", [linear, extents([rows, cols])])
        ids = ctx.emit(f"{word}_row_ids", "tile.divs", [square, _int32(cols)])
        base = ctx.emit(f"{word}_row_base", "tile.muls", [ids, _int32(width)])
        return ctx.emit(f"{word}_flat_idx", "tile.add", [index, base])
    numbers = ctx.emit(f"{word}_ci_rows", "tile.ci", [_int32(0), extents([1, rows])],
                       {"dtype": DataType.INT32, "descending": False})  # fmt: skip
    column = ctx.emit(f"{word}_row_arange", "tile.reshape", [numbers, extents([rows, 1])])
    base = ctx.emit(f"{word}_row_base", "tile.muls", [column, _int32(width)])
    return ctx.emit(f"{word}_flat_idx", "tile.row_expand_add", [index, base])


@op_conversion("tensor.gather_compare")
def _gather_compare(ctx: ConversionContext, args: list[Expr], kwargs: dict[str, Any], call: Call) -> Expr:
    shape = args[0].type.shape
    scratch = ctx.scratch("gather_cmp_tmp", shape, args[0].type.dtype)
    return ctx.call("tile.gather_compare", [*args, scratch], kwargs)


@op_conversion("tensor.gather_row", loads_itself=True)
def _gather_row(ctx: ConversionContext, args: list[Expr], kwargs: dict[str, Any], call: Call) -> Expr:
    return ctx.call("tile.gather_row", args, kwargs)


@op_conversion("tensor.paged_gather", loads_itself=True)
def _paged_gather(ctx: ConversionContext, args: list[Expr], kwargs: dict[str, Any], call: Call) -> Expr:
    """Rows of a paged pool, one address per row, read by the scalar unit."""
    source, indices, table = args
    block, size, rows = (kwargs[k] for k in ("block_size", "size", "max_indices"))
    transposed = bool(kwargs.get("is_trans"))
    shape = [size, rows] if transposed else [rows, size]
    options: dict[str, Any] = {"dtype": source.type.dtype, "target_memory": kwargs.get("space", MemorySpace.Mat)}
    if transposed:
        options["transpose"] = True
    axis = len(indices.type.shape) - 1
    count = ctx.emit("paged_gather_rows", "tensor.dim", [indices, const_index(axis)])
    acc = ctx.emit("paged_gather_acc", "tile.create", [extents(shape)], options)

    def row(inner: ConversionContext, i: Var, carry: IterArg) -> Expr:
        lead = [0] * axis
        number = inner.emit("paged_gather_idx", "tensor.read", [indices, extents([*lead, i])])
        index_t = DataType.INDEX
        position = inner.let("paged_gather_pos", cast(number, index_t, ctx.span))
        page = inner.let("paged_gather_page", FloorDiv(position, const_index(block), index_t, ctx.span))
        inside = inner.let("paged_gather_in", FloorMod(position, const_index(block), index_t, ctx.span))
        table_lead = [0] * (len(table.type.shape) - 1)
        physical = inner.emit("paged_gather_block", "tensor.read", [table, extents([*table_lead, page])])
        physical = inner.let("paged_gather_phys", cast(physical, index_t, ctx.span))
        start = Mul(physical, const_index(block), index_t, ctx.span)
        address = inner.let("paged_gather_row", Add(start, inside, index_t, ctx.span))
        destination = [0, i] if transposed else [i, 0]
        operands = [carry, source, extents(destination), extents([address, kwargs.get("col_off", 0)]),
                    extents([1, size])]  # fmt: skip
        return inner.emit("paged_gather_next", "tile.gather_row", operands, {"transpose": transposed})

    return _loop(ctx, ("paged_gather_i", "paged_gather_ia", "paged_gather_rv"), count, acc, row)


# -- scatter --------------------------------------------------------------------------------------------------------


@op_conversion("tensor.scatter")
def _scatter(ctx: ConversionContext, args: list[Expr], kwargs: dict[str, Any], call: Call) -> Expr:
    base, index, source = args
    rows, cols = _static(base.type, "tensor.scatter", ctx.span)
    wide = _as_int32(ctx, index)
    flat = _flat_index(ctx, wide, cols, "scatter")
    return _blend(ctx, base, _narrowed(ctx, flat, base.type.dtype, rows * cols), source)


@op_conversion("tensor.scatter_update")
def _scatter_update(ctx: ConversionContext, args: list[Expr], kwargs: dict[str, Any], call: Call) -> Expr:
    """Whole rows: ``base[index.flat[k], :] = source[k, :]``."""
    base, index, source = args
    if len(base.type.shape) != 2 or len(source.type.shape) != 2:
        raise user_error(
            "tensor.scatter_update: only 2D input/src is currently supported; reshape the operands to [rows, width]",
            span=ctx.span,
        )
    rows, width = _static(base.type, "tensor.scatter_update", ctx.span)
    count = _static(source.type, "tensor.scatter_update", ctx.span)[0]
    numbers = ctx.emit("scatter_cols", "tile.ci", [_int32(0), extents([1, width])],
                       {"dtype": DataType.INT32, "descending": False})  # fmt: skip
    template = ctx.emit("scatter_template", "tile.full", [extents([count, width]), _int32(0)],
                        {"dtype": DataType.INT32})  # fmt: skip
    columns = ctx.emit("scatter_col_nd", "tile.col_expand", [template, numbers])
    column = ctx.emit("scatter_index_col", "tile.reshape", [_as_int32(ctx, index), extents([count, 1])])
    starts = ctx.emit("scatter_row_base", "tile.muls", [column, _int32(width)])
    flat = ctx.emit("scatter_flat_idx", "tile.row_expand_add", [columns, starts])
    return _blend(ctx, base, _narrowed(ctx, flat, base.type.dtype, rows * width), source)


def _as_int32(ctx: ConversionContext, index: Expr) -> Expr:
    if index.type.dtype == DataType.INT32:
        return index
    return ctx.emit("scatter_idx_i32", "tile.cast", [index], {"target_type": DataType.INT32, "mode": 0})


def _narrowed(ctx: ConversionContext, flat: Expr, dtype: DataType, count: int) -> Expr:
    """The index in the width the instruction wants: 16 bits for 2-byte data."""
    if dtype.get_bit() != 16:
        return flat
    if count > _I16_LIMIT:
        raise user_error(
            f"tensor.{'scatter'}: {count} elements of a 2-byte dtype exceed the i16 flat-index limit of {_I16_LIMIT}; "
            "use fewer rows per call or a 4-byte dtype",
            span=ctx.span,
        )
    return ctx.emit("scatter_flat_idx_i16", "tile.cast", [flat], {"target_type": DataType.INT16, "mode": 0})


def _blend(ctx: ConversionContext, base: Expr, flat: Expr, source: Expr) -> Expr:
    """Scatter data and a mask of ones into zeroed tiles, then keep ``base`` where the mask is zero.

    The instruction treats its destination as write-only, so unwritten elements have to be put back.
    """
    dtype = base.type.dtype
    zero, one = _scalar(0, dtype), _scalar(1, dtype)
    zeros = ctx.emit("scatter_zero", "tile.full", [extents(base.type.shape), zero], {"dtype": dtype})
    values = ctx.emit("scatter_values", "tile.scatter", [zeros, flat, source])
    mask_zeros = ctx.emit("scatter_mask_zero", "tile.full", [extents(base.type.shape), zero], {"dtype": dtype})
    ones = ctx.emit("scatter_ones", "tile.full", [extents(source.type.shape), one], {"dtype": dtype})
    mask = ctx.emit("scatter_mask", "tile.scatter", [mask_zeros, flat, ones])
    written = ctx.emit("scatter_pred", "tile.cmps", [mask, zero], {"cmp_type": _NE})
    scratch = ctx.scratch("scatter_sel_tmp", [1, 8], DataType.UINT32)
    return ctx.call("tile.sel", [written, values, base, scratch])


def _scalar(value: int, dtype: DataType) -> Expr:
    from pypto.ir.expr import ConstFloat

    return ConstFloat(float(value), dtype) if dtype.is_float() else ConstInt(value, dtype)


@op_conversion("tensor.scatter_mask")
def _scatter_mask(ctx: ConversionContext, args: list[Expr], kwargs: dict[str, Any], call: Call) -> Expr:
    return ctx.call("tile.scatter_mask", args, kwargs)


@op_conversion("tensor.mrgsort_format2")
def _merge_sort(ctx: ConversionContext, args: list[Expr], kwargs: dict[str, Any], call: Call) -> Expr:
    scratch = ctx.emit("mrgsort2_tmp", "tile.create", [extents(call.type.shape)], {"dtype": call.type.dtype})
    if not args:
        raise UnsupportedFeatureError("tensor.mrgsort_format2 without sources")
    return ctx.call("tile.mrgsort_format2", [*args, scratch], kwargs)
