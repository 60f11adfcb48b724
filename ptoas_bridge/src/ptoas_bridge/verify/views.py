"""Pointers, tensor views, partitions, loads and stores."""

from __future__ import annotations

from ..dialect import types as T
from ..dialect.ir import Operation, constant_of
from .checker import Checker, rule

_LOAD_A3 = frozenset(["i8", "i16", "i32", "i64", "f16", "bf16", "f32", "ui8", "ui16", "ui32", "ui64"])


@rule("addptr")
def _addptr(c: Checker, op: Operation) -> None:
    if not isinstance(op.ins[0].type, T.PtrType):
        c.fail(op, f"expects a pointer, got '{op.ins[0].type}'")
    if op.result.type is not op.ins[0].type:
        c.fail(op, "expects the result type to match the pointer type")
    if op.ins[1].type is not T.INDEX:
        c.fail(op, f"expects an index offset, got '{op.ins[1].type}'")


@rule("ptrtoint")
def _ptrtoint(c: Checker, op: Operation) -> None:
    if not isinstance(op.ins[0].type, T.PtrType) or op.result.type is not T.I64:
        c.fail(op, "expects a pointer operand and an i64 result")


@rule("castptr")
def _castptr(c: Checker, op: Operation) -> None:
    source, result = op.ins[0].type, op.result.type
    pointers = [isinstance(t, T.PtrType) for t in (source, result)]
    if not any(pointers):
        c.fail(op, "expects a pointer on at least one side; use arith casts between integers")
    if all(pointers) and source.space != result.space:
        c.fail(op, f"cannot cast between the spaces {source.space} and {result.space}")


@rule("load_scalar")
def _load_scalar(c: Checker, op: Operation) -> None:
    pointer = op.ins[0].type
    if not isinstance(pointer, T.PtrType):
        c.fail(op, f"expects a pointer, got '{pointer}'")
    if op.result.type is not pointer.elem:
        c.fail(op, f"expects the result type to match the pointer element type {pointer.elem}, got {op.result.type}")


@rule("store_scalar")
def _store_scalar(c: Checker, op: Operation) -> None:
    value, pointer = op.ins[0].type, op.ins[1].type
    if not isinstance(pointer, T.PtrType):
        c.fail(op, f"expects a pointer, got '{pointer}'")
    if value is not pointer.elem:
        c.fail(op, f"expects the value type to match the pointer element type {pointer.elem}, got {value}")


@rule("make_tensor_view")
def _make_tensor_view(c: Checker, op: Operation) -> None:
    view, pointer = op.result.type, op.ins[0].type
    if not isinstance(view, T.TensorViewType):
        c.fail(op, f"expects a tensor_view result, got '{view}'")
    if not isinstance(pointer, T.PtrType):
        c.fail(op, f"expects a pointer, got '{pointer}'")
    if pointer.elem is not view.elem:
        c.fail(op, f"ptr element type must match tensor_view element type, got {pointer.elem} and {view.elem}")
    rank = len(view.dims)
    if len(op.named["shape"]) != rank or len(op.named["strides"]) != rank:
        c.fail(
            op, f"shape/strides operand counts must match tensor_view rank={rank}, "
            f"got {len(op.named['shape'])} and {len(op.named['strides'])}",
        )  # fmt: skip
    for value in op.named["shape"] + op.named["strides"]:
        if value.type is not T.INDEX:
            c.fail(op, f"expects index shape and strides, got '{value.type}'")
    for dim, (value, extent) in enumerate(zip(op.named["shape"], view.dims)):
        constant = constant_of(value)
        if extent != T.DYNAMIC and constant is not None and constant != extent:
            c.fail(op, f"shape/result mismatch at dim {dim}: {constant} and {extent}")


def source_dims(op: Operation) -> list[int | None]:
    """Extents of the partitioned view as far as type and constants tell."""
    view = op.ins[0].type
    dims: list[int | None] = [None if d == T.DYNAMIC else d for d in view.dims]
    owner = op.ins[0].owner
    if owner is not None and owner.name == "pto.make_tensor_view":
        for dim, value in enumerate(owner.named["shape"]):
            if dims[dim] is None:
                constant = constant_of(value)
                dims[dim] = None if constant is None else int(constant)
    return dims


