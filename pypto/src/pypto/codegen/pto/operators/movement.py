"""Loads, stores, moves and views of tiles."""

from __future__ import annotations

from pypto.codegen.pto.kernel import KernelEmitter, TensorRef, TileHandle
from pypto.codegen.pto.operators import (
    call_span,
    clause,
    emits,
    instruction,
    same_configuration,
    target,
    tile_operand,
)
from pypto.codegen.pto.operators.restrictions import check_move
from pypto.codegen.pto.scalars import index_value
from pypto.codegen.pto.types import tile_buf_text, tile_extents
from pypto.errors import InternalError, user_error
from pypto.ir import AtomicType, Expr, Span, TensorLayout, TensorType, TensorView, Var
from pypto.ir.expr import Call, ConstInt, MakeTuple, const_index


def elements(value: Expr) -> tuple:
    """The expressions of a shape or offset operand."""
    if not isinstance(value, MakeTuple):
        raise InternalError(f"expected a tuple operand, got {type(value).__name__}", span=value.span)
    return value.elements


@emits("tile.load")
def load(emitter: KernelEmitter, call: Call, result: Var, span: Span) -> None:
    at = call_span(span, call)
    source, offsets, shapes = call.args[:3]
    sizes = elements(call.args[3]) if len(call.args) > 3 else elements(shapes)
    ref = emitter.tensor(source)
    out = emitter.alloc_tile(result, span)
    view, view_type = emitter.partition(ref, source.name_hint, elements(offsets), sizes, at)
    instruction(emitter, "pto.tload", [(view, view_type)], [tile_operand(out)], at)


@emits("tile.store")
def store(emitter: KernelEmitter, call: Call, result: Var | None, span: Span) -> None:
    at = call_span(span, call)
    tile, offsets, output = call.args[:3]
    handle = emitter.tile(tile)
    ref = emitter.tensor(output)
    sizes = _store_sizes(handle, ref.type.shape, elements(call.args[3]) if len(call.args) > 3 else None)
    view, view_type = emitter.partition(ref, output.name_hint, elements(offsets), sizes, at)
    atomic = call.kwargs.get("atomic", 0)
    attrs = "{atomicType = #pto<atomic_type atomic_add>}" if int(atomic) == int(AtomicType.Add) else ""
    instruction(emitter, "pto.tstore", [tile_operand(handle)], [(view, view_type)], at, attrs=attrs)
    if result is not None:
        emitter.tensors[result] = ref


def _store_sizes(handle: TileHandle, shape: tuple, window: tuple | None) -> tuple:
    """Extents written: the valid region of the tile, with leading axes of the window or ones in front."""
    rows, cols = handle.valid
    rank = len(shape)
    if window is not None:
        physical = tile_extents(handle.tile)
        full = all(isinstance(v, ConstInt) and v.value == p for v, p in zip((rows, cols), physical))
        if full or rank == 1:
            return window
        if rank == 2:
            return rows, cols
        leading = window[:-2]
        flattened = any(not (isinstance(d, ConstInt) and d.value == 1) for d in leading)
        return (*window[:-1], cols) if flattened else (*leading, rows, cols)
    if rank == 1:
        return (cols,)
    return (*(const_index(1) for _ in range(rank - 2)), rows, cols)


@emits("tile.move")
def move(emitter: KernelEmitter, call: Call, result: Var, span: Span) -> None:
    check_move(emitter, call, result, call_span(span, call))
    out = emitter.alloc_tile(result, span)
    source = emitter.tile(call.args[0])
    instruction(emitter, "pto.tmov", [tile_operand(source)], [tile_operand(out)], call_span(span, call))


@emits("tile.extract")
def extract(emitter: KernelEmitter, call: Call, result: Var, span: Span) -> None:
    at = call_span(span, call)
    source = emitter.tile(call.args[0])
    out = emitter.alloc_tile(result, span)
    row, col = (index_value(emitter, e, span=at) for e in call.args[1:3])
    ins = [tile_operand(source), (row, "index"), (col, "index")]
    instruction(emitter, "pto.textract", ins, [tile_operand(out)], at)


