"""Global views and tiles: declarations, addresses, windows."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..dialect import types as T
from ..dialect.ir import Operation, Value, constant_of
from ..errors import UnsupportedFeatureError
from ..passes.storage import slot_bytes
from .cpp_types import cpp_type, tile_type
from .function import FunctionEmitter, emits

#: What compilers append to the name of a user's tensor.
_SUFFIXES = re.compile(r"(__(ssa|iter|rv|phi)_v\d+)?_view$")

# --- global memory -----------------------------------------------------------------------------------------------


@emits("pto.make_tensor_view")
def _make_tensor_view(e: FunctionEmitter, op: Operation) -> None:
    """A view prints nothing by itself: its windows carry shape, strides and pointer."""


@dataclass(slots=True)
class View:
    """A tensor view in C++ terms: pointer, extents and strides as expressions, with their constants where known."""

    pointer: str
    shape: list[str]
    shape_constants: list[int | None]
    strides: list[str]
    stride_constants: list[int | None]
    layout: str
    elem: str


def view_of(e: FunctionEmitter, value: Value) -> View:
    """The view a value stands for: its `make_tensor_view`, or the variables of a carried view."""
    found = e.views.get(value)
    if found is not None:
        return found
    op = value.owner
    if op is None or op.name != "pto.make_tensor_view":
        raise UnsupportedFeatureError(f"uses a {value.type} parameter, which has no C++ form; pass the pointer instead")
    found = e.views[value] = View(
        e.use(op.ins[0]),
        [e.use(v) for v in op.named["shape"]],
        [constant_of(v) for v in op.named["shape"]],
        [e.use(v) for v in op.named["strides"]],
        [constant_of(v) for v in op.named["strides"]],
        layout_of(value),
        value.type.elem.cpp,
    )
    return found


def layout_of(value: Value) -> str:
    """`ND`, `DN` or `NZ`: the attribute, else what static strides say (7.3). Carried views follow their source."""
    view = value.owner
    if view is None:
        return "ND"
    if view.name != "pto.make_tensor_view":
        if view.name in ("scf.if", "scf.for") and value in view.results:
            last = view.regions[0].ops[-1]
            return layout_of(last.ins[view.results.index(value)])
        return "ND"
    attr = view.attrs.get("layout")
    if attr is not None:
        return attr.value.upper()
    shape = [constant_of(v) for v in view.named["shape"]]
    strides = [constant_of(v) for v in view.named["strides"]]
    lane = 32 // max(view.result.type.elem.bytes, 1)
    if len(shape) == 5 and shape[-2:] == [16, lane] and strides[-2:] == [lane, 1] and strides[-3] == 16 * lane:
        return "NZ"
    if strides[-1] == 1 or len(strides) < 2:
        return "ND"
    return "DN" if strides[-2] == 1 else "ND"


def declare_view(e: FunctionEmitter, value: Value, layout: str) -> View:
    """Variables for a view that a branch or loop assigns."""
    elem = value.type.elem.cpp
    rank = len(value.type.dims)
    names = [e.fresh() for _ in range(1 + 2 * rank)]
    e.line(f"__gm__ {elem}* {names[0]};")
    e.line(f"int64_t {', '.join(names[1:])};")
    unknown: list[int | None] = [None] * rank
    view = View(names[0], names[1 : rank + 1], unknown, names[rank + 1 :], unknown, layout, elem)
    e.views[value] = view
    return view


def _five(values: list, fill) -> list:
    return [fill] * (5 - len(values)) + values


@emits("pto.partition_view")
def _partition_view(e: FunctionEmitter, op: Operation) -> None:
    if e.uses.get(op.result):
        view = view_of(e, op.ins[0])
        _check_window(e, op, view)
        _global_tensor(e, op.result, view, op.named["offsets"], op.named["sizes"])


def _check_window(e: FunctionEmitter, op: Operation, view: View) -> None:
    """Run-time checks of the extents that only run-time values decide: a window may not leave its tensor."""
    for dim, (offset, size) in enumerate(zip(op.named["offsets"], op.named["sizes"])):
        start, count, extent = constant_of(offset), constant_of(size), view.shape_constants[dim]
        if None not in (start, count, extent) and start >= 0 and start + count <= extent:
            continue
        size_text, extent_text = e.use(size), view.shape[dim]
        if start == 0 and size_text == extent_text:
            continue
        _check(e, op, op.ins[0], dim, e.use(offset), size_text, extent_text)


def check_element(e: FunctionEmitter, op: Operation, pointer: Value, offset: Value) -> None:
    """The run-time check of one element behind a pointer whose tensor the function describes.

    A pointer that several views describe, or one whose extents are not known yet, is not checked.
    """
    if e.described is None:
        e.described = {}
        for view in e.function.body.ops:
            if view.name == "pto.make_tensor_view":
                e.described.setdefault(view.ins[0], []).append(view)
    views = e.described.get(pointer, [])
    if len(views) != 1:
        return
    shape, strides = views[0].named["shape"], views[0].named["strides"]
    if not all(v in e.expr or constant_of(v) is not None for v in (*shape, *strides)):
        return
    extents, steps = [constant_of(v) for v in shape], [constant_of(v) for v in strides]
    start = constant_of(offset)
    if None not in extents and None not in steps:
        count = 1 + sum((n - 1) * s for n, s in zip(extents, steps))
        if start is not None and 0 <= start < count:
            return
        size = str(count)
    else:
        terms = [
            f"({e.use(n) if extent is None else extent} - 1) * {e.use(s) if step is None else step}"
            for n, extent, s, step in zip(shape, extents, strides, steps)
        ]
        size = " + ".join(["1", *terms])
    _check(e, op, views[0].result, -1, e.use(offset), "1", size)


def _check(e: FunctionEmitter, op: Operation, view: Value, dim: int, offset: str, size: str, extent: str) -> None:
    e.helpers.add("PTOAS_CHECK_WINDOW")
    name = _SUFFIXES.sub("", view.name.lstrip("%"))
    place = (e.module.location(op.loc) or "").replace('"', "")
    e.line(f'PTOAS_CHECK_WINDOW("{name}", {dim}, {offset}, {size}, {extent}, "{place}");')


def _global_tensor(e: FunctionEmitter, value: Value, view: View, offsets: list[Value], sizes: list[Value]) -> None:
    """Shape, Stride and GlobalTensor of a window of a view: all static, or all strides at run time."""
    size_constants = [constant_of(v) for v in sizes]
    pointer = view.pointer
    terms = []
    for offset, stride, number in zip(offsets, view.strides, view.stride_constants):
        if constant_of(offset) != 0:
            terms.append(e.use(offset) if number == 1 else f"{e.use(offset)} * {stride}")
    if terms:
        pointer = f"{pointer} + ({' + '.join(terms)})"
    shape_args, stride_args = "", ""
    if None not in size_constants and None not in view.stride_constants:
        shape_params = _five(size_constants, 1)
        stride_params = _five(view.stride_constants, size_constants[0] * view.stride_constants[0])
    else:
        shape_params = _five([-1 if n is None else n for n in size_constants], 1)
        stride_params = [-1] * 5
        size_names = [e.use(v) if n is None else str(n) for v, n in zip(sizes, size_constants)]
        shape_args = ", ".join(_five(size_names, "1"))
        stride_args = ", ".join(_five(view.strides, f"{size_names[0]} * {view.strides[0]}"))
    shape_type = f"pto::Shape<{', '.join(map(str, shape_params))}>"
    stride_type = f"pto::Stride<{', '.join(map(str, stride_params))}>"
    tensor_type = f"GlobalTensor<{view.elem}, {shape_type}, {stride_type}, pto::Layout::{view.layout}>"
    shape, stride, tensor = e.fresh(), e.fresh(), e.fresh()
    e.note(value)
    e.line(f"{shape_type} {shape} = {shape_type}({shape_args});")
    e.line(f"{stride_type} {stride} = {stride_type}({stride_args});")
    e.line(f"{tensor_type} {tensor} = {tensor_type}((__gm__ {view.elem}*) {pointer}, {shape}, {stride});")
    e.expr[value] = tensor
    e.tensor_type[value] = tensor_type


@emits("pto.get_tensor_view_dim", "pto.get_tensor_view_stride")
def _view_query(e: FunctionEmitter, op: Operation) -> None:
    view = view_of(e, op.ins[0])
    values = view.shape if op.name.endswith("dim") else view.strides
    index = constant_of(op.ins[1])
    if index is not None:
        e.pure(op.result, values[index])
        return
    selector = e.settled(op.ins[1])
    text = values[-1]
    for number in reversed(range(len(values) - 1)):
        text = f"{selector} == {number} ? {values[number]} : {text}"
    e.pure(op.result, text)


# --- tiles -------------------------------------------------------------------------------------------------------


def declare_tile(e: FunctionEmitter, value: Value, rows: str | None, cols: str | None) -> str:
    """A tile variable; `rows` and `cols` are the run-time valid extents where its type has them."""
    type_ = value.type
    text = tile_type(type_)
    name = e.fresh()
    e.note(value)
    given = [v for v, dynamic in ((rows, type_.v_row < 0), (cols, type_.v_col < 0)) if dynamic]
    e.line(f"{text} {name} = {text}({', '.join(str(g) for g in given)});" if given else f"{text} {name};")
    e.expr[value] = name
    return name


def assign_address(e: FunctionEmitter, value: Value, address: str) -> None:
    """`uint64_t vN = (uint64_t) address; TASSIGN(tile, vN);`"""
    name = e.fresh()
    e.line(f"uint64_t {name} = (uint64_t) {address};")
    e.line(f"TASSIGN({e.expr[value]}, {name});")
    e.address[value] = name


def _valid(e: FunctionEmitter, op: Operation, key: str) -> str | None:
    value = op.named.get(key)
    return None if value is None else e.use(value)


@emits("pto.alloc_tile")
def _alloc_tile(e: FunctionEmitter, op: Operation) -> None:
    if not e.uses.get(op.result):
        return
    declare_tile(e, op.result, _valid(e, op, "valid_row"), _valid(e, op, "valid_col"))
    address = op.named.get("addr")
    assign_address(e, op.result, e.use(address) if address is not None else str(op.attrs.get("planned_address", 0)))


@emits("pto.alloc_multi_tile")
def _alloc_multi_tile(e: FunctionEmitter, op: Operation) -> None:
    """Only the base address is kept; every `multi_tile_get` declares the tile it selects."""
    address = op.named.get("addr")
    text = e.use(address) if address is not None else str(op.attrs.get("planned_address", 0))
    name = e.fresh()
    e.note(op.result)
    e.line(f"uint64_t {name} = (uint64_t) {text};")
    e.address[op.result] = name
    for key in ("valid_row", "valid_col"):
        if op.named.get(key) is not None:
            e.use(op.named[key])


@emits("pto.multi_tile_get")
def _multi_tile_get(e: FunctionEmitter, op: Operation) -> None:
    tiles, index = op.ins
    owner = tiles.owner
    declare_tile(e, op.result, _valid(e, owner, "valid_row"), _valid(e, owner, "valid_col"))
    pitch = slot_bytes(tiles.type.slot)
    assign_address(e, op.result, f"({e.address[tiles]} + (uint64_t) {e.use(index)} * {pitch})")


@emits("pto.subview")
def _subview(e: FunctionEmitter, op: Operation) -> None:
    """A window shares the parent's storage: its C++ tile keeps the parent's pitch and starts at an offset."""
    source = op.ins[0]
    parent, result = source.type, op.result.type
    rows, cols = _window_extents(parent, result)
    shown = result.with_(rows=rows, cols=cols)
    valid = op.named.get("valid") or [None, None]
    op.result.type = shown
    declare_tile(e, op.result, *(None if v is None else e.use(v) for v in valid))
    row, col = op.named["offsets"]
    if source in e.address:
        elements = window_offset(e, parent, row, col)
        address = e.address[source]
        if elements != "0":
            size = parent.dtype.bytes
            address = f"({address} + (uint64_t) ({elements}){f' * {size}' if size > 1 else ''})"
        assign_address(e, op.result, address)
    else:
        e.line(f"TSUBVIEW({e.expr[op.result]}, {e.use(source)}, {e.use(row)}, {e.use(col)});")


def _window_extents(parent: T.TileType, window: T.TileType) -> tuple[int, int]:
    """Physical extents printed for a window: the parent's where the pitch depends on them."""
    if parent.blayout == "row_major":
        return (window.rows, window.cols) if window.cols == parent.cols else (parent.rows, parent.cols)
    return (window.rows, window.cols) if window.rows == parent.rows else (parent.rows, parent.cols)


