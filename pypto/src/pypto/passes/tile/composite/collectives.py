"""Collectives of kernels: a self-clearing credit barrier around remote transfers.

Per call the g-th barrier adds one credit to every peer's cell and waits for at least g credits from each; at the end
every cell gives back the credits it received, so the next call starts at one again.
"""

from __future__ import annotations

from collections.abc import Callable

from pypto.errors import UnsupportedFeatureError, user_error
from pypto.ir.dtype import DataType
from pypto.ir.enums import AtomicType, MemorySpace, NotifyOp, ReduceOp, WaitCmp
from pypto.ir.expr import (
    Add,
    Call,
    Cast,
    ConstInt,
    Expr,
    MakeTuple,
    Min,
    Mul,
    Ne,
    Neg,
    Sub,
    Var,
    const_index,
    const_value,
)
from pypto.ir.types import TensorType
from pypto.passes.lib import scalars
from pypto.passes.tile.composite.recipes import Steps, recipe
from pypto.passes.tile.composite.ring import ring_allreduce
from pypto.passes.tile.composite.tiles import ALIGNMENT_BYTES, CHUNK_BYTES, COMBINE, index_tuple


def _int32(value: int) -> ConstInt:
    return ConstInt(value, DataType.INT32)


class Domain:
    """One collective call on one rank: who takes part, and its barriers.

    A barrier counts in the cell of each peer: column 0 of the peer's row for mesh collectives, the peer's column of one
    row per round for rings.
    """

    def __init__(self, steps: Steps, signal: Expr, *, ring: bool = False) -> None:
        self.steps = steps
        self.signal = signal
        columns = signal.type.shape[1:]
        if not ring and columns and const_value(columns[0]) not in (None, 1):
            raise user_error(
                f"signal shape[1] must be 1 for a mesh collective in a kernel, got {const_value(columns[0])}",
                span=steps.span,
            )
        context = steps.emit("ctx", "pld.system.get_comm_ctx", [signal])
        count = steps.emit("nranks", "pld.system.nranks", [context])
        self.ranks = steps.let("nranks_idx", Cast(count, DataType.INDEX, steps.span))
        self.me = steps.emit("my_rank", "pld.system.rank", [context])

    @property
    def my_index(self) -> Expr:
        return Cast(self.me, DataType.INDEX, self.steps.span)

    def _cell(self, rank: Expr, row: Expr | None) -> MakeTuple:
        if row is not None:
            return index_tuple(row, rank)
        return index_tuple(rank, 0) if len(self.signal.type.shape) > 1 else index_tuple(rank)

    def each_peer(self, step: str, body: Callable[[Var], None]) -> None:
        """``body(rank)`` for every rank but this one."""
        s = self.steps

        def guarded(rank: Var) -> None:
            s.when(Ne(rank, self.my_index, DataType.BOOL, s.span), lambda: body(rank))

        s.loop(step, self.ranks, guarded)

    def barrier(self, generation: Expr | int, row: Expr | None = None) -> None:
        """Publish what this rank wrote and wait until every peer did."""
        s = self.steps
        level = _int32(generation) if isinstance(generation, int) else generation
        self.each_peer(
            "peer",
            lambda p: s.emit("notify_ret", "pld.system.notify", [self.signal, p, self._cell(self.me, row), _int32(1)],
                             {"op": int(NotifyOp.AtomicAdd)}),
        )  # fmt: skip
        self.each_peer(
            "src",
            lambda p: s.emit("wait_ret", "pld.system.wait", [self.signal, self._cell(p, row), level],
                             {"cmp": int(WaitCmp.Ge)}),
        )  # fmt: skip

    def reset(self, barriers: Expr | int, row: Expr | None = None) -> None:
        """Give the credits of all barriers back."""
        s = self.steps
        value = _int32(-barriers) if isinstance(barriers, int) else Neg(barriers, DataType.INT32, s.span)
        self.each_peer(
            "reset_src",
            lambda p: s.emit("epilogue_reset_ret", "pld.system.notify",
                             [self.signal, self.me, self._cell(p, row), value], {"op": int(NotifyOp.AtomicAdd)}),
        )  # fmt: skip


def _stage(steps: Steps, rows: int, cols: int, dtype: DataType) -> Var:
    options = {"dtype": dtype, "target_memory": MemorySpace.Vec}
    return steps.emit("stage", "tile.create", [index_tuple(rows, cols)], options)


def _static(kind: TensorType, what: str, steps: Steps) -> list[int]:
    extents = [const_value(d) for d in kind.shape]
    if None in extents:
        raise user_error(f"{what} in a kernel needs static extents", span=steps.span)
    return extents  # type: ignore[return-value]


@recipe("pld.tensor.barrier")
def _barrier(steps: Steps, call: Call) -> Expr:
    domain = Domain(steps, call.args[0])
    domain.barrier(1)
    domain.reset(1)
    return call.args[0]


@recipe("pld.tensor.broadcast")
def _broadcast(steps: Steps, call: Call) -> Expr:
    target, signal = call.args
    rows, cols = _matrix(target.type, "pld.tensor.broadcast", steps)
    domain = Domain(steps, signal)
    domain.barrier(1)
    root = const_index(call.kwargs["root"])

    def fetch() -> None:
        stage = _stage(steps, rows, cols, target.type.dtype)
        steps.emit("get_ret", "pld.tile.get", [target, _int32(call.kwargs["root"]), target, stage])

    steps.when(Ne(domain.my_index, root, DataType.BOOL, steps.span), fetch)
    domain.reset(1)
    return target


def _matrix(kind: TensorType, what: str, steps: Steps) -> tuple[int, int]:
    """(rows, columns) of a staging tile for a whole tensor."""
    extents = _static(kind, what, steps)
    rows = 1
    for extent in extents[:-1]:
        rows *= extent
    return rows, extents[-1]


