"""Tile allocation and tile views: alignment, valid operands, windows, and the rules that depend on the level."""

from __future__ import annotations

from ..dialect import types as T
from ..dialect.ir import Module, Operation, Value, constant_of
from ..passes.capacity import CAPACITY
from .checker import Checker, rule
from .helpers import valid_text

ADDRESS_ALIGNMENT = 32


def check_tile_type(c: Checker, op: Operation, t: T.TileType) -> None:
    """Line size of plain tiles, box multiples of boxed ones."""
    size = t.dtype.bytes
    if not t.boxed:
        packed = t.dtype.text.startswith("!pto.f4")
        unit = 16 if packed else 32
        if t.blayout == "row_major":
            line = t.cols * size
            if line % unit:
                c.fail(
                    op, f"expects row-major tile row byte size (cols * sizeof(dtype)) to be {unit}-byte aligned, "
                    f"but got {line} bytes", f"use a multiple of {max(unit // size, 1)} columns and a valid_col",
                )  # fmt: skip
        else:
            line = t.rows * size
            if line % unit:
                c.fail(
                    op, f"expects col-major tile column byte size (rows * sizeof(dtype)) to be {unit}-byte aligned, "
                    f"but got {line} bytes", f"use a multiple of {max(unit // size, 1)} rows and a valid_row",
                )  # fmt: skip
        return
    inner_rows, inner_cols = t.inner_box
    if t.loc == "vec" or t.fractal == 32:
        return
    if t.rows % inner_rows and t.rows != 1:
        c.fail(op, f"expects boxed tile rows to be a multiple of innerRows ({inner_rows}), but got {t.rows}")
    if t.cols % inner_cols:
        c.fail(op, f"expects boxed tile cols to be a multiple of innerCols ({inner_cols}), but got {t.cols}")


def _check_valid_operands(c: Checker, op: Operation, t: T.TileType) -> None:
    for key, field, extent in (("valid_row", "v_row", t.v_row), ("valid_col", "v_col", t.v_col)):
        given = op.named.get(key)
        if extent == T.DYNAMIC:
            if given is None:
                c.fail(op, f"{key} operand is required because result type {field} is ?")
            bound = t.rows if key == "valid_row" else t.cols
            constant = constant_of(given)
            if constant is not None and not 0 <= constant <= bound:
                c.fail(op, f"expects constant {key} to be between 0 and {bound}, got {constant}")
        elif given is not None:
            c.fail(op, f"{key} operand must be absent because result type {field} is {extent}")


def _check_address(c: Checker, op: Operation, loc: str) -> None:
    address = op.named.get("addr")
    if address is None:
        return
    if address.type is not T.I64:
        c.fail(op, f"expects addr to be i64, got {address.type}")
    constant = constant_of(address)
    if constant is None:
        return
    if constant < 0:
        c.fail(op, f"addr must be non-negative, got {constant}")
    if constant % ADDRESS_ALIGNMENT:
        c.fail(
            op, f"addr must be aligned to {ADDRESS_ALIGNMENT} bytes for local tile memory space, got {constant}",
            f"loc={loc} tiles start at multiples of {ADDRESS_ALIGNMENT}",
        )  # fmt: skip


@rule("alloc_tile")
def _alloc_tile(c: Checker, op: Operation) -> None:
    t = op.result.type
    if not isinstance(t, T.TileType):
        c.fail(op, f"expects a tile_buf result, got '{t}'")
    check_tile_type(c, op, t)
    _check_valid_operands(c, op, t)
    _check_address(c, op, t.loc)


@rule("alloc_multi_tile")
def _alloc_multi_tile(c: Checker, op: Operation) -> None:
    t = op.result.type
    if not isinstance(t, T.MultiTileType):
        c.fail(op, f"expects a multi_tile_buf result, got '{t}'")
    check_tile_type(c, op, t.slot)
    if t.slot.compact == 2:
        c.fail(op, "does not support compact=2 (row_plus_one) slots")
    _check_valid_operands(c, op, t.slot)
    _check_address(c, op, t.slot.loc)


@rule("multi_tile_get")
def _multi_tile_get(c: Checker, op: Operation) -> None:
    multi = op.ins[0].type
    if not isinstance(multi, T.MultiTileType):
        c.fail(op, f"expects a multi_tile_buf operand, got '{multi}'")
    if op.result.type is not multi.slot:
        c.fail(op, f"expects the result type to be the slot type '{multi.slot}'")
    index = constant_of(op.ins[1])
    if index is not None and not 0 <= index < multi.count:
        c.fail(op, f"slot index {index} is out of range [0, {multi.count})")


