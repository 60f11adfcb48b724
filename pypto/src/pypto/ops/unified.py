"""The ``pl.*`` operators that pick the tensor or the tile operator by their operands.

A dispatcher looks at the types of its shaped operands. Arguments that only one level knows are accepted at the other
one when they hold their default, and refused otherwise (a ``TypeError``, as for mixed operands).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from pypto.ir import scalar_ops
from pypto.ir.callers import caller_span
from pypto.ir.dtype import DataType
from pypto.ir.enums import AtomicType, PadValue
from pypto.ir.expr import Expr, as_expr
from pypto.ir.span import Span
from pypto.ir.types import ScalarType, TensorType, TileType
from pypto.ops.namespaces import TENSOR, TILE
from pypto.ops.pto_text import comparison
from pypto.ops.unary import scalar_cast

#: Public name -> dispatcher.
UNIFIED: dict[str, Callable[..., Expr]] = {}


def _type_of(value: Any) -> Any:
    unwrap = getattr(value, "unwrap", None)
    return getattr(value if unwrap is None else unwrap(), "type", None)


def _shown(value: Any) -> str:
    """How an operand is called in a message."""
    for kind, name in ((TileType, "Tile"), (TensorType, "Tensor"), (ScalarType, "Scalar")):
        if isinstance(_type_of(value), kind):
            return name
    module = type(value).__module__.partition(".")[0]
    return type(value).__name__ if module in ("builtins", "pypto") else f"{module}.{type(value).__name__}"


def is_scalar(value: Any) -> bool:
    """A number, or an expression (or language value) of scalar type."""
    return isinstance(value, (bool, int, float)) or isinstance(_type_of(value), ScalarType)


def level(name: str, *operands: Any) -> str:
    """``"tile"`` or ``"tensor"`` for the operands of ``pl.<name>``.

    Raises:
        TypeError: a tensor together with a tile, or neither.
    """
    kinds = [_type_of(o) for o in operands]
    tile = any(isinstance(k, TileType) for k in kinds)
    tensor = any(isinstance(k, TensorType) for k in kinds)
    if tile and tensor:
        raise TypeError(f"pl.{name}: cannot mix Tensor and Tile operands")
    if not (tile or tensor) or not isinstance(kinds[0], (TileType, TensorType)):
        shown = ", ".join(_shown(o) for o in operands)
        raise TypeError(f"pl.{name}: expected Tensor or Tile operands, got ({shown})")
    return "tile" if tile else "tensor"


def _function(at: str, name: str) -> Callable[..., Expr]:
    return getattr(TILE if at == "tile" else TENSOR, name)


def unified(function: Callable[..., Expr]) -> Callable[..., Expr]:
    """Register a dispatcher under its name; ``span=`` is added to its signature and filled with the caller's place."""
    signature = inspect.signature(function)

    def dispatch(*args: Any, span: Span | None = None, **kwargs: Any) -> Expr:
        if any(isinstance(a, Span) for a in args):
            span = span or next(a for a in args if isinstance(a, Span))
            args = tuple(a for a in args if not isinstance(a, Span))
        try:
            signature.bind(*args, _span=None, **kwargs)
        except TypeError as error:
            raise TypeError(f"pl.{function.__name__}: {error}") from None
        return function(*args, _span=span or caller_span(), **kwargs)

    hidden = {"_span", *getattr(function, "hidden", ())}
    public = [p for n, p in signature.parameters.items() if n not in hidden]
    keyword = inspect.Parameter("span", inspect.Parameter.KEYWORD_ONLY, default=None, annotation="Span | None")
    at = len(public) - (bool(public) and public[-1].kind is inspect.Parameter.VAR_KEYWORD)
    dispatch.__signature__ = signature.replace(parameters=[*public[:at], keyword, *public[at:]])  # type: ignore[attr-defined]
    dispatch.__name__ = dispatch.__qualname__ = function.__name__
    dispatch.__doc__ = function.__doc__
    UNIFIED[function.__name__] = dispatch
    return dispatch


def _named(function: Callable[..., Expr], name: str, doc: str) -> None:
    function.__name__ = name
    function.__doc__ = doc
    unified(function)


