"""What an architecture cannot do: refusals that need only one call and the types of its operands."""

from __future__ import annotations

from pypto.codegen.pto.kernel import KernelEmitter
from pypto.codegen.pto.types import tile_extents
from pypto.errors import user_error
from pypto.ir import DataType, Expr, Function, MemorySpace, Span, TensorLayout, TensorType, TileType, Var
from pypto.ir.expr import Call, ConstInt

_FOUR_BIT = (DataType.FP4, DataType.HF4, DataType.INT4, DataType.UINT4)
_LOW_PRECISION = (DataType.FP8E4M3FN, DataType.FP8E5M2, DataType.HF8)


def check_parameters(function: Function, arch: str) -> None:
    """Four-bit elements cross the border of a kernel only as FP4, and only on a5."""
    for param in function.params:
        if isinstance(param.type, TensorType) and param.type.dtype in _FOUR_BIT:
            _check_four_bit(param.type.dtype, arch, param.span)


def _check_four_bit(dtype: DataType, arch: str, span: Span) -> None:
    if arch != "a5":
        raise user_error(
            f"4-bit dtype {dtype} is not supported on {arch}: its load/store ABI has no packed form", span=span
        )
    if dtype != DataType.FP4:
        raise user_error(f"4-bit dtype {dtype} is not supported on {arch}: only FP4 has a load/store ABI", span=span)


def check_move(emitter: KernelEmitter, call: Call, result: Var, span: Span) -> None:
    """A move is a copy: source and destination must be two places."""
    source, target = call.args[0].type, result.type
    if source.memory_space != target.memory_space or source.memref is None or target.memref is None:
        return
    if not emitter.emit_tile_addr and source.memref.base_ is not target.memref.base_:
        return
    start, end = source.memref.byte_offset_, target.memref.byte_offset_
    if isinstance(start, ConstInt) and isinstance(end, ConstInt) and start.value == end.value:
        raise user_error(
            f"tile.move requires distinct source and destination addresses, but both are at {start.value} in "
            f"{source.memory_space.name}",
            span=span,
        )


def overlap(emitter: KernelEmitter, a: TileType, b: TileType) -> bool:
    """Whether two tiles share bytes; a window at a run-time place counts as its whole allocation."""
    if a.memory_space != b.memory_space or a.memref is None or b.memref is None:
        return False
    same_allocation = a.memref.base_ is b.memref.base_
    if not emitter.emit_tile_addr and not same_allocation:
        return False
    starts = (a.memref.byte_offset_, b.memref.byte_offset_)
    if not all(isinstance(s, ConstInt) for s in starts):
        return same_allocation
    return starts[0].value < starts[1].value + b.memref.size_ and starts[1].value < starts[0].value + a.memref.size_


def _refuse_overlap(emitter: KernelEmitter, op: str, tiles: list[tuple[str, Expr]], span: Span) -> None:
    for position, (name, tile) in enumerate(tiles):
        for other, second in tiles[position + 1 :]:
            if overlap(emitter, tile.type, second.type):
                raise user_error(f"{op} on A2/A3 needs separate buffers, but {name} overlaps {other}", span=span)


def check_sels(emitter: KernelEmitter, call: Call, span: Span) -> None:
    """A2/A3: no 8-bit source, and the scratch is written before mask and source are read."""
    if emitter.handler.get_pto_target_arch() == "a5":
        return
    mask, src, tmp = call.args[:3]
    if src.type.dtype.get_bit() == 8:
        raise user_error(f"tile.sels of {src.type.dtype} is only supported on the 'a5' backend", span=span)
    for name, tile in (("src", src), ("mask", mask)):
        _refuse_overlap(emitter, "tile.sels", [("tmp", tmp), (name, tile)], span)


def check_prelu(emitter: KernelEmitter, call: Call, result: Var, span: Span) -> None:
    """A2/A3: UINT8 scratch of one row more than the result, and four separate buffers."""
    if emitter.handler.get_pto_target_arch() == "a5":
        return
    src, slope, tmp = call.args[:3]
    if tmp.type.dtype != DataType.UINT8:
        raise user_error(f"tile.prelu on A2/A3 requires UINT8 tmp scratch, but got {tmp.type.dtype}", span=span)
    rows, cols = emitter.valid_extents(result.type)
    have_rows, _ = tile_extents(tmp.type)
    if not isinstance(rows, ConstInt) or have_rows < rows.value + 1:
        wanted = rows.value + 1 if isinstance(rows, ConstInt) else f"{rows} + 1"
        raise user_error(
            f"tile.prelu on A2/A3 requires a tmp of at least {wanted} physical rows, but it has {have_rows}", span=span
        )
    have_cols = emitter.valid_extents(tmp.type)[1]
    proven = isinstance(cols, ConstInt) and isinstance(have_cols, ConstInt) and have_cols.value >= -(-cols.value // 8)
    if not proven:
        raise user_error(
            f"tile.prelu on A2/A3 requires a tmp of at least ceil({cols} / 8) valid columns, but it has {have_cols}",
            span=span,
        )
    _refuse_overlap(emitter, "tile.prelu", [("src", src), ("slope", slope), ("tmp", tmp), ("dst", result)], span)


def check_mgather(emitter: KernelEmitter, call: Call, result: Var, span: Span) -> None:
    """What a gather from global memory demands of its operands."""
    memory, indices = call.args[:2]
    arch, dtype = emitter.handler.get_pto_target_arch(), result.type.dtype
    to_mat = result.type.memory_space is MemorySpace.Mat
    if arch != "a5":
        if dtype in _LOW_PRECISION:
            raise user_error(f"tile.mgather of {dtype} is not supported on the '{arch}' backend", span=span)
        if not to_mat:
            _check_mgather_vec(call, result, span)
    scratch = mgather_scratch(call)
    if scratch is not None:
        pointer = emitter.tensor(scratch).pointer
        for name, tensor in (("mem", memory), ("idx", indices)):
            if emitter.tensor(tensor).pointer == pointer:
                raise user_error(f"tile.mgather: scratch must not overlap {name}", span=span)


def mgather_scratch(call: Call) -> Expr | None:
    """The global scratch tensor of a gather of elements to Mat."""
    return next((a for a in call.args[2:] if isinstance(a.type, TensorType)), None)


def _check_mgather_vec(call: Call, result: Var, span: Span) -> None:
    memory, indices = call.args[:2]
    view = memory.type.tensor_view
    if view is not None and view.layout is not TensorLayout.ND:
        raise user_error(f"tile.mgather on A2/A3 requires an ND source tensor, but it is {view.layout.name}", span=span)
    if int(call.kwargs.get("coalesce", 0)):
        return
    rows, _ = tile_extents(indices.type)
    if rows != 1:
        raise user_error(f"tile.mgather of rows on A2/A3 requires idx shape [1, R], but got {rows} rows", span=span)
    row_bytes = tile_extents(result.type)[1] * result.type.dtype.get_bit() // 8
    if row_bytes % 32:
        raise user_error(f"tile.mgather on A2/A3 requires 32-byte aligned rows, but a row has {row_bytes}", span=span)
