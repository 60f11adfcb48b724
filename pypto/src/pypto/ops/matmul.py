"""Matrix products on the cube unit, and their tensor forms."""

from __future__ import annotations

from typing import Any

from pypto.ir.dtype import DataType
from pypto.ir.enums import ArgEffect, MemorySpace
from pypto.ir.expr import ConstBool, Expr, as_expr, const_index
from pypto.ir.types import ScalarType, Type
from pypto.ops import shapes as S
from pypto.ops import torch_values as T
from pypto.ops.kinds import Attr, Scalar, Tensor, Tile
from pypto.ops.memory_specs import ACC, BIAS, BOTH, LEFT, RIGHT, acc
from pypto.ops.pto_text import acc_phase as acc_phase_text
from pypto.ops.registry import op
from pypto.ops.rules import fresh_tensor, fresh_tile, product_tile, require, require_rank, valid_region
from pypto.ops.scalars import as_datatype

GEMV_DTYPES = (DataType.INT8, DataType.FP16, DataType.BF16, DataType.FP32)
ACC_PHASES = ("unspecified", "partial", "final")


def accumulator_dtype(operand: DataType) -> DataType:
    """INT32 for integers, FP32 for floats."""
    return DataType.INT32 if operand.is_int() else DataType.FP32


def _check_dtypes(name: str, lhs: Any, rhs: Any) -> None:
    if lhs.type.dtype != rhs.type.dtype:
        raise ValueError(
            f"{name} requires identical lhs and rhs data types, but got {lhs.type.dtype} and {rhs.type.dtype}"
        )


def _check_inner(name: str, lhs: Any, rhs: Any) -> None:
    """Physical K equal, valid K of rhs not below that of lhs."""
    left, right = lhs.type.shape, rhs.type.shape
    if S.provably_different(left[-1], right[-2]):
        raise ValueError(
            f"{name} requires matching physical inner dimensions, but got lhs {S.shape_text(left)} and rhs "
            f"{S.shape_text(right)}"
        )
    left_k, right_k = valid_region(lhs)[-1], valid_region(rhs)[-2]
    if S.provably_lt(right_k, left_k):
        raise ValueError(
            f"{name} requires rhs valid K to cover lhs valid K, but got {S.dim_text(right_k)} and {S.dim_text(left_k)}"
        )


def _product(name: str, lhs: Any, rhs: Any) -> tuple[tuple, DataType, tuple]:
    """(shape, accumulator type, valid region) of a 2-D product."""
    require_rank(name, lhs, 2, "lhs")
    require_rank(name, rhs, 2, "rhs")
    _check_dtypes(name, lhs, rhs)
    _check_inner(name, lhs, rhs)
    shape = (lhs.type.shape[0], rhs.type.shape[1])
    valid = (valid_region(lhs)[0], valid_region(rhs)[1])
    return shape, accumulator_dtype(lhs.type.dtype), valid


def check_accumulator(name: str, target: Any, shape: tuple, dtype: DataType, valid: tuple) -> None:
    """An accumulator of the product's shape and type whose valid region holds the product."""
    have = target.type.shape
    if len(have) != len(shape) or any(S.provably_different(a, b) for a, b in zip(have, shape)):
        raise ValueError(
            f"{name} requires acc of shape {S.shape_text(shape)} to match the product, but got {S.shape_text(have)}"
        )
    require(target.type.dtype == dtype, f"{name} requires accumulator dtype {dtype}, but got {target.type.dtype}")
    for axis, side, have_valid, need in zip("MN", ("lhs", "rhs"), valid_region(target)[-2:], valid[-2:]):
        if S.provably_lt(have_valid, need):
            raise ValueError(
                f"{name} requires acc valid {axis} to cover {side} valid {axis}, but got {S.dim_text(have_valid)} and "
                f"{S.dim_text(need)}"
            )