# --- one operand -------------------------------------------------------------------------------------------------


def _unary(name: str) -> None:
    def dispatch(input: Any, *, _span: Span) -> Expr:
        return _function(level(name, input), name)(input, span=_span)

    _named(dispatch, name, f"``{name}`` of a tensor or a tile.")


for _name in ("neg", "abs", "exp", "sqrt", "sin", "cos", "not_", "col_max", "col_min", "col_prod"):
    _unary(_name)


def _precise(name: str) -> None:
    def dispatch(input: Any, high_precision: bool = False, *, _span: Span) -> Expr:
        return _function(level(name, input), name)(input, high_precision=high_precision, span=_span)

    _named(dispatch, name, f"``{name}`` of a tensor or a tile, optionally in the precise form.")


_precise("recip")
_precise("log")


@unified
def rsqrt(input: Any, high_precision: bool = False, *, _span: Span) -> Expr:
    """``1 / sqrt(x)``; the precise form of a tile needs scratch: ``pl.tile.rsqrt(tile, tmp)``."""
    if level("rsqrt", input) == "tensor":
        return TENSOR.rsqrt(input, high_precision=high_precision, span=_span)
    if high_precision:
        raise TypeError(
            "pl.rsqrt: 'high_precision' is not supported for Tile operands; pass scratch, pl.tile.rsqrt(tile, tmp)"
        )
    return TILE.rsqrt(input, span=_span)


@unified
def cast(input: Any, target_type: int | DataType, mode: str | int = "round", *, _span: Span) -> Expr:
    """Conversion of a tensor, a tile or a scalar."""
    if is_scalar(input):
        return scalar_cast(input, target_type, mode)
    return _function(level("cast", input), "cast")(input, target_type, mode, span=_span)


# --- two operands ------------------------------------------------------------------------------------------------

_SCALAR_NODES = {
    "add": scalar_ops.add,
    "sub": scalar_ops.sub,
    "mul": scalar_ops.mul,
    "div": scalar_ops.truediv,
}


def _scalar_arithmetic(name: str, node: Callable[..., Expr], lhs: Any, rhs: Any, span: Span) -> Expr:
    for side in (lhs, rhs):
        if isinstance(side, bool):
            raise TypeError(f"pl.{name} does not accept bool operands, got {side}")
    return node(lhs, rhs, span)


def _pair(name: str, parameters: tuple[str, str] = ("lhs", "rhs")) -> None:
    scalar_node = _SCALAR_NODES.get(name)

    def dispatch(lhs: Any, rhs: Any, *, _span: Span) -> Expr:
        if scalar_node is not None and is_scalar(lhs) and is_scalar(rhs):
            return _scalar_arithmetic(name, scalar_node, lhs, rhs, _span)
        at = level(name, lhs, rhs)
        if at == "tile" and is_scalar(rhs) and hasattr(TILE, f"{name}s") and name in ("maximum", "minimum", "fmod"):
            return getattr(TILE, f"{name}s")(lhs, rhs, span=_span)
        if at == "tensor" and is_scalar(rhs) and name == "fmod":
            return TENSOR.fmods(lhs, rhs, span=_span)
        return _function(at, name)(lhs, rhs, span=_span)

    if parameters != ("lhs", "rhs"):
        first, second = parameters
        source = dispatch

        def by_name(*args: Any, _span: Span, **kwargs: Any) -> Expr:
            return source(*args, *(kwargs[p] for p in (first, second) if p in kwargs), _span=_span)

        kinds = [inspect.Parameter(p, inspect.Parameter.POSITIONAL_OR_KEYWORD) for p in parameters]
        hidden = inspect.Parameter("_span", inspect.Parameter.KEYWORD_ONLY)
        by_name.__signature__ = inspect.Signature([*kinds, hidden])  # type: ignore[attr-defined]
        dispatch = by_name
    _named(dispatch, name, f"``{name}`` of two tensors or two tiles.")