@emits("tile.slice")
def slice_tile(emitter: KernelEmitter, call: Call, result: Var, span: Span) -> None:
    at = call_span(span, call)
    source = emitter.tile(call.args[0])
    sizes = _two(elements(call.args[1]))
    offsets = _two(elements(call.args[2]), fill=0)
    explicit = _two(elements(call.args[3])) if len(call.args) > 3 and elements(call.args[3]) else None
    emitter.alloc_tile(result, span)
    emitter.tiles[result] = subview(emitter, source, result, sizes, offsets, explicit, "slice_view", at)


def subview(
    emitter: KernelEmitter,
    source: TileHandle,
    result: Var | None,
    sizes: tuple,
    offsets: tuple,
    valid: tuple | None,
    hint: str,
    span: Span,
) -> TileHandle:
    """``pto.subview`` of a tile: no copy; the result shares the parent's buffer and pitch."""
    from pypto.ir.node import replace

    window = replace(source.tile, shape=sizes, tile_view=_window_view(source.tile, sizes))
    extents = valid or _inferred_valid(source, sizes, offsets, result)
    texts = tuple(str(v.value) if isinstance(v, ConstInt) else "?" for v in extents)
    clause_text = ""
    if "?" in texts or hint in ("assemble_view", "gather_row_view"):
        rows, cols = (index_value(emitter, v, span=span) for v in extents)
        clause_text = f" valid [{rows}, {cols}]"
    row, col = (index_value(emitter, o, span=span) for o in offsets)
    kind = tile_buf_text(window, texts)
    name = emitter.fresh(hint)
    height, width = (s.value for s in sizes)
    emitter.line(
        f"{name} = pto.subview {source.name}[{row}, {col}] sizes [{height}, {width}]{clause_text} : "
        f"{source.type_text} -> {kind}",
        span,
    )
    return TileHandle(name, kind, window, extents, is_view=True)


def _window_view(tile, sizes: tuple):
    """The parent's layout spelled out for the window, so that an implicit view cannot change it."""
    from pypto.ir import TileView

    view = tile.get_effective_tile_view()
    return TileView(
        valid_shape=sizes, blayout=view.blayout, slayout=view.slayout, fractal=view.fractal, pad=view.pad,
        compact=view.compact,
    )  # fmt: skip


def _inferred_valid(source: TileHandle, sizes: tuple, offsets: tuple, result: Var | None) -> tuple:
    """Per axis ``min(size, source valid - offset)``; the declared type of the result decides what is not constant."""
    declared = KernelEmitter.valid_extents(result.type) if result is not None else sizes
    extents = []
    for size, offset, valid, own in zip(sizes, offsets, source.valid, declared):
        if isinstance(offset, ConstInt) and isinstance(valid, ConstInt):
            extents.append(const_index(max(0, min(size.value, valid.value - offset.value)) or size.value))
        else:
            extents.append(own)
    return tuple(extents)


def _two(values: tuple, fill: int = 1) -> tuple:
    return (const_index(fill), *values) if len(values) == 1 else tuple(values[-2:])


@emits("tile.assemble")
def assemble(emitter: KernelEmitter, call: Call, result: Var, span: Span) -> None:
    at = call_span(span, call)
    base, source = emitter.tile(call.args[0]), emitter.tile(call.args[1])
    offsets = _two(elements(call.args[2]), fill=0)
    whole = tile_extents(base.tile) == tile_extents(source.tile) and all(
        isinstance(o, ConstInt) and o.value == 0 for o in offsets
    )
    out = emitter.alloc_tile(result, span)
    if out.address is not None and out.address == base.address and same_configuration(base.tile, out.tile):
        pass
    elif not whole:
        instruction(emitter, "pto.tmov", [tile_operand(base)], [tile_operand(out)], at)
    if source.tile.memory_space != out.tile.memory_space:
        row, col = (index_value(emitter, o, span=at) for o in offsets)
        if whole and source.tile.dtype == out.tile.dtype:
            instruction(emitter, "pto.tmov", [tile_operand(source)], [tile_operand(out)], at)
            return
        ins = [tile_operand(source), (row, "index"), (col, "index")]
        instruction(emitter, "pto.tinsert", ins, [tile_operand(out)], at)
        return
    sizes = KernelEmitter.physical_extents(source.tile)
    view = subview(emitter, out, None, sizes, offsets, source.valid, "assemble_view", at)
    instruction(emitter, "pto.tmov", [tile_operand(source)], [tile_operand(view)], at)