def check_bias(name: str, bias: Any, shape: tuple, dtype: DataType, valid: tuple) -> None:
    """A ``[1, N]`` bias of the accumulator type that covers the valid columns."""
    require_rank(name, bias, 2, "bias")
    require(bias.type.dtype == dtype, f"{name} requires bias dtype {dtype}, but got {bias.type.dtype}")
    rows, cols = bias.type.shape
    if S.const(rows) not in (1, None) or S.provably_different(cols, shape[-1]):
        raise ValueError(
            f"{name} requires bias of shape [1, {S.dim_text(shape[-1])}], got {S.shape_text((rows, cols))}"
        )
    bias_rows, bias_cols = valid_region(bias)
    require(S.const(bias_rows) != 0, f"{name} requires bias valid rows to cover 1")
    require(
        not S.provably_lt(bias_cols, valid[-1]),
        f"{name} requires bias valid N to cover output valid N, but got {S.dim_text(bias_cols)} and "
        f"{S.dim_text(valid[-1])}",
    )


def _wide(x: Any) -> Any:
    """Operand in the accumulation type."""
    import torch

    return x.to(torch.float32) if x.dtype.is_floating_point else x.to(torch.int32)


def matmul_value(lhs: Any, rhs: Any, *_: Any, **__: Any) -> Any:
    """Product accumulated in FP32 or INT32."""
    return T.call("matmul")(_wide(lhs), _wide(rhs))


def _acc_value(target: Any, lhs: Any, rhs: Any, init_cond: Any = None, **_: Any) -> Any:
    fresh = init_cond is not None and bool(init_cond)
    return matmul_value(lhs, rhs) if fresh else target + matmul_value(lhs, rhs)


def _bias_value(lhs: Any, rhs: Any, bias: Any, **_: Any) -> Any:
    return matmul_value(lhs, rhs) + bias


@op("tile.matmul", family="matmul", memory=acc(LEFT, RIGHT), backends=BOTH, pto="pto.tmatmul", torch=matmul_value)
def tile_matmul(lhs: Tile, rhs: Tile) -> Type:
    """``lhs @ rhs`` in Acc, accumulated in FP32 (INT32 for integers)."""
    shape, dtype, valid = _product("tile.matmul", lhs, rhs)
    return product_tile(shape, dtype, valid)


def condition(value: Any) -> Any:
    """``init_cond`` as an operand: a Python bool becomes a constant."""
    return ConstBool(value) if isinstance(value, bool) else as_expr(value)


def _check_condition(name: str, init_cond: Any, rank: int) -> None:
    if init_cond is None:
        return
    kind = init_cond.type
    if not (isinstance(kind, ScalarType) and kind.dtype == DataType.BOOL):
        raise ValueError(f"{name} requires init_cond to have dtype BOOL, but got {kind}")
    require(rank == 2, f"{name} supports init_cond only for 2D operands")


def _tile_acc_front(acc: Any, lhs: Any, rhs: Any, init_cond: Any = None) -> tuple:
    return (acc, lhs, rhs, *([] if init_cond is None else [condition(init_cond)])), {}


@op(
    "tile.matmul_acc", family="matmul", front=_tile_acc_front, memory=acc(ACC, LEFT, RIGHT), backends=BOTH,
    effects={0: ArgEffect.ReadWrite}, result_is_arg=0, pto="pto.tmatmul.acc",
    pto_operands=lambda call: list(call.args[:3]), torch=_acc_value,
)  # fmt: skip
def tile_matmul_acc(acc: Tile, lhs: Tile, rhs: Tile, init_cond: Scalar = None) -> Type:
    """``acc + lhs @ rhs`` in place, or ``lhs @ rhs`` where ``init_cond`` holds."""
    name = "tile.matmul_acc"
    _check_condition(name, init_cond, len(lhs.type.shape))
    shape, dtype, valid = _product(name, lhs, rhs)
    check_accumulator(name, acc, shape, dtype, valid)
    return acc.type