for _name in (
    "add", "sub", "mul", "maximum", "minimum", "fmod", "fmods", "part_add", "part_mul", "part_max", "part_min",
    "and_", "ands", "or_", "ors", "shl", "shls", "shr", "shrs", "row_expand", "col_expand",
):  # fmt: skip
    _pair(_name)
for _kind in ("sub", "div", "mul", "max", "min", "expdif"):
    _pair(f"row_expand_{_kind}")
for _kind in ("mul", "div", "sub", "add", "max", "min", "expdif"):
    _pair(f"col_expand_{_kind}")
_pair("concat", ("src0", "src1"))
_pair("sort32", ("src", "idx"))


@unified
def div(lhs: Any, rhs: Any, high_precision: bool = False, *, _span: Span) -> Expr:
    """``lhs / rhs``; scalars give a scalar expression."""
    if is_scalar(rhs) and high_precision:
        raise TypeError("pl.div: high_precision=True requires a Tensor or Tile rhs")
    if is_scalar(lhs) and is_scalar(rhs):
        return _scalar_arithmetic("div", scalar_ops.truediv, lhs, rhs, _span)
    return _function(level("div", lhs, rhs), "div")(lhs, rhs, high_precision=high_precision, span=_span)


@unified
def cmp(lhs: Any, rhs: Any, cmp_type: int = 0, *, _span: Span) -> Expr:
    """Comparison: a packed mask of tiles, 0/1 values of tensors."""
    if type(cmp_type) is int:
        comparison("pl.cmp", cmp_type, _span)
    return _function(level("cmp", lhs, rhs), "cmp")(lhs, rhs, cmp_type=cmp_type, span=_span)


def _xor(name: str) -> None:
    def dispatch(lhs: Any, rhs: Any, tmp: Any = None, *, _span: Span) -> Expr:
        if level(name, lhs, rhs) == "tensor":
            if tmp is not None:
                raise TypeError(f"pl.{name}: Tensor inputs must not pass tmp, the compiler supplies the scratch")
            return getattr(TENSOR, name)(lhs, rhs, span=_span)
        if tmp is None:
            raise TypeError(f"pl.{name}: Tile inputs require an explicit scratch tile as tmp")
        form = "xors" if is_scalar(rhs) else name
        return getattr(TILE, form)(lhs, rhs, tmp, span=_span)

    _named(dispatch, name, "Exclusive or of integers; tiles need a scratch tile.")


_xor("xor")
_xor("xors")


@unified
def expands(target: Any, scalar: Any, *, _span: Span) -> Expr:
    """A scalar in every cell of the shape of ``target``."""
    return _function(level("expands", target), "expands")(target, scalar, span=_span)


@unified
def row_expand_add(lhs: Any, rhs: Any, tmp: Any = None, *, _span: Span) -> Expr:
    """``wide + vector`` along the rows; only tiles take scratch."""
    if level("row_expand_add", lhs, rhs) == "tile":
        return TILE.row_expand_add(lhs, rhs, tmp, span=_span)
    if tmp is not None:
        raise TypeError("pl.row_expand_add: Tensor inputs must not pass tmp")
    return TENSOR.row_expand_add(lhs, rhs, span=_span)


# --- reductions --------------------------------------------------------------------------------------------------


def _reduction(name: str) -> None:
    def dispatch(input: Any, tmp_tile: Any = None, *, _span: Span) -> Expr:
        if level(name, input) == "tensor":
            if tmp_tile is not None:
                raise TypeError(f"pl.{name}: Tensor inputs must not pass tmp_tile, the compiler supplies the scratch")
            return getattr(TENSOR, name)(input, span=_span)
        if tmp_tile is None:
            if name == "col_sum":
                return TILE.col_sum(input, span=_span)
            raise TypeError(f"pl.{name}: Tile inputs require tmp_tile, a scratch tile")
        return getattr(TILE, name)(input, tmp_tile, span=_span)

    _named(dispatch, name, f"``{name}`` of a tensor or a tile; tiles need a scratch tile.")


for _name in (
    "row_sum", "row_max", "row_min", "row_prod", "col_sum", "row_argmax", "row_argmin", "col_argmax", "col_argmin",
):  # fmt: skip
    _reduction(_name)


