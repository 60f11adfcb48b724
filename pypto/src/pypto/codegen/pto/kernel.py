"""State of one kernel function while its text is produced: names, constants, values, tiles, tensors.

:class:`KernelEmitter` owns the tables; statements are walked by ``pto.statements``, scalar expressions by
``pto.scalars``, operators by the emission functions of ``pto.operators``. Nothing is analysed here.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import contextmanager

import msgspec

from pypto.backend import BackendHandler
from pypto.codegen.division import Divisions
from pypto.codegen.pto.slots import SlottedAllocation, describe, is_slotted, slot_of
from pypto.codegen.pto.types import (
    dtype_text,
    layout_text,
    partition_text,
    tensor_view_text,
    tile_buf_text,
    tile_extents,
)
from pypto.codegen.writer import NameTable, kernel_symbol
from pypto.errors import InternalError, user_error
from pypto.ir import AssignStmt, DataType, Expr, Function, IfStmt, Span, TensorLayout, TensorType, TileType, Var
from pypto.ir.expr import ConstInt, const_index
from pypto.ir.span import UNKNOWN_SPAN
from pypto.ir.types import CommCtxType, ScalarType
from pypto.ir.visitor import IRVisitor

#: Dimensions of a tensor as the assembler and the task runtime know it.
_MAX_RANK = 5


class TileHandle(msgspec.Struct, eq=False):
    """A tile value of the text: its name, exact type text, valid extents and address."""

    name: str
    type_text: str
    tile: TileType
    valid: tuple[Expr, Expr]
    address: int | None = None
    is_view: bool = False

    @property
    def typed(self) -> str:
        return f"{self.name} : {self.type_text}"


class TensorRef(msgspec.Struct, eq=False):
    """A tensor value of the text: pointer, view name (declared on first use) and the type of the view."""

    pointer: str
    view: str
    type: TensorType
    param: Var | None = None
    view_used: bool = False


class _Line(msgspec.Struct):
    indent: int
    text: str
    span: Span | None


class KernelEmitter:
    """Produces the lines of one ``func.func``."""

    def __init__(self, function: Function, handler: BackendHandler, *, emit_tile_addr: bool, emit_source_loc: bool):
        self.function = function
        self.divisions = Divisions(function)
        self.handler = handler
        self.emit_tile_addr = emit_tile_addr
        self.emit_source_loc = emit_source_loc
        self.names = NameTable()
        self.constants: dict[tuple[str, str], str] = {}
        self.head: list[_Line] = []
        self.body: list[_Line] = []
        self.indent = 2
        self.scalars: dict[Var, str] = {}
        self.unsigned: dict[Var, str] = {}
        self.tiles: dict[Var, TileHandle] = {}
        self.tensors: dict[Var, TensorRef] = {}
        self.arrays: dict[Var, str] = {}
        self.popped: dict[Var, dict] = {}
        self.slotted: dict[Expr, SlottedAllocation] = {}
        self.params: list[tuple[str, str]] = []
        self.hidden_params: list[tuple[str, str]] = []
        self._number = 0
        self._lines = self.body

    # -- names and constants ------------------------------------------------------------------------------------

    def fresh(self, hint: str = "") -> str:
        """``%hint`` when that is free, else the next number."""
        hint = re.sub(r"[^A-Za-z0-9_.$-]", "_", hint)
        if hint and not hint[0].isdigit() and self.names.claim(hint):
            return f"%{hint}"
        while not self.names.claim(str(self._number)):
            self._number += 1
        return f"%{self._number}"

    def int_const(self, value: int, type_text: str) -> str:
        """Name of an integer constant; unsigned values are written in two's complement."""
        if type_text.startswith("ui"):
            type_text = type_text[1:]
        bits = {"i8": 8, "i16": 16, "i32": 32, "i64": 64}.get(type_text)
        if bits and value >= 1 << (bits - 1):
            value -= 1 << bits
        key = (str(value), type_text)
        if key not in self.constants:
            spelled = f"n{-value}" if value < 0 else str(value)
            name = f"c{spelled}_{type_text}"
            self.names.claim(name)
            self.constants[key] = f"%{name}"
        return self.constants[key]

    def index_const(self, value: int) -> str:
        return self.int_const(value, "index")

    def float_const(self, value: float, type_text: str) -> str:
        """Name of a floating constant, written with 17 fractional digits."""
        if value != value or value in (float("inf"), float("-inf")):
            text = _non_finite(value, type_text)
        else:
            text = f"{value:.17e}"
        key = (text, type_text)
        if key not in self.constants:
            name = f"cst_{len(self.constants)}"
            self.names.claim(name)
            self.constants[key] = f"%{name}"
        return self.constants[key]

    # -- lines --------------------------------------------------------------------------------------------------

    def line(self, text: str, span: Span | None = None) -> None:
        """One operation line; ``span`` becomes its location."""
        self._lines.append(_Line(self.indent, text, span))

    @contextmanager
    def region(self, spaces: int = 2):
        self.indent += spaces
        try:
            yield
        finally:
            self.indent -= spaces

    @contextmanager
    def in_head(self):
        """Lines go to the head of the function (parameter views, allocations no single operation writes)."""
        lines, indent = self._lines, self.indent
        self._lines, self.indent = self.head, 2
        try:
            yield
        finally:
            self._lines, self.indent = lines, indent

    # -- parameters ---------------------------------------------------------------------------------------------

    def declare_params(self) -> None:
        """Tensors, then scalars and contexts, then dynamic extents, numbered ``%arg0`` on."""
        function = self.function
        for param in function.params:
            if isinstance(param.type, TileType):
                raise InternalError(
                    f"kernel '{function.name}' has a tile parameter '{param.name_hint}'", span=param.span
                )
            if isinstance(param.type, TensorType):
                pointer = self._param(f"!pto.ptr<{dtype_text(param.type.dtype)}>")
                view = f"%{self.names.suffixed(f'{param.name_hint}_view')}"
                self.tensors[param] = TensorRef(pointer, view, param.type, param)
        for param in function.params:
            if isinstance(param.type, ScalarType):
                self.define_scalar(param, self._param(dtype_text(param.type.dtype)), dtype_text(param.type.dtype))
            elif isinstance(param.type, CommCtxType):
                self.scalars[param] = self._param("!pto.ptr<i64>")
        for var in dynamic_dims(function):
            if var not in self.scalars:
                self.scalars[var] = self._param("index")
        self._declare_leading_constants()

    def _declare_leading_constants(self) -> None:
        """Tile addresses in order of allocation, then extents and strides of all tensor parameters."""
        if self.emit_tile_addr:
            for tile in placed_tiles(self.function):
                address = tile_address(tile)
                if address is not None:
                    self.int_const(address, "i64")
        for param in self.function.params:
            if isinstance(param.type, TensorType):
                view = param.type.tensor_view
                strides = view.stride if view else ()
                for extent in (*param.type.shape, *strides):
                    if isinstance(extent, ConstInt):
                        self.index_const(extent.value)
                self.index_const(1)

    def define_scalar(self, var: Var, name: str, type_text: str) -> None:
        """Bind a scalar variable; a ``ui*`` value is converted to the signless type at its uses."""
        if type_text.startswith("ui"):
            self.unsigned[var] = type_text
        self.scalars[var] = name

    def _param(self, type_text: str) -> str:
        name = f"%arg{len(self.params)}"
        self.names.claim(name[1:])
        self.params.append((name, type_text))
        return name

    def spmd_param(self, which: str) -> str:
        """A launch parameter of the wrapper: ``block_idx``, ``block_num`` or ``subblock_idx``."""
        order = ("block_idx", "block_num", "subblock_idx")
        wanted = ("block_idx", "block_num") if which != "subblock_idx" else ("subblock_idx",)
        have = {name for name, _ in self.hidden_params}
        for item in wanted:
            name = f"%__pypto_spmd_{item}"
            if name not in have:
                self.hidden_params.append((name, "i32"))
        self.hidden_params.sort(key=lambda p: order.index(p[0].removeprefix("%__pypto_spmd_")))
        return f"%__pypto_spmd_{which}"

    # -- tensors ------------------------------------------------------------------------------------------------

    def tensor(self, value: Expr) -> TensorRef:
        """The tensor a variable names; marks its view as used."""
        ref = self.tensors.get(value) if isinstance(value, Var) else None
        if ref is None:
            raise InternalError(f"'{value}' does not name a tensor of kernel '{self.function.name}'", span=value.span)
        ref.view_used = True
        return ref

    def emit_view(self, ref: TensorRef, span: Span) -> None:
        """``make_tensor_view`` of a tensor at the current place."""
        from pypto.codegen.pto.scalars import index_value

        kind = ref.type
        shape = kind.shape
        if len(shape) > _MAX_RANK:
            raise user_error(
                f"tensor '{ref.view.lstrip('%').split('__')[0]}' of kernel '{self.function.name}' has {len(shape)} "
                f"dimensions, but a kernel reads and writes tensors of at most {_MAX_RANK}; reshape it before",
                span=span,
            )
        extents = [index_value(self, d) for d in shape]
        view = kind.tensor_view
        layout = view.layout if view else TensorLayout.ND
        if len(shape) == 2 and isinstance(shape[1], ConstInt) and shape[1].value == 1 and not (view and view.stride):
            layout, strides = TensorLayout.DN, [self.index_const(1), extents[0]]
        elif view and view.stride:
            strides = [index_value(self, s) for s in view.stride]
            if len(shape) == 2 and isinstance(shape[1], ConstInt) and shape[1].value == 1 and layout is TensorLayout.ND:
                layout = TensorLayout.DN
        else:
            strides = self._packed_strides(ref, extents, layout)
        self.line(
            f"{ref.view} = pto.make_tensor_view {ref.pointer}, shape = [{', '.join(extents)}], "
            f"strides = [{', '.join(strides)}] {{layout = #pto.layout<{layout_text(layout)}>}} : "
            f"{tensor_view_text(len(shape), kind.dtype)}",
            span,
        )

    def _packed_strides(self, ref: TensorRef, extents: list[str], layout: TensorLayout) -> list[str]:
        rank = len(extents)
        one = self.index_const(1)
        if rank == 1:
            return [one]
        if layout is TensorLayout.DN:
            strides = [one, extents[-2]]
            outer = [(extents[-2], extents[-1])]
        else:
            strides = [extents[-1], one]
            outer = [(extents[-1], extents[-2])]
        base = ref.view.removesuffix("_view")[1:]
        for axis in range(rank - 3, -1, -1):
            left, right = outer[-1]
            name = self.fresh(f"{base}_s{axis}")
            self.line(f"{name} = arith.muli {left}, {right} : index")
            strides.insert(0, name)
            outer.append((name, extents[axis]))
        return strides

    def partition(
        self, ref: TensorRef, hint: str, offsets: Sequence[Expr], sizes: Sequence[Expr], span: Span
    ) -> tuple[str, str]:
        """``partition_view``: (name, type). Offsets that are not constant are clamped to zero from below."""
        from pypto.codegen.pto.scalars import index_value

        offset_names = [self.clamped_offset(o, span) for o in offsets]
        size_names = [index_value(self, s, span=span) for s in sizes]
        name = self.fresh(f"{hint}_pview")
        kind = partition_text(sizes, ref.type.dtype)
        view = tensor_view_text(len(ref.type.shape), ref.type.dtype)
        self.line(
            f"{name} = pto.partition_view {ref.view}, offsets = [{', '.join(offset_names)}], "
            f"sizes = [{', '.join(size_names)}] : {view} -> {kind}",
            span,
        )
        return name, kind

    def clamped_offset(self, offset: Expr, span: Span) -> str:
        from pypto.codegen.pto.scalars import index_value

        value = index_value(self, offset, span=span)
        if isinstance(offset, ConstInt):
            return value
        name = self.fresh()
        self.line(f"{name} = arith.maxsi {value}, {self.index_const(0)} : index", span)
        return name

    # -- tiles --------------------------------------------------------------------------------------------------

    def tile(self, value: Expr) -> TileHandle:
        handle = self.tiles.get(value) if isinstance(value, Var) else None
        if handle is None:
            raise InternalError(f"'{value}' does not name a tile of kernel '{self.function.name}'", span=value.span)
        return handle

    def alloc_tile(self, var: Var, span: Span, *, physical_valid: bool = False) -> TileHandle:
        """``alloc_tile`` for a variable at the current place."""
        from pypto.codegen.pto.scalars import index_value, typed_value

        tile: TileType = var.type
        if not self.emit_tile_addr and is_slotted(tile):
            return self._slot(var, span)
        valid = self.physical_extents(tile) if physical_valid else self.valid_extents(tile)
        rows, cols = (index_value(self, extent, span=span) for extent in valid)
        address = tile_address(tile) if self.emit_tile_addr else None
        name = self.fresh(var.name_hint)
        kind = tile_buf_text(tile)
        place = None if address is None else self.int_const(address, "i64")
        if place is None and self.emit_tile_addr and tile.memref is not None:  # a slot that is chosen at run time
            place = typed_value(self, tile.memref.byte_offset_, DataType.INT64, span=span)
        at = "" if place is None else f"addr = {place} "
        self.line(f"{name} = pto.alloc_tile {at}valid_row = {rows} valid_col = {cols} : {kind}", span)
        handle = self.tiles[var] = TileHandle(name, kind, tile, valid, address)
        return handle

    def _slot(self, var: Var, span: Span) -> TileHandle:
        """``multi_tile_get`` for a variable in a slot of an allocation, which is declared at the head once."""
        from pypto.codegen.pto.scalars import index_value

        tile: TileType = var.type
        base = tile.memref.base_
        known = self.slotted.get(base)
        found = describe(tile, known, "", span)
        index = index_value(self, slot_of(tile, var, span), span=span)
        if known is None:
            self.slotted[base] = found
            found.name = self.fresh(f"{base.name_hint}_mb")
            rows, cols = (self.index_const(extent.value) for extent in self.valid_extents(tile))
            with self.in_head():
                self.line(
                    f"{found.name} = pto.alloc_multi_tile valid_row = {rows} valid_col = {cols} : {found.kind}",
                    self.function.span,
                )
        name = self.fresh(var.name_hint)
        self.line(f"{name} = pto.multi_tile_get {found.name}[{index}] : {found.kind} -> {found.slot}", span)
        handle = self.tiles[var] = TileHandle(name, found.slot, tile, self.valid_extents(tile), None)
        return handle

    @staticmethod
    def physical_extents(tile: TileType) -> tuple[Expr, Expr]:
        rows, cols = tile_extents(tile)
        return const_index(rows), const_index(cols)

    @staticmethod
    def valid_extents(tile: TileType) -> tuple[Expr, Expr]:
        valid = tile.valid_shape
        return (const_index(1), valid[0]) if len(valid) == 1 else (valid[0], valid[1])

    def copy_if_elsewhere(self, source: TileHandle, target: TileHandle, span: Span) -> None:
        """``tmov`` unless both handles are the same buffer."""
        if source is target or source.name == target.name:
            return
        if source.address is not None and source.address == target.address and not source.is_view:
            return
        self.line(f"pto.tmov ins({source.typed}) outs({target.typed})", span)

    # -- result -------------------------------------------------------------------------------------------------

    def render(self) -> list[str]:
        """All lines of the function, constants and parameter views first."""
        body_lines = self._lines
        views: list[_Line] = []
        self._lines = views
        for ref in self.tensors.values():
            if ref.param is not None and ref.view_used:
                self.emit_view(ref, ref.param.span)
                ref.view_used = False
        self._lines = body_lines
        kind = _kernel_kind(self.function)
        params = ", ".join(f"{name}: {text}" for name, text in self.params + self.hidden_params)
        lines = [f"  func.func @{kernel_symbol(self.function.name)}({params}){kind} {{"]
        for (value, type_text), name in self._ordered_constants():
            lines.append(f"  {name} = arith.constant {value} : {type_text}")
        for item in (*views, *self.head, *self.body):
            lines.append(" " * item.indent + item.text + self._location(item.span))
        lines += ["  return", "  }"]
        return lines

    def _ordered_constants(self):
        items = list(self.constants.items())
        return sorted(items, key=lambda item: item[0][1] != "i64")

    def _location(self, span: Span | None) -> str:
        if not self.emit_source_loc or span is None or span is UNKNOWN_SPAN or not span.is_valid():
            return ""
        column = max(span.begin_column, 1)
        return f' loc("{_escaped(span.filename)}":{span.begin_line}:{column})'


