"""Sorting: blocks of 32, and merging of sorted runs."""

from __future__ import annotations

from typing import Any

from pypto.ir.dtype import DataType
from pypto.ir.expr import ConstInt, as_expr
from pypto.ir.span import UNKNOWN_SPAN
from pypto.ir.types import Type
from pypto.ops import shapes as S
from pypto.ops.kinds import Attr, Scalar, Tensor, Tile
from pypto.ops.memory_specs import BOTH, row_major, vec
from pypto.ops.registry import op
from pypto.ops.rules import fresh_tensor, fresh_tile, require

SORT_DTYPES = (DataType.FP16, DataType.FP32)


def _check_sorted(name: str, operand: Any) -> None:
    require(len(operand.type.shape) > 0, f"{name} requires operands of rank >= 1")
    require(operand.type.dtype in SORT_DTYPES, f"{name} requires src dtype FP16 or FP32, but got {operand.type.dtype}")


def _doubled(name: str, src: Any, idx: Any) -> tuple:
    _check_sorted(name, src)
    require(
        idx.type.dtype in (DataType.UINT32, DataType.INT32),
        f"{name} requires a 32-bit integer idx, got {idx.type.dtype}",
    )
    *rows, cols = src.type.shape
    return (*rows, S.mul(cols, 2))


def _sorted_pairs(src: Any, idx: Any) -> Any:
    """Per block of 32: (value, index bits) pairs, descending, smaller index first on ties."""
    import torch

    rows, cols = src.shape
    values, keys = src.reshape(rows, -1, 32), idx.reshape(rows, -1, 32)
    by_key = keys.to(torch.int64).argsort(dim=-1, stable=True)
    order = by_key.gather(-1, (-values.gather(-1, by_key)).argsort(dim=-1, stable=True))
    payload = keys.contiguous().view(torch.float32).gather(-1, order).to(src.dtype)
    return torch.stack((values.gather(-1, order), payload), -1).reshape(rows, 2 * cols)


@op(
    "tile.sort32", family="sort", level="extended", memory=vec(2), layouts=row_major(2), backends=BOTH,
    inplace_safe=False, pto="pto.tsort32", torch=_sorted_pairs,
)  # fmt: skip
def tile_sort32(src: Tile, idx: Tile) -> Type:
    """Each block of 32 columns sorted descending, as interleaved (value, index bits) pairs."""
    return fresh_tile(_doubled("tile.sort32", src, idx), src.type.dtype)


@op("tensor.sort32", family="sort", level="extended", converts_to="tile.sort32", torch=_sorted_pairs)
def tensor_sort32(src: Tensor, idx: Tensor) -> Type:
    """Each block of 32 columns sorted descending, as interleaved (value, index bits) pairs."""
    return fresh_tensor(_doubled("tensor.sort32", src, idx), src.type.dtype)


# --- merging -----------------------------------------------------------------------------------------------------


def _runs(name: str, src0: Any, others: tuple, tmp: Any, exhausted: bool, block_len: Any) -> tuple:
    """(format, operands, kwargs) of an mrgsort call."""
    if block_len is not None:
        if any(o is not None for o in (*others, tmp)) or exhausted:
            raise ValueError(f"{name}: block_len and further sources (src1.., tmp, exhausted) are mutually exclusive")
        length = ConstInt(block_len, DataType.INT32, UNKNOWN_SPAN) if isinstance(block_len, int) else block_len
        length = as_expr(length)
        if isinstance(length, ConstInt) and length.dtype == DataType.INDEX:
            length = ConstInt(length.value, DataType.INT32, length.span)
        return f"{name}_format1", (src0, length), {}
    src1, src2, src3 = others
    if src1 is None:
        raise ValueError(f"{name} requires block_len, or at least two sources")
    if src3 is not None and src2 is None:
        raise ValueError(f"{name} requires src2 when src3 is given")
    sources = [src0, *(s for s in others if s is not None), *([] if tmp is None else [tmp])]
    return f"{name}_format2", sources, {"exhausted": bool(exhausted)}


def _tile_front(
    src0: Any,
    src1: Any = None,
    src2: Any = None,
    src3: Any = None,
    tmp: Any = None,
    exhausted: bool = False,
    *,
    block_len: Any = None,
) -> tuple:
    if block_len is None and src1 is not None and tmp is None:
        raise ValueError("tile.mrgsort of several sources requires tmp, a scratch tile shaped like the result")
    return _runs("tile.mrgsort", src0, (src1, src2, src3), tmp, exhausted, block_len)


def _tensor_front(
    src0: Any, src1: Any = None, src2: Any = None, src3: Any = None, *, exhausted: bool = False, block_len: Any = None
) -> tuple:
    return _runs("tensor.mrgsort", src0, (src1, src2, src3), None, exhausted, block_len)


def _check_run(name: str, src: Any, block_len: Any) -> None:
    _check_sorted(name, src)
    kind = block_len.type.dtype
    require(kind == DataType.INT32, f"{name} requires an INT32 block_len, but got {kind}")
    length, cols = S.const(block_len), S.const(src.type.shape[-1])
    if length is None:
        return
    require(length > 0 and length % 64 == 0, f"{name} requires block_len to be a positive multiple of 64, got {length}")
    if cols is not None and cols % (4 * length):
        _check_columns(name, cols, length)