# --- element access, views, padding ------------------------------------------------------------------------------


@unified
def read(src: Any, offset: Any, *, _span: Span) -> Expr:
    """The element at the indices."""
    return _function(level("read", src), "read")(src, offset, span=_span)


@unified
def write(dst: Any, offset: Any, value: Any, *, _span: Span) -> Expr:
    """Set the element at the indices."""
    return _function(level("write", dst), "write")(dst, offset, value, span=_span)


@unified
def assemble(target: Any, source: Any, offset: Any, *, atomic: AtomicType = AtomicType.None_, _span: Span) -> Expr:
    """``target`` with ``source`` written at ``offset``."""
    if level("assemble", target, source) == "tensor":
        return TENSOR.assemble(target, source, offset, atomic=atomic, span=_span)
    if atomic:
        raise TypeError("pl.assemble: atomic is not supported for Tile operands")
    return TILE.assemble(target, source, offset, span=_span)


@unified
def slice(
    input: Any,
    shape: Any,
    offset: Any,
    valid_shape: Any = None,
    drop_dims: Any = None,
    pad_value: Any = None,
    clamp: bool = False,
    *,
    _span: Span,
) -> Expr:
    """A zero-copy window."""
    at = level("slice", input)
    arguments = (input, shape, offset, valid_shape, drop_dims, pad_value)
    if at == "tensor":
        return TENSOR.slice(*arguments, clamp, span=_span)
    if clamp:
        raise TypeError("pl.slice: clamp=True is not supported for a Tile")
    return TILE.slice(*arguments, span=_span)


@unified
def reshape(input: Any, shape: Any, *, _span: Span) -> Expr:
    """The same elements in row-major order under another shape."""
    return _function(level("reshape", input), "reshape")(input, shape, span=_span)


@unified
def reinterpret_view(data: Any, dtype: DataType, *, shape: Any = None, _span: Span) -> Expr:
    """The same bytes as another element type."""
    return _function(level("reinterpret_view", data), "reinterpret_view")(data, dtype, shape=shape, span=_span)


@unified
def transpose(input: Any, axis1: int, axis2: int, *, _span: Span) -> Expr:
    """Two axes swapped."""
    return _function(level("transpose", input), "transpose")(input, axis1, axis2, span=_span)


@unified
def set_validshape(input: Any, valid_rows: Any, valid_cols: Any, *, _span: Span) -> Expr:
    """Another valid region."""
    return _function(level("set_validshape", input), "set_validshape")(input, valid_rows, valid_cols, span=_span)


@unified
def fillpad(value: Any, pad_value: Any = PadValue.zero, *, _span: Span) -> Expr:
    """Cells outside the valid region filled."""
    return _function(level("fillpad", value), "fillpad")(value, pad_value, span=_span)


@unified
def fillpad_expand(value: Any, shape: Any, pad_value: Any = PadValue.zero, *, _span: Span) -> Expr:
    """A larger shape with the pad value around the data."""
    return _function(level("fillpad_expand", value), "fillpad_expand")(value, shape, pad_value, span=_span)


# --- products ----------------------------------------------------------------------------------------------------


def _refuse_tile_flags(name: str, **flags: Any) -> None:
    remedies = {"c_matrix_nz": "the Acc tile type fixes the layout of the result"}
    for flag, value in flags.items():
        if value:
            remedy = remedies.get(flag, "a transposed tile is pl.tile.transpose_view(tile)")
            raise TypeError(f"pl.{name}: '{flag}' is not supported for Tile operands; {remedy}")


@unified
def matmul(
    lhs: Any,
    rhs: Any,
    out_dtype: int | DataType | None = None,
    a_trans: bool = False,
    b_trans: bool = False,
    c_matrix_nz: bool = False,
    *,
    _span: Span,
) -> Expr:
    """``lhs @ rhs``."""
    if level("matmul", lhs, rhs) == "tensor":
        return TENSOR.matmul(lhs, rhs, out_dtype, a_trans, b_trans, c_matrix_nz, span=_span)
    _refuse_tile_flags("matmul", a_trans=a_trans, b_trans=b_trans, c_matrix_nz=c_matrix_nz)
    result = TILE.matmul(lhs, rhs, span=_span)
    if out_dtype is not None and out_dtype != result.type.dtype:
        raise TypeError(
            f"pl.matmul: Tile operands give {result.type.dtype}, so out_dtype cannot be {out_dtype}; convert it "
            "with pl.cast"
        )
    return result


