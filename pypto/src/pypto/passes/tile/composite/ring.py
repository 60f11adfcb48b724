"""Allreduce on a ring: every rank adds up one segment and hands it on, then all segments travel round once more.

Both phases take one round less than there are ranks. In a round every rank reads one segment from its left neighbour,
piece by piece; a barrier before reading sees the neighbour's last write, one after it lets the piece be overwritten.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pypto.errors import UnsupportedFeatureError, user_error
from pypto.ir.dtype import DataType
from pypto.ir.enums import MemorySpace, PadValue, ReduceOp, TensorLayout
from pypto.ir.expr import (
    Add,
    Cast,
    ConstInt,
    Expr,
    FloorMod,
    Lt,
    Max,
    Min,
    Mul,
    Sub,
    Var,
    const_index,
    const_value,
)
from pypto.ir.types import DistributedTensorType
from pypto.passes.lib import scalars
from pypto.passes.tile.composite.tiles import ALIGNMENT_BYTES, CHUNK_BYTES, COMBINE, index_tuple

if TYPE_CHECKING:
    from pypto.passes.tile.composite.collectives import Domain
    from pypto.passes.tile.composite.recipes import Steps

_INDEX = DataType.INDEX
#: Interior bounds of FP16 segments are multiples of this many elements.
_FP16_STEP = 16


def ring_allreduce(domain: Domain, target: Expr, op: ReduceOp) -> None:
    """Write the statements of one call.

    Raises:
        ValueError: the signal is not ``[2*(NR-1), NR]`` with a constant number of ranks, or the target is not one
            packed row-major stream.
    """
    ranks = _rank_count(domain.signal, domain.steps)
    ring = _Ring(domain, target, ranks, op)
    ring.reduce_scatter()
    ring.allgather()
    ring.reset()


def _rank_count(signal: Expr, steps: Steps) -> int:
    shape = [const_value(d) for d in signal.type.shape]
    ranks = shape[1] if len(shape) == 2 else None
    if ranks is None or shape[0] is None:
        raise user_error(
            "pld.tensor.allreduce(mode='ring') in a kernel needs a signal [2*(NR-1), NR] with constant extents",
            span=steps.span,
        )
    if ranks < 1 or shape[0] != 2 * (ranks - 1):
        raise user_error(
            f"pld.tensor.allreduce(mode='ring'): the signal must be [2*(NR-1), NR], got [{shape[0]}, {ranks}]",
            span=steps.span,
        )
    return ranks


class _Ring:
    """Segments, pieces and rounds of one call."""

    def __init__(self, domain: Domain, target: Expr, ranks: int, op: ReduceOp) -> None:
        self._domain, self._steps, self._ranks, self._op = domain, domain.steps, ranks, op
        self._flat, self._size = _flat(domain.steps, target)
        self._half = target.type.dtype == DataType.FP16
        item = target.type.dtype.get_byte()
        step = ALIGNMENT_BYTES // item
        longest = scalars.floordiv(scalars.add(self._size, ranks - 1), ranks)
        if self._half:
            longest = _minimum(self._size, scalars.add(longest, _FP16_STEP - 1))
        self._longest = longest
        known = const_value(longest)
        limit = CHUNK_BYTES // item
        self._width = limit if known is None else min(limit, scalars.align(known, step))
        self._left = self._steps.let("left", self._rank(scalars.add(domain.my_index, ranks - 1)))

    def _rank(self, value: Expr) -> Expr:
        return FloorMod(value, const_index(self._ranks), _INDEX)

    def _bound(self, segment: Expr) -> Expr:
        """First element of a segment; one past the last segment it is the size."""
        bound = scalars.floordiv(Mul(segment, self._size, _INDEX), self._ranks)
        if not self._half:
            return bound
        rounded = scalars.mul(scalars.floordiv(scalars.add(bound, _FP16_STEP - 1), _FP16_STEP), _FP16_STEP)
        return _minimum(rounded, self._size)

    def reduce_scatter(self) -> None:
        """Afterwards every rank holds the whole sum of the segment behind its own number."""
        self._phase("rs", self._ranks - 1, 0, self._combined)

    def allgather(self) -> None:
        """Hand the finished segments round."""
        self._phase("ag", self._ranks, self._ranks - 1, lambda offset, valid: self._remote(offset, valid))

    def reset(self) -> None:
        """Give the credits of every round back."""
        pieces = scalars.floordiv(scalars.add(self._longest, self._width - 1), self._width)
        known = const_value(pieces)
        total = Mul(Cast(pieces, DataType.INT32), ConstInt(2, DataType.INT32), DataType.INT32)
        count = 2 * known if known is not None else self._steps.let("barriers", total)
        rows = const_index(2 * (self._ranks - 1))
        self._steps.loop("reset_row", rows, lambda row: self._domain.reset(count, row))

    def _phase(self, name: str, ahead: int, first_row: int, read) -> None:
        """Rounds that read segment ``my_rank + ahead - round`` from the left neighbour and write it at home."""
        s, domain = self._steps, self._domain

        def one_round(number: Var) -> None:
            row = scalars.add(number, first_row)
            segment = s.let(
                f"{name}_segment", self._rank(Sub(scalars.add(domain.my_index, ahead), number, _INDEX))
            )  # fmt: skip
            start = s.let(f"{name}_start", self._bound(segment))
            end = s.let(f"{name}_end", self._bound(scalars.add(segment, 1)))
            length = s.let(f"{name}_length", Sub(end, start, _INDEX))
            s.loop(
                f"{name}_col", self._longest, lambda col: piece(row, start, length, col), stride=self._width
            )  # fmt: skip

        def piece(row: Expr, start: Expr, length: Expr, col: Var) -> None:
            number = scalars.mul(scalars.floordiv(col, self._width), 2)
            offset = s.let(f"{name}_offset", Add(start, col, _INDEX))
            left = Sub(length, col, _INDEX)
            valid = s.let(
                f"{name}_valid", Max(Min(left, const_index(self._width), _INDEX), const_index(0), _INDEX)
            )  # fmt: skip
            active = Lt(col, length, DataType.BOOL)
            domain.barrier(s.let(f"{name}_ready", Cast(scalars.add(number, 1), DataType.INT32)), row)
            value = s.choose(
                f"{name}_value", active, lambda: read(offset, valid), lambda: self._local(const_index(0), valid)
            )  # fmt: skip
            domain.barrier(s.let(f"{name}_done", Cast(scalars.add(number, 2), DataType.INT32)), row)
            s.when(active, lambda: s.emit(f"{name}_stored", "tile.store", [value, index_tuple(0, offset), self._flat]))

        s.loop(f"{name}_round", const_index(self._ranks - 1), one_round)

    def _window(self, valid: Expr) -> list[Expr]:
        return [index_tuple(1, self._width), index_tuple(1, valid)]

    def _local(self, offset: Expr, valid: Expr) -> Var:
        operands = [self._flat, index_tuple(0, offset), *self._window(valid)]
        return self._steps.emit("local", "tile.load", operands, {"target_memory": MemorySpace.Vec})

    def _remote(self, offset: Expr, valid: Expr) -> Var:
        options = {"allow_physical_tail_padding": True} if self._half else {}
        peer = Cast(self._left, DataType.INT32)
        operands = [self._flat, peer, index_tuple(0, offset), *self._window(valid)]
        return self._steps.emit("piece", "pld.tile.remote_load", operands, options)

    def _combined(self, offset: Expr, valid: Expr) -> Var:
        """Both pieces widened to whole tiles, combined, and narrowed again."""
        s = self._steps
        whole = [
            s.emit("whole", "tile.fillpad_inplace", [tile], {"pad_value": PadValue.zero})
            for tile in (self._local(offset, valid), self._remote(offset, valid))
        ]
        total = s.emit("total", COMBINE[self._op], whole)
        return s.emit("narrow", "tile.set_validshape", [total, const_index(1), valid])


def _flat(steps: Steps, target: Expr) -> tuple[Expr, Expr]:
    """The target as one row, and the number of its elements."""
    kind = target.type
    assert isinstance(kind, DistributedTensorType)
    view = kind.tensor_view
    if view is not None and view.layout is not TensorLayout.ND:
        raise user_error(
            f"pld.tensor.allreduce(mode='ring') only supports ND layout, got {view.layout.name}", span=steps.span
        )
    count: Expr = const_index(1)
    for extent in kind.shape:
        count = scalars.mul(count, extent)
    shape = index_tuple(1, count)
    if view is None or not view.valid_shape:
        return steps.emit("flat", "tensor.view", [target, shape]), count
    if not _is_prefix(kind):
        raise user_error(
            "pld.tensor.allreduce(mode='ring'): the valid region must be a contiguous row-major prefix", span=steps.span
        )
    raise UnsupportedFeatureError("pld.tensor.allreduce of a partially valid tensor inside a kernel")


def _is_prefix(kind: DistributedTensorType) -> bool:
    """The valid cells come first in row-major order: one row of some axis, and everything behind it."""
    narrowed = False
    for extent, valid in reversed(list(zip(kind.shape, kind.tensor_view.valid_shape))):
        if narrowed and const_value(valid) != 1:
            return False
        same = extent is valid or (const_value(extent) is not None and const_value(extent) == const_value(valid))
        narrowed = narrowed or not same
    return True


def _minimum(a: Expr, b: Expr) -> Expr:
    x, y = const_value(a), const_value(b)
    return const_index(min(x, y)) if x is not None and y is not None else Min(a, b, _INDEX)