# --- windows and reinterpretations -------------------------------------------------------------------------------


@rule("subview")
def _subview(c: Checker, op: Operation) -> None:
    source = c.tile(op, op.ins[0], "source")
    result = c.tile(op, op.result, "result")
    sizes, offsets = op.attrs["sizes"], op.named["offsets"]
    if len(sizes) != 2 or len(offsets) != 2:
        c.fail(op, f"expects two offsets and two sizes, got {len(offsets)} and {len(sizes)}")
    if [result.rows, result.cols] != sizes:
        c.fail(op, f"expects result shape to match sizes, got {result.rows}x{result.cols} for sizes {sizes}")
    for name in ("dtype", "loc", "blayout", "slayout", "fractal", "pad", "compact"):
        ours, theirs = getattr(result, name), getattr(source, name)
        if ours != theirs:
            c.fail(op, f"expects result {name} to match source {name}, got {ours} and {theirs}")
    constants = [constant_of(v) for v in offsets]
    for dim, (offset, size, extent) in enumerate(zip(constants, sizes, (source.rows, source.cols))):
        if size <= 0:
            c.fail(op, f"size at dim {dim} must be positive, got {size}")
        if offset is not None and offset < 0:
            c.fail(op, f"offset at dim {dim} must be non-negative, got {offset}")
        if size > extent or (offset is not None and offset + size > extent):
            c.fail(op, f"window at dim {dim} exceeds the source: offset {offset}, size {size}, extent {extent}")
    _check_window_valid(c, op, result, sizes)
    if source.boxed:
        _check_boxed_window(c, op, source, constants, sizes)


def _check_window_valid(c: Checker, op: Operation, result: T.TileType, sizes: list[int]) -> None:
    valid = op.named.get("valid")
    if valid is None:
        if result.dynamic:
            c.fail(op, "requires valid operands because the result valid shape is ?")
        return
    if len(valid) != 2:
        c.fail(op, f"expects valid operands in pairs, got {len(valid)}")
    for dim, (value, size, extent) in enumerate(zip(valid, sizes, (result.v_row, result.v_col))):
        constant = constant_of(value)
        wanted = T.DYNAMIC if constant is None else min(constant, size)
        if constant is not None and constant < 0:
            c.fail(op, f"valid operand at dim {dim} must be non-negative, got {constant}")
        if extent not in (wanted, T.DYNAMIC):
            c.fail(op, f"expects result valid extent {wanted} at dim {dim}, got {extent}")


def _check_boxed_window(c: Checker, op: Operation, source: T.TileType, offsets: list, sizes: list[int]) -> None:
    box = source.inner_box
    for dim, (offset, size, inner) in enumerate(zip(offsets, sizes, box)):
        if size % inner:
            c.fail(op, f"boxed size at dim {dim} must be a multiple of {inner}, got {size}")
        if offset is not None and offset % inner:
            c.fail(op, f"boxed offset at dim {dim} must be a multiple of {inner}, got {offset}")
    if source.blayout == "row_major":
        if sizes[1] != source.cols or offsets[1] != 0:
            c.fail(op, "boxed RowMajor subview must keep full cols with a constant col offset of 0")
    elif sizes[0] != source.rows or offsets[0] != 0:
        c.fail(op, "boxed ColMajor subview must keep full rows with a constant row offset of 0")


@rule("treshape", "bitcast")
def _treshape(c: Checker, op: Operation) -> None:
    source = c.tile(op, op.ins[0], "src")
    result = c.tile(op, op.result, "result")
    if source.loc != result.loc:
        c.fail(op, f"expects src and result to use the same loc, got {source.loc} and {result.loc}")
    if source.bytes != result.bytes:
        c.fail(op, f"expects src and result to have the same total byte size, got {source.bytes} and {result.bytes}")
    if source.boxed != result.boxed:
        c.fail(op, "cannot reshape between boxed and non-boxed tile layouts")