def window_offset(e: FunctionEmitter, parent: T.TileType, row: Value, col: Value) -> str:
    """Element offset of logical position (row, col) as C++ integer arithmetic (7.1, 7.2)."""
    inner_rows, inner_cols = parent.inner_box
    if not parent.boxed:
        row_step, col_step = (parent.cols, 1) if parent.blayout == "row_major" else (1, parent.rows)
    elif parent.blayout == "col_major":
        row_step, col_step = inner_cols, parent.rows
    else:
        row_step, col_step = parent.cols, inner_rows
    # For boxed tiles offsets are multiples of the box, so row/IR * IR*IC = row * IC, and likewise for columns.
    constants = constant_of(row), constant_of(col)
    if None not in constants:
        return str(constants[0] * row_step + constants[1] * col_step)
    terms = [f"{e.use(v)} * {s}" for v, s, c in zip((row, col), (row_step, col_step), constants) if c != 0]
    return " + ".join(terms) or "0"


@emits("pto.treshape", "pto.bitcast")
def _treshape(e: FunctionEmitter, op: Operation) -> None:
    source = e.use(op.ins[0])
    before, after = op.ins[0].type, op.result.type
    extents = [f"{source}.GetValidRow()", f"{source}.GetValidCol()"]
    if before.blayout != after.blayout and (before.rows, before.cols) == (after.cols, after.rows):
        extents.reverse()
    declare_tile(e, op.result, *extents)
    e.line(f"TRESHAPE({e.expr[op.result]}, {source});")
    if op.ins[0] in e.address:
        e.address[op.result] = e.address[op.ins[0]]


@emits("pto.tassign")
def _tassign(e: FunctionEmitter, op: Operation) -> None:
    e.expr[op.result] = e.use(op.ins[0])
    assign_address(e, op.result, e.use(op.ins[1]))


@emits("pto.set_validshape")
def _set_validshape(e: FunctionEmitter, op: Operation) -> None:
    tile, rows, cols = op.ins
    e.line(f"{e.use(tile)}.SetValidShape({e.use(rows)}, {e.use(cols)});")


@emits("pto.get_validshape")
def _get_validshape(e: FunctionEmitter, op: Operation) -> None:
    tile = e.use(op.ins[0])
    e.declare(op.results[0], f"(int64_t) {tile}.GetValidRow()")
    e.declare(op.results[1], f"(int64_t) {tile}.GetValidCol()")


@emits("pto.tile_valid_rows", "pto.tile_valid_cols")
def _tile_valid(e: FunctionEmitter, op: Operation) -> None:
    method = "GetValidRow" if op.name.endswith("rows") else "GetValidCol"
    e.declare(op.result, f"({cpp_type(op.result.type)}) {e.use(op.ins[0])}.{method}()")