def _check_columns(name: str, cols: int, length: int) -> None:
    """Fewer than four runs are accepted: the device merges what is there."""
    require(cols % length == 0, f"{name} requires the columns ({cols}) to hold whole runs of block_len {length}")


def _merge_pairs(pairs: Any) -> Any:
    """(value, payload) pairs ``[n, 2]`` in descending order of value."""
    return pairs[(-pairs[:, 0]).argsort(stable=True)]


def _merged_runs(src: Any, block_len: Any) -> Any:
    import torch

    step = 4 * int(block_len)
    parts = [_merge_pairs(part.reshape(-1, 2)).reshape(-1) for part in src.reshape(-1).split(step)]
    return torch.cat(parts).reshape(src.shape)


def _merged_lists(*operands: Any, exhausted: bool = False, scratch: bool = False) -> Any:
    import torch

    sources = operands[:-1] if scratch else operands
    pairs = torch.cat([s.reshape(-1, 2) for s in sources])
    return _merge_pairs(pairs).reshape(1, -1)


@op(
    "tile.mrgsort_format1", family="sort", level="extended", front=_tile_front, memory=vec(1), layouts=row_major(1),
    backends=BOTH, inplace_safe=False, pto="pto.tmrgsort", python_name="mrgsort", torch=_merged_runs,
)  # fmt: skip
def tile_mrgsort_format1(src: Tile, block_len: Scalar) -> Type:
    """Every four adjacent descending runs of ``block_len`` elements merged into one."""
    _check_run("tile.mrgsort_format1", src, block_len)
    return fresh_tile(src.type.shape, src.type.dtype)


@op(
    "tensor.mrgsort_format1", family="sort", level="extended", front=_tensor_front, python_name="mrgsort",
    converts_to="tile.mrgsort_format1", torch=_merged_runs,
)  # fmt: skip
def tensor_mrgsort_format1(src: Tensor, block_len: Scalar) -> Type:
    """Every four adjacent descending runs of ``block_len`` elements merged into one."""
    _check_run("tensor.mrgsort_format1", src, block_len)
    return fresh_tensor(src.type.shape, src.type.dtype)


def _merged_shape(name: str, sources: tuple) -> tuple:
    require(2 <= len(sources) <= 4, f"{name} requires 2 to 4 sources, got {len(sources)}")
    first = sources[0].type
    _check_sorted(name, sources[0])
    cols = first.shape[-1]
    for source in sources[1:]:
        require(
            source.type.dtype == first.dtype,
            f"{name} requires sources of matching dtype, but got {first.dtype} and {source.type.dtype}",
        )
        lead, other = first.shape[:-1], source.type.shape[:-1]
        if len(lead) != len(other) or any(S.provably_different(a, b) for a, b in zip(lead, other)):
            raise ValueError(
                f"{name} requires sources of the same rows, but got {S.shape_text(first.shape)} and "
                f"{S.shape_text(source.type.shape)}"
            )
        cols = S.add(cols, source.type.shape[-1])
    return (*first.shape[:-1], cols)


@op(
    "tile.mrgsort_format2", family="sort", level="extended", memory=vec(5), layouts=row_major(4), backends=BOTH,
    inplace_safe=False, pto="pto.tmrgsort", python_name="", keep=("exhausted",),
    pto_attrs=lambda call: f"{{exhausted = {'true' if call.kwargs.get('exhausted') else 'false'}}}",
    pto_operands=lambda call: list(call.args[:-1]),
    torch=lambda *operands, exhausted=False: _merged_lists(*operands, scratch=True),
)  # fmt: skip
def tile_mrgsort_format2(*operands: Tile, exhausted: Attr[bool] = False) -> Type:
    """Two to four descending pair lists merged into one; the last operand is scratch shaped like the result."""
    name = "tile.mrgsort_format2"
    *sources, tmp = operands
    shape = _merged_shape(name, tuple(sources))
    require(tmp.type.dtype == sources[0].type.dtype, f"{name} requires tmp of matching dtype, got {tmp.type.dtype}")
    if len(tmp.type.shape) != len(shape) or any(S.provably_lt(a, b) for a, b in zip(tmp.type.shape, shape)):
        raise ValueError(f"{name} requires tmp of shape {S.shape_text(shape)}, got {S.shape_text(tmp.type.shape)}")
    return fresh_tile(shape, sources[0].type.dtype)


@op(
    "tensor.mrgsort_format2", family="sort", level="extended", converts_to="custom", python_name="",
    keep=("exhausted",), torch=_merged_lists,
)  # fmt: skip
def tensor_mrgsort_format2(*operands: Tensor, exhausted: Attr[bool] = False) -> Type:
    """Two to four descending pair lists merged into one."""
    return fresh_tensor(_merged_shape("tensor.mrgsort_format2", operands), operands[0].type.dtype)
