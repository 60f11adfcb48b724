"""Valid regions: what a window sees, what a write leaves behind, where a reshape puts them.

A valid region is an origin-anchored box. Rules reject what is provably wrong and accept what cannot be decided,
except where accepting would widen padding into data (writes and reshapes of partial regions).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pypto.ir.expr import Expr, const_index
from pypto.ops import shapes as S


def check_offsets(name: str, offset: Sequence[Expr]) -> None:
    """Reject an offset that is certainly negative."""
    for axis, value in enumerate(offset):
        if S.provably_negative(value):
            raise ValueError(f"{name}: the offset of dimension {axis} is provably negative ({S.dim_text(value)})")


def check_window(
    name: str,
    source_shape: Sequence[Expr],
    offset: Sequence[Expr],
    extent: Sequence[Expr],
    *,
    clamp: bool = False,
    remedy: str = "",
) -> None:
    """Reject a window that certainly starts before the source or (unless clamped) ends past it."""
    check_offsets(name, offset)
    if clamp:
        return
    for axis, (size, start, count) in enumerate(zip(source_shape, offset, extent)):
        if S.past_end(start, count, size):
            raise ValueError(
                f"{name} reads past the end of dimension {axis}: offset {S.dim_text(start)} + extent "
                f"{S.dim_text(count)} exceeds {S.dim_text(size)}{remedy}"
            )


def check_requested(name: str, requested: Sequence[Expr], window: Sequence[Expr]) -> None:
    """Reject a requested valid shape that is certainly negative or larger than its window."""
    for axis, (value, size) in enumerate(zip(requested, window)):
        if S.provably_negative(value):
            raise ValueError(f"{name}: valid_shape of dimension {axis} must be >= 0, got {S.dim_text(value)}")
        if S.provably_lt(size, value):
            raise ValueError(
                f"{name}: valid_shape {S.dim_text(value)} of dimension {axis} exceeds the window extent "
                f"{S.dim_text(size)}"
            )


def window_region(
    source_shape: Sequence[Expr],
    source_valid: Sequence[Expr],
    offset: Sequence[Expr],
    window: Sequence[Expr],
    requested: Sequence[Expr],
    *,
    clamp: bool = False,
) -> tuple[Expr, ...]:
    """``min(requested, clamp(source_valid - offset, 0, window))`` per axis.

    An axis on which the source is fully valid keeps the request: being inside the source is the caller's contract
    unless ``clamp`` sanctions a ragged edge.
    """
    out = []
    for size, valid, start, count, wish in zip(source_shape, source_valid, offset, window, requested):
        if not clamp and S.provably_equal(size, valid):
            out.append(wish)
            continue
        rest = S.sub(valid, start)
        available = S.minimum(rest, count)
        if S.const(start) != 0:
            available = S.maximum(available, const_index(0))
        out.append(available if S.provably_equal(wish, count) else S.minimum(wish, available))
    return tuple(out)


def write_region(
    name: str,
    target_shape: Sequence[Expr],
    target_valid: Sequence[Expr],
    offset: Sequence[Expr],
    extent: Sequence[Expr],
    *,
    transferred: Sequence[Expr] | None = None,
    detail: str = "",
) -> tuple[Expr, ...]:
    """Valid region of a target after a box of ``extent`` was written at ``offset``.

    ``transferred`` is the box that must fit into the target when it differs from the valid one (on-chip assembly
    copies the physical source). The union must again be one origin-anchored box.

    Raises:
        ValueError: negative offset, write past the end, gap, L-shape, or off-origin write into an empty target.
    """
    check_offsets(name, offset)
    for axis, (size, start, count) in enumerate(zip(target_shape, offset, transferred or extent)):
        if S.past_end(start, count, size):
            raise ValueError(
                f"{name} writes past the end of dimension {axis}: offset {S.dim_text(start)} + extent "
                f"{S.dim_text(count)} exceeds {S.dim_text(size)}{detail}"
            )
    if S.all_equal(target_shape, target_valid):
        return tuple(target_shape)
    if any(S.const(e) == 0 for e in extent):
        return tuple(target_valid)
    at_origin = all(S.const(o) == 0 for o in offset)
    if any(S.const(v) == 0 for v in target_valid):
        if not at_origin:
            raise ValueError(
                f"{name}: the target holds no valid data and the region written at {S.shape_text(offset)} "
                "does not start at the origin"
            )
        return tuple(extent)
    ends = [S.add(start, count) for start, count in zip(offset, extent)]
    growing = [axis for axis, (end, valid) in enumerate(zip(ends, target_valid)) if not S.provably_le(end, valid)]
    if not growing:
        return tuple(target_valid)
    if at_origin and all(S.provably_le(valid, count) for valid, count in zip(target_valid, extent)):
        return tuple(extent)
    if len(growing) > 1:
        raise ValueError(
            f"{name} would grow the valid region {S.shape_text(target_valid)} in dimensions {growing[0]} and "
            f"{growing[1]} at once, which leaves an L-shape; write one dimension at a time"
        )
    return _grown(name, growing[0], target_shape, target_valid, offset, extent, ends[growing[0]])


def _grown(
    name: str,
    axis: int,
    target_shape: Sequence[Expr],
    target_valid: Sequence[Expr],
    offset: Sequence[Expr],
    extent: Sequence[Expr],
    end: Expr,
) -> tuple[Expr, ...]:
    for other, (start, count, valid) in enumerate(zip(offset, extent, target_valid)):
        if other == axis:
            continue
        if S.const(start) != 0:
            raise ValueError(
                f"{name} grows dimension {axis}, so the write must span dimension {other} from the origin, "
                f"but starts at {S.dim_text(start)}"
            )
        if not S.provably_equal(count, valid):
            raise ValueError(
                f"{name} grows dimension {axis}, so the extent {S.dim_text(count)} of dimension {other} must provably "
                f"equal the target valid extent {S.dim_text(valid)}"
            )
    start, valid = offset[axis], target_valid[axis]
    if not S.provably_le(start, valid):
        raise ValueError(
            f"{name} leaves a gap in dimension {axis}: the target is valid up to {S.dim_text(valid)}, the write "
            f"starts at {S.dim_text(start)}"
        )
    grown = end if S.provably_equal(start, valid) else S.maximum(valid, end)
    out = list(target_valid)
    out[axis] = S.minimum(grown, target_shape[axis])
    return tuple(out)


def reshape_region(
    name: str,
    old_shape: Sequence[Expr],
    old_valid: Sequence[Expr],
    new_shape: Sequence[Expr],
    *,
    row_major: bool = True,
) -> tuple[Expr, ...]:
    """Image of a valid region under a row-major reshape, exact or rejected.

    Raises:
        ValueError: a partial region that is no box of the new shape, or storage that is not row-major.
    """
    if S.all_equal(old_shape, old_valid):
        return tuple(new_shape)
    if any(S.const(v) == 0 for v in old_valid):
        return tuple(const_index(0) for _ in new_shape)
    if not row_major:
        raise ValueError(
            f"{name}: the partially valid source {S.shape_text(old_valid)} of {S.shape_text(old_shape)} is not "
            "stored row-major, so its region has no image in another shape"
        )
    kept = [(s, v) for s, v in zip(old_shape, old_valid) if not (S.const(s) == 1 and S.const(v) == 1)]
    new_kept = [d for d in new_shape if S.const(d) != 1]
    if S.all_equal([s for s, _ in kept], new_kept):
        extents = iter([v for _, v in kept])
        return tuple(d if S.const(d) == 1 else next(extents) for d in new_shape)
    return _prefix_region(name, old_shape, old_valid, new_shape)


def _prefix_region(
    name: str, old_shape: Sequence[Expr], old_valid: Sequence[Expr], new_shape: Sequence[Expr]
) -> tuple[Expr, ...]:
    """The region as a run of cells from the start of the buffer, cut into rows of the new shape."""
    partial = max(i for i, (s, v) in enumerate(zip(old_shape, old_valid)) if not S.provably_equal(s, v))
    if any(S.const(v) != 1 for v in old_valid[:partial]):
        raise ValueError(
            f"{name}: the real data is scattered across the buffer (valid {S.shape_text(old_valid)} of "
            f"{S.shape_text(old_shape)}), so no box of {S.shape_text(new_shape)} holds exactly it"
        )
    rows, row_size = old_valid[partial], S.product(old_shape[partial + 1 :])
    trailing = [S.product(new_shape[i + 1 :]) for i in range(len(new_shape))]
    cells, counts = S.const(S.mul(rows, row_size)), S.consts(new_shape)
    if cells is None or counts is None:
        for axis, step in enumerate(trailing):
            if S.provably_equal(step, row_size) and S.provably_le(old_shape[partial], new_shape[axis]):
                return _box(new_shape, axis, rows)
        raise ValueError(
            f"{name}: no dimension of {S.shape_text(new_shape)} has the matching row size {S.dim_text(row_size)}, so "
            f"{S.dim_text(rows)} valid rows cannot be expressed"
        )
    for axis in reversed(range(len(new_shape))):
        step = S.const(trailing[axis])
        if step and cells <= counts[axis] * step:
            if cells % step:
                break
            return _box(new_shape, axis, const_index(cells // step))
    raise ValueError(f"{name}: the {cells} valid cells do not fill a whole number of rows of {S.shape_text(new_shape)}")


def _box(shape: Sequence[Expr], axis: int, extent: Expr) -> tuple[Expr, ...]:
    return (*(const_index(1) for _ in shape[:axis]), extent, *shape[axis + 1 :])


def check_same_rank(name: str, **parts: Sequence[Any]) -> None:
    """Reject operand lists of different lengths, naming them."""
    if len({len(p) for p in parts.values()}) > 1:
        listing = ", ".join(f"{key} has {len(part)}" for key, part in parts.items())
        raise ValueError(f"{name} requires {' and '.join(parts)} to have the same rank, but {listing}")
