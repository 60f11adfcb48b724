"""Scalars read from and written to tiles, tensors and stack arrays; block numbers; extents."""

from __future__ import annotations

from pypto.codegen.pto.kernel import KernelEmitter
from pypto.codegen.pto.operators import emits, emits_scalar
from pypto.codegen.pto.operators.movement import elements
from pypto.codegen.pto.scalars import index_value, signless, typed_value
from pypto.codegen.pto.types import dtype_text, signless_text, tile_extents
from pypto.errors import InternalError, UnsupportedFeatureError
from pypto.ir import Span, Var
from pypto.ir.expr import Call, ConstInt, Expr, const_index


def _flat(emitter: KernelEmitter, indices: tuple, extents: list[str], span: Span) -> str:
    """Row-major element offset, always spelled as multiplications and additions."""
    offset = index_value(emitter, indices[0], span=span)
    for index, extent in zip(indices[1:], extents[1:]):
        scaled = emitter.fresh("flat_offset_mul")
        emitter.line(f"{scaled} = arith.muli {offset}, {extent} : index", span)
        offset = emitter.fresh("flat_offset")
        emitter.line(f"{offset} = arith.addi {scaled}, {index_value(emitter, index, span=span)} : index", span)
    return offset


@emits_scalar("tile.read")
def tile_read(emitter: KernelEmitter, call: Call, hint: str, span: Span) -> str:
    handle = emitter.tile(call.args[0])
    offset = _tile_offset(emitter, handle, elements(call.args[1]), span)
    dtype = handle.tile.dtype
    name = emitter.fresh(hint)
    text = dtype_text(dtype)
    emitter.line(f"{name} = pto.tgetval ins({handle.name}, {offset} : {handle.type_text}, index) outs : {text}", span)
    return signless(emitter, name, text, span)


@emits("tile.write")
def tile_write(emitter: KernelEmitter, call: Call, result: Var | None, span: Span) -> None:
    handle = emitter.tile(call.args[0])
    offset = _tile_offset(emitter, handle, elements(call.args[1]), span)
    dtype = handle.tile.dtype
    value = typed_value(emitter, call.args[2], dtype, span=span)
    emitter.line(f"pto.tsetval ins({offset}, {value} : index, {signless_text(dtype)}) outs({handle.typed})", span)
    if result is not None:
        emitter.tiles[result] = handle


def _tile_offset(emitter: KernelEmitter, handle, indices: tuple, span: Span) -> str:
    """Flat element offset; one constant when every index is."""
    if len(indices) == 1:
        return index_value(emitter, indices[0], span=span)
    extents = [const_index(e) for e in tile_extents(handle.tile)]
    if all(isinstance(i, ConstInt) for i in indices):
        return emitter.index_const(_constant_offset(indices, tuple(extents)))
    return _flat(emitter, indices, [emitter.index_const(e.value) for e in extents], span)


def _tensor_offset(emitter: KernelEmitter, ref, indices: tuple, span: Span) -> str:
    shape = ref.type.shape
    view = ref.type.tensor_view
    if view is not None and view.stride:
        return _strided(emitter, indices, view.stride, span)
    if all(isinstance(i, ConstInt) for i in indices) and all(isinstance(d, ConstInt) for d in shape[1:]):
        return emitter.index_const(_constant_offset(indices, shape))
    return _flat(emitter, indices, [index_value(emitter, d, span=span) for d in shape], span)


def _constant_offset(indices: tuple, shape: tuple) -> int:
    flat = indices[0].value
    for index, extent in zip(indices[1:], shape[1:]):
        flat = flat * extent.value + index.value
    return flat


def _strided(emitter: KernelEmitter, indices: tuple, strides: tuple, span: Span) -> str:
    total = ""
    for index, stride in zip(indices, strides):
        term = emitter.fresh("flat_offset_mul")
        left, right = index_value(emitter, index, span=span), index_value(emitter, stride, span=span)
        emitter.line(f"{term} = arith.muli {left}, {right} : index", span)
        if not total:
            total = term
            continue
        name = emitter.fresh("flat_offset")
        emitter.line(f"{name} = arith.addi {total}, {term} : index", span)
        total = name
    return total