@op(
    "tile.matmul_bias", family="matmul", memory=acc(LEFT, RIGHT, BIAS), backends=BOTH, pto="pto.tmatmul.bias",
    torch=_bias_value,
)  # fmt: skip
def tile_matmul_bias(lhs: Tile, rhs: Tile, bias: Tile) -> Type:
    """``lhs @ rhs + bias`` with a ``[1, N]`` bias added to every row."""
    name = "tile.matmul_bias"
    shape, dtype, valid = _product(name, lhs, rhs)
    check_bias(name, bias, shape, dtype, valid)
    return product_tile(shape, dtype, valid)


# --- one row times a matrix --------------------------------------------------------------------------------------


def _gemv(name: str, lhs: Any, rhs: Any, phase: str) -> tuple[tuple, DataType, tuple]:
    require(phase in ACC_PHASES, f"{name} requires acc_phase to be one of {', '.join(ACC_PHASES)}, got {phase!r}")
    require_rank(name, lhs, 2, "lhs")
    require_rank(name, rhs, 2, "rhs")
    _check_dtypes(name, lhs, rhs)
    require(
        lhs.type.dtype in GEMV_DTYPES, f"{name} supports only INT8, FP16, BF16 and FP32 operands, got {lhs.type.dtype}"
    )
    rows, valid_rows = lhs.type.shape[0], valid_region(lhs)[0]
    require(
        S.const(rows) in (1, None) and S.const(valid_rows) in (1, None),
        f"{name} requires lhs to have exactly one row, got {S.shape_text(lhs.type.shape)}",
    )
    _check_inner(name, lhs, rhs)
    shape = (const_index(16), rhs.type.shape[1])
    return shape, accumulator_dtype(lhs.type.dtype), (const_index(1), valid_region(rhs)[1])


def _gemv_value(lhs: Any, rhs: Any, acc_phase: str = "") -> Any:
    return matmul_value(lhs, rhs)


@op(
    "tile.gemv", family="gemv", level="extended", memory=acc(LEFT, RIGHT), backends=BOTH, pto="pto.tgemv",
    pto_attrs=acc_phase_text, torch=_gemv_value, keep=("acc_phase",),
)  # fmt: skip
def tile_gemv(lhs: Tile, rhs: Tile, acc_phase: Attr[str] = "unspecified") -> Type:
    """One row times a matrix; Acc holds 16 physical rows, one of them valid."""
    shape, dtype, valid = _gemv("tile.gemv", lhs, rhs, acc_phase)
    return fresh_tile(shape, dtype, valid, MemorySpace.Acc)


@op(
    "tile.gemv_acc", family="gemv", level="extended", memory=acc(ACC, LEFT, RIGHT), backends=BOTH,
    effects={0: ArgEffect.ReadWrite}, result_is_arg=0, pto="pto.tgemv.acc", pto_attrs=acc_phase_text,
    torch=_acc_value, keep=("acc_phase",),
)  # fmt: skip
def tile_gemv_acc(acc: Tile, lhs: Tile, rhs: Tile, acc_phase: Attr[str] = "unspecified") -> Type:
    """``acc + row @ matrix`` in place."""
    name = "tile.gemv_acc"
    shape, dtype, valid = _gemv(name, lhs, rhs, acc_phase)
    check_accumulator(name, acc, shape, dtype, valid)
    if any(S.provably_different(a, b) for a, b in zip(valid_region(acc), valid)):
        raise ValueError(
            f"{name} requires acc with the valid shape {S.shape_text(valid)} of the product, but got "
            f"{S.shape_text(valid_region(acc))}"
        )
    return acc.type


@op(
    "tile.gemv_bias", family="gemv", level="extended", memory=acc(LEFT, RIGHT, BIAS), backends=BOTH,
    pto="pto.tgemv.bias", pto_attrs=acc_phase_text, torch=_bias_value, keep=("acc_phase",),
)  # fmt: skip
def tile_gemv_bias(lhs: Tile, rhs: Tile, bias: Tile, acc_phase: Attr[str] = "unspecified") -> Type:
    """``row @ matrix + bias``."""
    name = "tile.gemv_bias"
    shape, dtype, valid = _gemv(name, lhs, rhs, acc_phase)
    check_bias(name, bias, shape, dtype, valid)
    return fresh_tile(shape, dtype, valid, MemorySpace.Acc)