@rule("set_validshape")
def _set_validshape(c: Checker, op: Operation) -> None:
    t = c.tile(op, op.ins[0], "source")
    owner = op.ins[0].owner
    if owner is not None and owner.name in ("pto.subview", "pto.treshape"):
        c.fail(op, f"cannot change the valid shape of a {owner.name.removeprefix('pto.')} result",
               "give the view its valid shape where it is made")  # fmt: skip
    if not (t.v_row == T.DYNAMIC and t.v_col == T.DYNAMIC):
        c.fail(op, f"expects source tile_buf to have dynamic validShape (?, ?), got {valid_text(t)}")
    for name, value, bound in (("row", op.ins[1], t.rows), ("col", op.ins[2], t.cols)):
        constant = constant_of(value)
        if constant is not None and constant < 0:
            c.fail(op, f"expects valid {name} to be non-negative, got {constant}")
        if constant is not None and constant > bound:
            c.fail(op, f"expects valid {name} to be at most {bound}, got {constant}")


@rule("tassign")
def _tassign(c: Checker, op: Operation) -> None:
    c.tile(op, op.ins[0], "tile")
    if op.result.type is not op.ins[0].type:
        c.fail(op, "expects the result type to match the tile type")


# --- rules of the levels -----------------------------------------------------------------------------------------


def check_level(module: Module, level: str, *, automatic_sync: bool) -> None:
    """What depends on `--pto-level` (9.2); runs after verification. Raises AssemblerError."""
    planned = level != "level3"
    for fn in module.functions:
        for op in fn.body.walk() if fn.body is not None else ():
            if op.name == "pto.alloc_tile":
                _level_of_alloc(module, op, planned, "requires 'addr' operand when --pto-level=level3")
            elif op.name == "pto.alloc_multi_tile":
                _level_of_alloc(
                    module, op, planned,
                    "pto.alloc_multi_tile requires a base 'addr' operand when --pto-level=level3",
                )  # fmt: skip
            elif op.name == "pto.reserve_buffer":
                _level_of_reserve(module, op, planned)
            elif op.name == "pto.tassign":
                if planned:
                    raise _level_error(module, op, "pto.tassign is only supported when --pto-level=level3.")
                if automatic_sync:
                    raise _level_error(module, op, "pto.tassign requires --enable-insert-sync to be disabled.")
            elif not planned:
                _scratch_at_level3(module, op)


def _level_error(module: Module, op: Operation, text: str, value: Value | None = None):
    return module.source.error(op.at, text, source_loc=module.location(op.loc), stage="level")


def _level_of_alloc(module: Module, op: Operation, planned: bool, missing: str) -> None:
    given = op.named.get("addr") is not None
    if planned and given:
        raise _level_error(module, op, "unexpected 'addr' operand: only supported when --pto-level=level3")
    if not planned and not given:
        raise _level_error(module, op, missing)


def _level_of_reserve(module: Module, op: Operation, planned: bool) -> None:
    auto, base = op.attrs.get("auto", False), op.attrs.get("base")
    if planned:
        if not auto or base is not None:
            raise _level_error(module, op, "expects 'auto = true' and no 'base' when memory is planned (level1/level2)")
        return
    if auto or base is None:
        raise _level_error(module, op, "expects 'auto = false' with 'base' when --pto-level=level3")
    if base < 0 or base % 256:
        raise _level_error(module, op, f"expects 'base' to be a non-negative multiple of 256, got {base}")
    space = op.attrs["location"].value
    capacity = CAPACITY[module.arch][space]
    if base + op.attrs["size"] > capacity:
        raise _level_error(
            module, op, f"reserved buffer [{base}, {base + op.attrs['size']}) exceeds the {capacity} bytes of {space}"
        )


def _scratch_at_level3(module: Module, op: Operation) -> None:
    """Operations that need a scratch tile, which only the planner could make."""
    name = op.name.removeprefix("pto.")
    text = f"'{op.name}' op requires explicit tmp when PlanMemory is skipped"
    if module.arch == "a3":
        missing = (name == "tsel" and len(op.ins) < 4) or (name == "tci" and len(op.ins) < 2)
        if missing:
            raise _level_error(module, op, text)
    if name == "tsort32" and len(op.ins) < 3:
        width = op.ins[0].type.v_col
        if width == T.DYNAMIC or width % 32:
            raise _level_error(
                module, op, f"'{op.name}' op requires explicit tmp for a dynamic or not 32-aligned width "
                "when PlanMemory is skipped",
            )  # fmt: skip