@emits("tile.set_validshape")
def set_validshape(emitter: KernelEmitter, call: Call, result: Var | None, span: Span) -> None:
    at = call_span(span, call)
    source = emitter.tile(call.args[0])
    if source.is_view:
        raise user_error(
            "set_validshape cannot narrow a tile view; give the extents to the slice instead (valid_shape=...)", span=at
        )
    rows, cols = call.args[1], call.args[2]
    row, col = index_value(emitter, rows, span=at), index_value(emitter, cols, span=at)
    emitter.line(f"pto.set_validshape {source.name}, {row}, {col} : {source.type_text}", at)
    if result is not None:
        emitter.tiles[result] = TileHandle(source.name, source.type_text, source.tile, (rows, cols), source.address)


@emits("tile.fillpad", "tile.fillpad_inplace", "tile.fillpad_expand")
def fillpad(emitter: KernelEmitter, call: Call, result: Var, span: Span) -> None:
    source = emitter.tile(call.args[0])
    out = emitter.alloc_tile(result, span, physical_valid=True)
    instruction(emitter, "pto.tfillpad", [tile_operand(source)], [tile_operand(out)], call_span(span, call))


@emits("tile.reshape", "tile.transpose_view", "tile.reinterpret_view")
def reinterpret(emitter: KernelEmitter, call: Call, result: Var, span: Span) -> None:
    """Nothing but a typed allocation at the same address, or ``treshape`` where addresses are not known."""
    source = emitter.tile(call.args[0])
    if emitter.emit_tile_addr and source.address is not None and not source.is_view:
        emitter.alloc_tile(result, span)
        return
    at = call_span(span, call)
    valid = KernelEmitter.valid_extents(result.type)
    static = all(isinstance(v, ConstInt) for v in valid)
    texts = tuple(str(v.value) for v in valid) if static else tuple(str(e) for e in tile_extents(result.type))
    kind = tile_buf_text(result.type, texts)
    name = emitter.fresh(result.name_hint)
    emitter.line(f"{name} = pto.treshape {source.name} : {source.type_text} -> {kind}", at)
    emitter.tiles[result] = TileHandle(name, kind, result.type, valid, source.address, is_view=True)


@emits("tile.gather_row")
def gather_row(emitter: KernelEmitter, call: Call, result: Var, span: Span) -> None:
    at = call_span(span, call)
    source_tensor, dst_offset, src_offset, shapes = call.args[1:5]
    sizes = elements(call.args[5]) if len(call.args) > 5 else elements(shapes)
    out = target(emitter, call, result, span)
    ref = emitter.tensor(source_tensor)
    offsets = elements(src_offset)
    window, valid = _two(elements(shapes)), _two(sizes)
    if call.kwargs.get("transpose"):
        window, valid, sizes, offsets = window[::-1], valid[::-1], sizes[::-1], offsets[::-1]
        ref = _transposed_view(emitter, ref, source_tensor, at)
    view = subview(emitter, out, None, window, _two(elements(dst_offset), fill=0), valid, "gather_row_view", at)
    part, part_type = emitter.partition(ref, source_tensor.name_hint, offsets, sizes, at)
    emitter.line(f"pto.tload ins({clause([(part, part_type)])}) outs({clause([tile_operand(view)])})", at)


def _transposed_view(emitter: KernelEmitter, ref: TensorRef, tensor: Expr, span: Span) -> TensorRef:
    """A column-major view of a rank-2 tensor: its rows are the columns of the view."""
    rows, cols = ref.type.shape
    view = TensorView(stride=[const_index(1), cols], layout=TensorLayout.DN)
    kind = TensorType([cols, rows], ref.type.dtype, None, view)
    found = TensorRef(ref.pointer, emitter.fresh(f"{tensor.name_hint}_dn_view"), kind)
    emitter.emit_view(found, span)
    return found


@emits("tensor.view", "tensor.reshape")
def tensor_view(emitter: KernelEmitter, call: Call, result: Var, span: Span) -> None:
    """A second view on the pointer of a tensor."""
    base = emitter.tensors[call.args[0]]
    ref = emitter.tensors[result] = TensorRef(base.pointer, emitter.fresh(result.name_hint), result.type)
    emitter.emit_view(ref, call_span(span, call))


@emits("tensor.assemble", "tensor.set_validshape")
def alias_tensor(emitter: KernelEmitter, call: Call, result: Var, span: Span) -> None:
    emitter.tensors[result] = emitter.tensors[call.args[0]]