# --- batches -----------------------------------------------------------------------------------------------------


def _batch(name: str, left: Any, right: Any) -> tuple[Expr, ...]:
    """Shape of a batched product of two shapes of rank >= 2."""
    for what, shape in (("lhs", left), ("rhs", right)):
        require(len(shape) >= 2, f"{name} requires {what} of rank >= 2, got {S.shape_text(shape)}")
    if S.provably_different(left[-1], right[-2]):
        raise ValueError(
            f"{name} requires matching inner dimensions, but got lhs K={S.dim_text(left[-1])} and rhs "
            f"K={S.dim_text(right[-2])}"
        )
    return (*S.broadcast(left[:-2], right[:-2], f"{name} batch"), left[-2], right[-1])


def check_batch_accumulator(name: str, have: Any, shape: tuple) -> None:
    """Batch axes and M, N of an accumulator."""
    batch, wanted = have[:-2], shape[:-2]
    if len(batch) != len(wanted) or any(S.provably_different(a, b) for a, b in zip(batch, wanted)):
        raise ValueError(
            f"{name}: acc batch dimensions {S.shape_text(batch)} must equal the broadcast batch {S.shape_text(wanted)}"
            " (acc batch dim is never broadcast)"
        )
    if any(S.provably_different(a, b) for a, b in zip(have[-2:], shape[-2:])):
        raise ValueError(f"{name} requires acc of shape {S.shape_text(shape)}, but got {S.shape_text(have)}")


@op("tile.batch_matmul", family="matmul", memory=acc(LEFT, RIGHT), torch=matmul_value)
def tile_batch_matmul(lhs: Tile, rhs: Tile) -> Type:
    """Batched ``lhs @ rhs`` with broadcast batch axes; unrolled into 2-D products."""
    _check_dtypes("tile.batch_matmul", lhs, rhs)
    shape = _batch("tile.batch_matmul", lhs.type.shape, rhs.type.shape)
    return fresh_tile(shape, accumulator_dtype(lhs.type.dtype), (), MemorySpace.Acc)


@op(
    "tile.batch_matmul_acc", family="matmul", memory=acc(ACC, LEFT, RIGHT), effects={0: ArgEffect.ReadWrite},
    result_is_arg=0, torch=_acc_value,
)  # fmt: skip
def tile_batch_matmul_acc(acc: Tile, lhs: Tile, rhs: Tile) -> Type:
    """``acc`` plus a batched product, in place."""
    name = "tile.batch_matmul_acc"
    _check_dtypes(name, lhs, rhs)
    shape = _batch(name, lhs.type.shape, rhs.type.shape)
    check_batch_accumulator(name, acc.type.shape, shape)
    dtype = accumulator_dtype(lhs.type.dtype)
    require(acc.type.dtype == dtype, f"{name} requires accumulator dtype {dtype}, but got {acc.type.dtype}")
    return acc.type


# --- tensors -----------------------------------------------------------------------------------------------------


def _operand_shape(name: str, operand: Any, flag: bool, what: str) -> tuple:
    shape = operand.type.shape
    if not flag:
        return shape
    side = "lhs" if what == "a_trans" else "rhs"
    require(len(shape) >= 2, f"{name}: {what} does not apply to a {len(shape)}D {side}, it needs rank >= 2")
    return (*shape[:-2], shape[-1], shape[-2])