@emits_scalar("tensor.read")
def tensor_read(emitter: KernelEmitter, call: Call, hint: str, span: Span) -> str:
    ref = emitter.tensor(call.args[0])
    offset = _tensor_offset(emitter, ref, elements(call.args[1]), span)
    text = dtype_text(ref.type.dtype)
    name = emitter.fresh(hint)
    emitter.line(f"{name} = pto.load_scalar {ref.pointer}[{offset}] : !pto.ptr<{text}> -> {text}", span)
    return signless(emitter, name, text, span)


@emits("tensor.write")
def tensor_write(emitter: KernelEmitter, call: Call, result: Var | None, span: Span) -> None:
    ref = emitter.tensor(call.args[0])
    offset = _tensor_offset(emitter, ref, elements(call.args[1]), span)
    dtype = ref.type.dtype
    value = typed_value(emitter, call.args[2], dtype, span=span)
    text = dtype_text(dtype)
    if text.startswith("ui"):
        name = emitter.fresh()
        emitter.line(f"{name} = builtin.unrealized_conversion_cast {value} : {text[1:]} to {text}", span)
        value = name
    emitter.line(f"pto.store_scalar {value}, {ref.pointer}[{offset}] : !pto.ptr<{text}>, {text}", span)
    if result is not None:
        emitter.tensors[result] = ref


@emits_scalar("tensor.dim")
def tensor_dim(emitter: KernelEmitter, call: Call, hint: str, span: Span) -> str:
    axis = call.args[1]
    if not isinstance(axis, ConstInt):
        raise InternalError("tensor.dim needs a constant axis", span=span)
    return index_value(emitter, emitter.tensors[call.args[0]].type.shape[axis.value], span=span)


def _block_value(op: str, which: str) -> None:
    @emits_scalar(op)
    def emission(emitter: KernelEmitter, call: Call, hint: str, span: Span) -> str:
        source = emitter.spmd_param(which)
        name = emitter.fresh(hint)
        emitter.line(f"{name} = arith.index_cast {source} : i32 to index", span)
        return name


for _prefix in ("tile", "tensor"):
    _block_value(f"{_prefix}.get_block_idx", "block_idx")
    _block_value(f"{_prefix}.get_block_num", "block_num")
    _block_value(f"{_prefix}.get_subblock_idx", "subblock_idx")


def _array_text(array: Expr) -> str:
    kind = array.type
    return f"!pto.local_array<{kind.extent.value}x{signless_text(kind.dtype)}>"


@emits("array.create")
def array_create(emitter: KernelEmitter, call: Call, result: Var, span: Span) -> None:
    name = emitter.fresh(result.name_hint)
    emitter.line(f"{name} = pto.declare_local_array -> {_array_text(result)}", span)
    emitter.arrays[result] = name


@emits("array.update_element")
def array_set(emitter: KernelEmitter, call: Call, result: Var | None, span: Span) -> None:
    array = call.args[0]
    name = _array(emitter, array)
    dtype = array.type.dtype
    index = index_value(emitter, call.args[1], span=span)
    value = typed_value(emitter, call.args[2], dtype, span=span)
    emitter.line(f"pto.local_array_set {name}[{index}], {value} : {_array_text(array)}, {signless_text(dtype)}", span)
    if result is not None:
        emitter.arrays[result] = name


@emits_scalar("array.get_element")
def array_get(emitter: KernelEmitter, call: Call, hint: str, span: Span) -> str:
    array = call.args[0]
    index = index_value(emitter, call.args[1], span=span)
    name = emitter.fresh(hint)
    text = signless_text(array.type.dtype)
    emitter.line(
        f"{name} = pto.local_array_get {_array(emitter, array)}[{index}] : {_array_text(array)} -> {text}", span
    )
    return name


def _array(emitter: KernelEmitter, array: Expr) -> str:
    name = emitter.arrays.get(array) if isinstance(array, Var) else None
    if name is None:
        raise UnsupportedFeatureError("a stack array must be a variable of the kernel")
    return name