def _escaped(text: str) -> str:
    """``text`` inside an MLIR string literal."""
    if text.isprintable() and '"' not in text and "\\" not in text:
        return text
    named = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t"}
    return "".join(named.get(c) or (c if c >= " " else f"\\{ord(c):02X}") for c in text)


def tile_address(tile: TileType) -> int | None:
    """Byte address of a placed tile, None when it has no MemRef or its slot is chosen at run time."""
    if tile.memref is None:
        return None
    offset = tile.memref.byte_offset_
    return offset.value if isinstance(offset, ConstInt) else None


class _PlacedTiles(IRVisitor):
    def __init__(self) -> None:
        self.found: list[TileType] = []

    def visit_expr(self, expr: Expr) -> None:
        pass

    def visit_assign_stmt(self, stmt: AssignStmt) -> None:
        self._add(stmt.var)

    def visit_if_stmt(self, stmt: IfStmt) -> None:
        super().visit_if_stmt(stmt)
        for var in stmt.return_vars:
            self._add(var)

    def _add(self, var: Var) -> None:
        if isinstance(var.type, TileType) and var.type.memref is not None:
            self.found.append(var.type)


def placed_tiles(function: Function) -> list[TileType]:
    """Types of the tiles that have an address, in order of definition."""
    tiles = _PlacedTiles()
    tiles.visit_stmt(function.body)
    return tiles.found