def _scatter_rows(steps: Steps, call: Call, source_row: Callable[[Var], Expr | int]) -> Expr:
    """Put one row into row ``my_rank`` of every rank's target, then meet."""
    source, target, signal = call.args[:3]
    width = _static(target.type, call.op.name, steps)[-1]
    domain = Domain(steps, signal)
    stage = _stage(steps, 1, width, target.type.dtype)

    def put(rank: Var) -> None:
        operands = [target, rank, source, stage, index_tuple(domain.my_index, 0), index_tuple(source_row(rank), 0),
                    index_tuple(1, width)]  # fmt: skip
        steps.emit("put_ret", "pld.tile.put", operands, {"atomic": int(AtomicType.None_)})

    steps.loop("dest", domain.ranks, put)
    domain.barrier(1)
    domain.reset(1)
    return target


@recipe("pld.tensor.allgather")
def _allgather(steps: Steps, call: Call) -> Expr:
    return _scatter_rows(steps, call, lambda rank: 0)


@recipe("pld.tensor.all_to_all")
def _all_to_all(steps: Steps, call: Call) -> Expr:
    return _scatter_rows(steps, call, lambda rank: rank)


@recipe("pld.tensor.all_to_all_v")
def _all_to_all_v(steps: Steps, call: Call) -> Expr:
    raise UnsupportedFeatureError("pld.tensor.all_to_all_v inside a kernel; use it in a HOST orchestrator")


@recipe("pld.tensor.reduce_scatter")
def _reduce_scatter(steps: Steps, call: Call) -> Expr:
    target, signal = call.args
    if call.kwargs.get("op", ReduceOp.Sum) != ReduceOp.Sum:
        raise user_error("pld.tensor.reduce_scatter: op must be ReduceOp.Sum", span=call.span)
    width = _static(target.type, "pld.tensor.reduce_scatter", steps)[-1]
    domain = Domain(steps, signal)
    domain.barrier(1)
    total = _combine_peers(domain, target, index_tuple(domain.my_index, 0), width, const_index(width), ReduceOp.Sum)
    domain.barrier(2)
    stored = steps.emit("stored", "tile.store", [total, index_tuple(domain.my_index, 0), target])
    domain.reset(2)
    return stored


def _combine_peers(domain: Domain, source: Expr, offsets: MakeTuple, width: int, valid: Expr, op: ReduceOp) -> Var:
    """Own window combined with every peer's, in ascending rank."""
    s = domain.steps
    shape, region = index_tuple(1, width), index_tuple(1, valid)
    own = s.emit("own", "tile.load", [source, offsets, shape, region], {"target_memory": MemorySpace.Vec})

    def add(rank: Var, acc: Expr) -> Expr:
        def combined() -> Expr:
            piece = s.emit("piece", "pld.tile.remote_load", [source, rank, offsets, shape, region])
            return s.emit("combined", COMBINE[ReduceOp(op)], [acc, piece])

        return s.choose("acc", Ne(rank, domain.my_index, DataType.BOOL, s.span), combined, acc)

    return s.carry("from", domain.ranks, own, add)


@recipe("pld.tensor.allreduce")
def _allreduce(steps: Steps, call: Call) -> Expr:
    if len(call.args) < 2:
        raise user_error(
            "pld.tensor.allreduce requires an explicit signal outside host orchestrator; pass the signal window",
            span=call.span,
        )
    if call.kwargs.get("core_num", 1) not in (None, 1):
        raise user_error("pld.tensor.allreduce: core_num > 1 is supported only in a HOST orchestrator", span=call.span)
    target, signal = call.args[:2]
    if call.kwargs.get("mode", "mesh") == "ring":
        ring_allreduce(Domain(steps, signal, ring=True), target, ReduceOp(call.kwargs.get("op", 0)))
        return target
    kind = target.type
    if kind.tensor_view is not None and kind.tensor_view.valid_shape:
        raise UnsupportedFeatureError("pld.tensor.allreduce of a partially valid tensor inside a kernel")
    count = 1
    for extent in _static(kind, "pld.tensor.allreduce", steps):
        count *= extent
    op = ReduceOp(call.kwargs.get("op", 0))
    flat = steps.emit("flat", "tensor.view", [target, index_tuple(1, count)])
    item = kind.dtype.get_byte()
    width = min(CHUNK_BYTES // item, scalars.align(count * item, ALIGNMENT_BYTES) // item)
    chunks = -(-count // width)
    domain = Domain(steps, signal)
    domain.barrier(1)
    if chunks == 1:
        total = _combine_peers(domain, flat, index_tuple(0, 0), width, const_index(count), op)
        domain.barrier(2)
        steps.emit("stored", "tile.store", [total, index_tuple(0, 0), flat])
    else:
        _chunked(domain, flat, count, width, chunks, op)
    domain.reset(1 + chunks)
    return target


def _chunked(domain: Domain, flat: Expr, count: int, width: int, chunks: int, op: ReduceOp) -> None:
    s = domain.steps
    index = DataType.INDEX

    def chunk(number: Var) -> None:
        start = s.let("start", Mul(number, const_index(width), index, s.span))
        left = Sub(const_index(count), start, index, s.span)
        valid = s.let("valid", Min(left, const_index(width), index, s.span))
        total = _combine_peers(domain, flat, index_tuple(0, start), width, valid, op)
        generation = s.let(
            "generation", Cast(Add(number, const_index(2), index, s.span), DataType.INT32, s.span)
        )  # fmt: skip
        domain.barrier(generation)
        s.emit("stored", "tile.store", [total, index_tuple(0, start), flat])

    s.loop("chunk", const_index(chunks), chunk)