def _tensor_product(name: str, lhs: Any, rhs: Any, a_trans: bool, b_trans: bool) -> tuple[Expr, ...]:
    """Result shape of ``op(lhs) @ op(rhs)`` by the rules of torch.matmul."""
    left = _operand_shape(name, lhs, a_trans, "a_trans")
    right = _operand_shape(name, rhs, b_trans, "b_trans")
    require(bool(left) and bool(right), f"{name} requires operands of rank >= 1")
    inner = right[-2] if len(right) > 1 else right[0]
    if S.provably_different(left[-1], inner):
        raise ValueError(
            f"{name} requires matching inner dimensions, but got lhs K={S.dim_text(left[-1])} and rhs "
            f"K={S.dim_text(inner)}"
        )
    batch = S.broadcast(left[:-2], right[:-2], f"{name} batch")
    return (*batch, *left[-2:-1], *(right[-1:] if len(right) > 1 else ()))


def _matmul_front(
    lhs: Any, rhs: Any, out_dtype: Any = None, a_trans: bool = False, b_trans: bool = False, c_matrix_nz: bool = False
) -> tuple:
    kwargs: dict[str, Any] = {} if out_dtype is None else {"out_dtype": as_datatype(out_dtype)}
    kwargs.update(a_trans=a_trans, b_trans=b_trans, c_matrix_nz=c_matrix_nz)
    return (lhs, rhs), kwargs


def _tensor_matmul_value(
    lhs: Any, rhs: Any, out_dtype: DataType | None = None, a_trans: bool = False, b_trans: bool = False, **_: Any
) -> Any:
    import torch

    result = matmul_value(lhs.mT if a_trans else lhs, rhs.mT if b_trans else rhs)
    dtype = torch.promote_types(lhs.dtype, rhs.dtype) if out_dtype is None else T.torch_dtype(out_dtype)
    return result.to(dtype)


@op(
    "tensor.matmul", family="matmul", front=_matmul_front, converts_to="custom", torch=_tensor_matmul_value,
    keep=("a_trans", "b_trans", "c_matrix_nz"),
)  # fmt: skip
def tensor_matmul(
    lhs: Tensor,
    rhs: Tensor,
    out_dtype: Attr[DataType] = None,
    a_trans: Attr[bool] = False,
    b_trans: Attr[bool] = False,
    c_matrix_nz: Attr[bool] = False,
) -> Type:
    """``op(lhs) @ op(rhs)`` by the shape rules of torch.matmul, accumulated in FP32 (INT32 for integers)."""
    shape = _tensor_product("tensor.matmul", lhs, rhs, a_trans, b_trans)
    dtype = out_dtype or S.promote(lhs.type.dtype, rhs.type.dtype)
    return fresh_tensor(shape, dtype)


def _tensor_acc_front(
    acc: Any, lhs: Any, rhs: Any, a_trans: bool = False, b_trans: bool = False, init_cond: Any = None
) -> tuple:
    operands = (acc, lhs, rhs, *([] if init_cond is None else [condition(init_cond)]))
    return operands, {"a_trans": a_trans, "b_trans": b_trans}


def _tensor_acc_value(
    target: Any, lhs: Any, rhs: Any, init_cond: Any = None, a_trans: bool = False, b_trans: bool = False
) -> Any:
    value = _acc_value(target, lhs.mT if a_trans else lhs, rhs.mT if b_trans else rhs, init_cond)
    return value.to(target.dtype)


@op(
    "tensor.matmul_acc", family="matmul", front=_tensor_acc_front, converts_to="custom", keep=("a_trans", "b_trans"),
    torch=_tensor_acc_value,
)  # fmt: skip
def tensor_matmul_acc(
    acc: Tensor,
    lhs: Tensor,
    rhs: Tensor,
    init_cond: Scalar = None,
    *,
    a_trans: Attr[bool] = False,
    b_trans: Attr[bool] = False,
) -> Type:
    """``acc + op(lhs) @ op(rhs)`` in place, or the product alone where ``init_cond`` holds."""
    name = "tensor.matmul_acc"
    shape = _tensor_product(name, lhs, rhs, a_trans, b_trans)
    require(len(shape) >= 2, f"{name} requires operands of rank >= 2")
    _check_condition(name, init_cond, len(shape))
    check_batch_accumulator(name, acc.type.shape, shape)
    return acc.type