@unified
def matmul_acc(
    acc: Any,
    lhs: Any,
    rhs: Any,
    a_trans: bool = False,
    b_trans: bool = False,
    init_cond: Any = None,
    *,
    _span: Span,
) -> Expr:
    """``acc + lhs @ rhs``, or the product alone where ``init_cond`` holds."""
    if level("matmul_acc", acc, lhs, rhs) == "tensor":
        return TENSOR.matmul_acc(acc, lhs, rhs, a_trans, b_trans, init_cond, span=_span)
    _refuse_tile_flags("matmul_acc", a_trans=a_trans, b_trans=b_trans)
    return TILE.matmul_acc(acc, lhs, rhs, init_cond, span=_span)


@unified
def batch_matmul(lhs: Any, rhs: Any, *, _span: Span) -> Expr:
    """Batched ``lhs @ rhs`` of tiles."""
    if level("batch_matmul", lhs, rhs) == "tensor":
        raise TypeError("pl.batch_matmul: expected Tensor or Tile operands in tile form; tensors use pl.matmul")
    return TILE.batch_matmul(lhs, rhs, span=_span)


# --- positions and order -----------------------------------------------------------------------------------------


@unified
def gather_row(
    dst: Any, src: Any, dst_offset: Any, src_offset: Any, shapes: Any, transpose: bool = False, *,
    valid_shape: Any = None, _span: Span,
) -> Expr:  # fmt: skip
    """Copy a window of a global tensor into ``dst``."""
    function = _function(level("gather_row", dst), "gather_row")
    return function(dst, src, dst_offset, src_offset, shapes, transpose, valid_shape=valid_shape, span=_span)


@unified
def scatter_update(input: Any, *args: Any, _span: Span, **kwargs: Any) -> Expr:
    """Rows of ``input`` replaced."""
    return _function(level("scatter_update", input), "scatter_update")(input, *args, span=_span, **kwargs)


@unified
def mrgsort(
    src0: Any,
    src1: Any = None,
    src2: Any = None,
    src3: Any = None,
    tmp: Any = None,
    *,
    exhausted: bool = False,
    block_len: Any = None,
    _span: Span,
) -> Expr:
    """Merge sorted runs of one value, or two to four sorted values."""
    sources = [s for s in (src0, src1, src2, src3) if s is not None]
    if level("mrgsort", *sources) == "tile":
        return TILE.mrgsort(src0, src1, src2, src3, tmp, exhausted, block_len=block_len, span=_span)
    if tmp is not None:
        raise TypeError("pl.mrgsort: Tensor inputs must not pass tmp")
    return TENSOR.mrgsort(src0, src1, src2, src3, exhausted=exhausted, block_len=block_len, span=_span)


def _lanes(name: str) -> None:
    def dispatch(x: Any, *, split: int | None = None, _span: Span) -> Expr:
        return _function(level(name, x), name)(x, split=split, span=_span)

    dispatch.hidden = ("split",)  # type: ignore[attr-defined]
    _named(dispatch, name, "A value handed between the cube and its vector lanes.")


_lanes("aiv_shard")
_lanes("aic_gather")


# --- scalars -----------------------------------------------------------------------------------------------------


def _extremum(name: str, node: Callable[..., Expr]) -> None:
    def dispatch(lhs: Any, rhs: Any, *, _span: Span) -> Expr:
        for side in (lhs, rhs):
            if not is_scalar(side):
                raise TypeError(f"pl.{name}: expected scalars, got {_shown(side)}; tiles use pl.{name}imum")
        return node(as_expr(lhs), as_expr(rhs), _span)

    _named(dispatch, name, f"{name} of two scalars.")


_extremum("max", scalar_ops.max_)
_extremum("min", scalar_ops.min_)