def dynamic_dims(function: Function) -> list[Var]:
    """Variables of tensor shapes that are no parameters, in order of first appearance."""
    found: dict[Var, None] = {}
    params = set(function.params)
    for param in function.params:
        if isinstance(param.type, TensorType):
            for dim in param.type.shape:
                for var in collect_vars_from_shape_expr(dim):
                    if var not in params:
                        found.setdefault(var)
    return list(found)


class _ShapeVars(IRVisitor):
    def __init__(self) -> None:
        self.found: dict[Var, None] = {}

    def visit_var_like(self, var: Var) -> None:
        self.found.setdefault(var)


def collect_vars_from_shape_expr(expr: Expr) -> list[Var]:
    """Variables of a shape expression in first-use order, without duplicates."""
    collector = _ShapeVars()
    collector.visit_expr(expr)
    return list(collector.found)


def _kernel_kind(function: Function) -> str:
    kind = {"AIC": "cube", "AIV": "vector"}.get(function.func_type.name)
    return f" attributes {{pto.kernel_kind = #pto.kernel_kind<{kind}>}}" if kind else ""


def _non_finite(value: float, type_text: str) -> str:
    bits = {
        "f32": ("0x7F800000", "0xFF800000", "0x7FC00000"),
        "f16": ("0x7C00", "0xFC00", "0x7E00"),
        "bf16": ("0x7F80", "0xFF80", "0x7FC0"),
    }.get(type_text)
    if bits is None:
        raise ValueError(f"{value} has no {type_text} constant")
    return bits[2] if value != value else bits[0] if value > 0 else bits[1]