@rule("partition_view")
def _partition_view(c: Checker, op: Operation) -> None:
    source, result = op.ins[0].type, op.result.type
    if not isinstance(source, T.TensorViewType):
        c.fail(op, f"expects a tensor_view source, got '{source}'")
    if not isinstance(result, T.PartitionViewType):
        c.fail(op, f"expects a partition_tensor_view result, got '{result}'")
    rank = len(source.dims)
    offsets, sizes = op.named["offsets"], op.named["sizes"]
    if len(offsets) != rank:
        c.fail(op, f"offset count ({len(offsets)}) must match source rank ({rank})")
    if len(sizes) != rank:
        c.fail(op, f"size count ({len(sizes)}) must match source rank ({rank})")
    if len(result.dims) != rank:
        c.fail(op, f"result rank ({len(result.dims)}) must match source rank ({rank})")
    if source.elem is not result.elem:
        c.fail(op, f"expects source and result to have the same element type, got {source.elem} and {result.elem}")
    for dim, (offset_value, size_value, wanted) in enumerate(zip(offsets, sizes, result.dims)):
        if offset_value.type is not T.INDEX or size_value.type is not T.INDEX:
            c.fail(op, f"expects index offsets and sizes at dim {dim}")
        offset, size = constant_of(offset_value), constant_of(size_value)
        if offset is not None and offset < 0:
            c.fail(op, f"offset at dim {dim} must be non-negative, got {offset}")
        if size is not None and size <= 0:
            c.fail(op, f"size at dim {dim} must be positive, got {size}")
        if size is not None and wanted not in (size, T.DYNAMIC):
            c.fail(op, f"size/result mismatch at dim {dim}: {size} and {wanted}")
        extent = source.dims[dim]
        if extent != T.DYNAMIC and offset is not None and size is not None and offset + size > extent:
            c.fail(op, f"offset+size at dim {dim} ({offset + size}) exceeds static source dim ({extent})")
    _check_known_extents(c, op, source_dims(op))


def _check_known_extents(c: Checker, op: Operation, dims: list[int | None]) -> None:
    """The view's type says `?` but its shape operands are constants: reading past the tensor is still a mistake."""
    for dim, extent in enumerate(dims):
        offset, size = constant_of(op.named["offsets"][dim]), constant_of(op.named["sizes"][dim])
        if extent is not None and offset is not None and size is not None and offset + size > extent:
            c.fail(op, f"offset+size at dim {dim} ({offset + size}) exceeds static source dim ({extent})")


def _partition(c: Checker, op: Operation, value, role: str) -> T.PartitionViewType:
    if not isinstance(value.type, T.PartitionViewType):
        c.fail(op, f"expects {role} to be a partition_tensor_view, got '{value.type}'",
               "take a window with pto.partition_view")  # fmt: skip
    return value.type


@rule("tload", "tprefetch")
def _tload(c: Checker, op: Operation) -> None:
    name = op.name.removeprefix("pto.")
    view = _partition(c, op, op.ins[0], "src")
    t = c.tile(op, op.outs[0], "dst")
    if t.loc not in ("vec", "mat"):
        c.fail(op, f"expects dst to use loc=vec or loc=mat, got loc={t.loc}")
    if t.dtype.bytes != view.elem.bytes:
        c.fail(op, f"expects src and dst element types to have the same byte size, got {view.elem} and {t.dtype}")
    if c.arch == "a3" and t.dtype.key not in _LOAD_A3:
        c.fail(op, f"expects A2/A3 {name} dst element type to be i8/i16/i32/i64/f16/bf16/f32", f"got {t.dtype}")
    if c.arch == "a5" and t.loc == "vec" and t.boxed and (t.blayout, t.slayout) != ("col_major", "row_major"):
        c.fail(op, "expects A5 tload vec dst layout to be ND, DN, or NZ")
    if c.arch == "a5" and t.dtype.text in ("i64", "ui64") and t.pad > 1:
        c.fail(op, "expects A5 tload of i64 to use pad null or zero")


@rule("tstore")
def _tstore(c: Checker, op: Operation) -> None:
    t = c.tile(op, op.ins[0], "src")
    view = _partition(c, op, op.outs[0], "dst")
    allowed = ("vec", "acc") if c.arch == "a5" else ("vec", "mat", "acc")
    if t.loc not in allowed:
        if c.arch == "a5":
            c.fail(op, "expects A5 tstore src to use loc=vec or loc=acc")
        c.fail(op, "expects A2/A3 tstore src to use loc=vec, loc=mat, or loc=acc")
    has_fp = "fp" in op.named
    has_scale = "pre_quant" in op.named or len(op.ins) > 1
    relu = op.attrs.get("reluPreMode")
    if t.loc == "acc":
        if t.dtype.key not in ("i32", "f32"):
            c.fail(op, f"expects acc src element type to be i32 or f32, got {t.dtype}")
    else:
        for given, what in ((has_fp, "fp"), (has_scale, "preQuantScalar"),
                            (relu is not None and relu.value != "no_relu", "reluPreMode")):  # fmt: skip
            if given:
                c.fail(op, f"expects {what} to be used only with an acc src")
        if t.dtype.bytes != view.elem.bytes:
            c.fail(op, f"expects src and dst element types to have the same byte size, got {t.dtype} and {view.elem}")
    if has_fp and has_scale:
        c.fail(op, "expects fp and preQuantScalar to be mutually exclusive")
    _check_store_count(c, op, view)


def _check_store_count(c: Checker, op: Operation, view: T.PartitionViewType) -> None:
    rows, cols = c.required_valid(op.ins[0])
    if T.DYNAMIC in view.dims or T.DYNAMIC in (rows, cols):
        return
    count = 1
    for extent in view.dims:
        count *= extent
    if count < rows * cols:
        c.fail(
            op, f"expects dst static element count ({count}) to cover the src valid region "
            f"({rows}x{cols} = {rows * cols})",
        )  # fmt: skip
