"""InitMemRef: give every tile and tensor a MemRef and declare the on-chip allocations."""

from __future__ import annotations

from pypto.errors import user_error
from pypto.ir.dtype import DataType
from pypto.ir.enums import MemorySpace, TileLayout
from pypto.ir.expr import Call, Expr, IterArg, MakeTuple, TupleGetItemExpr, Var, _next_id, const_value
from pypto.ir.memref import MemRef
from pypto.ir.node import make, replace
from pypto.ir.program import Function
from pypto.ir.stmt import AssignStmt, ForStmt, IfStmt, SeqStmts, Stmt, WhileStmt, flatten_to_stmts, seq
from pypto.ir.types import PtrType, ShapedType, TensorType, TileType, Type
from pypto.ops.registry import op_ref
from pypto.passes.lib.op_facts import POPS, TILE_VIEWS, VIEWS, is_user_call, same_object_arg
from pypto.passes.lib.rewrite import Substitution, with_body
from pypto.passes.lib.scalars import add, int64, mul
from pypto.passes.lib.sizes import element_bytes, shaped_bytes
from pypto.passes.lib.walk import yielded
from pypto.passes.memory.declared_allocations import DeclaredAllocations, is_declaration
from pypto.passes.memory.placement import alloc_stmt, region
from pypto.passes.memory.storage import TileStorage
from pypto.passes.pass_ import function_pass
from pypto.passes.properties import IRProperty as P


class _MemRefs(Substitution):
    """Assigns MemRefs to definitions in program order. Types hold no tile or tensor variables, so they keep theirs."""

    def __init__(self, function: Function) -> None:
        super().__init__(in_types=False)
        self._function = function
        self._counter = 0
        self._refs: dict[Var, MemRef | None] = {}
        self._pitch: dict[Var, Expr] = {}
        self._tuples: dict[Var, Expr] = {}
        self._copied: dict[Var, Var] = {}
        self._declared = DeclaredAllocations(function)
        self._storage: TileStorage | None = None
        self.allocations: list[Stmt] = []

    # -- MemRefs of definitions ---------------------------------------------------------------------------------

    def _fresh(self, kind: ShapedType, var: Var) -> MemRef:
        space = MemorySpace.DDR if isinstance(kind, TensorType) else kind.memory_space or MemorySpace.DDR
        size = shaped_bytes(kind)
        if size is None:
            if space is not MemorySpace.DDR:
                raise user_error(f"InitMemRef requires static shape for tile variable '{var.name_hint}'", span=var.span)
            size = 0
        pointer = Var(f"mem_{space.name.lower()}_{self._counter}", PtrType.get(), var.span)
        self._counter += 1
        if space is not MemorySpace.DDR:
            self.allocations.append(alloc_stmt(pointer, space, size))
        return region(pointer, 0, size)

    def _typed(self, kind: Type, memref: MemRef | None) -> Type:
        if memref is None:
            return kind if kind.memref is None else replace(kind, memref=None)
        if isinstance(kind, TileType) and kind.memory_space is None:
            return replace(kind, memref=memref, memory_space=MemorySpace.DDR)
        return replace(kind, memref=memref)

    def _bind(self, var: Var, memref: MemRef | None) -> Var:
        """``var`` with a MemRef in its type; the new variable replaces it everywhere."""
        self._refs[var] = memref
        kind = self._typed(var.type, memref)
        if kind is var.type:
            return var
        new = self.var_map[var] = replace(var, type=kind)
        return new

    def visit_def(self, var: Var) -> Var:
        if var in self.var_map or not isinstance(var.type, (TensorType, TileType)):
            return self.var_map.get(var, var)
        return self._bind(var, self._fresh(var.type, var))

    def visit_assign_stmt(self, stmt: AssignStmt) -> Stmt:
        value, var = stmt.value, stmt.var
        new_value = self.visit_expr(value)
        if type(value) is MakeTuple:
            self._tuples[var] = value
        if isinstance(var.type, (TensorType, TileType)):
            new_var = self._bind(var, self._memref_of(var, value))
        else:
            new_var = var
        return self._rebuild(stmt, value=new_value, var=new_var)

    def _memref_of(self, var: Var, value: Expr) -> MemRef | None:
        kind = var.type
        declared = kind.memref if isinstance(kind, TileType) else None
        if declared is not None and is_declaration(declared):
            if not isinstance(value, Call) or value.op.name in TILE_VIEWS or same_object_arg(value) is not None:
                raise user_error(
                    f"MemRef of '{var.name_hint}': its value lands in its source tile's allocation, so it cannot be "
                    "bound to another one; bind the source tile instead",
                    span=var.span,
                )
            return self._declared.bind(var, declared, self.visit_expr)
        source = self._shared_source(value)
        if isinstance(kind, TensorType):
            if isinstance(value, Var) or source is None or source not in self._refs:
                return self._fresh(kind, var)
        elif isinstance(value, Call) and value.op.name in POPS:
            return None
        if source is None or source not in self._refs:
            return self._fresh(kind, var)
        memref = self._refs[source]
        if isinstance(value, Call) and value.op.name in VIEWS:
            return None if memref is None else self._view(var, value, source, memref)
        if source in self._pitch:
            self._pitch[var] = self._pitch[source]
        return memref

    def _shared_source(self, value: Expr) -> Expr | None:
        """The value whose storage an assigned value uses, or None."""
        if isinstance(value, Var):
            return value
        if isinstance(value, TupleGetItemExpr):
            made = self._tuples.get(value.tuple) if isinstance(value.tuple, Var) else value.tuple
            return made.elements[value.index] if isinstance(made, MakeTuple) else None
        if not isinstance(value, Call) or is_user_call(value):
            return None
        index = 0 if value.op.name in VIEWS else same_object_arg(value)
        return value.args[index] if index is not None and index < len(value.args) else None

    def _view(self, var: Var, call: Call, source: Var, memref: MemRef) -> MemRef:
        """The window of a view operator; everything but a slice covers its source from the first byte."""
        if call.op.name not in ("tile.slice", "tensor.slice"):
            if call.op.name in ("tile.set_validshape", "tensor.set_validshape"):
                if source in self._pitch:
                    self._pitch[var] = self._pitch[source]
                return memref
            size = shaped_bytes(var.type)
            return region(memref.base_, memref.byte_offset_, memref.size_ if size is None else size)
        parent, dtype = source.type, source.type.dtype
        offsets, extents = call.args[2].elements, call.args[1].elements
        if _is_column_window(parent, offsets, extents):
            rows = const_value(parent.shape[0])
            offset = mul(offsets[1], rows * 4)
            size = const_value(extents[1]) * rows * 4
            return region(memref.base_, _offset(memref, offset), size)
        pitch = self._pitch.get(source, parent.shape[-1])
        if len(parent.shape) == 2:
            self._pitch[var] = pitch
        elements, span = _linear(offsets, extents, parent.shape, pitch)
        if dtype.get_bit() % 8 == 0:
            offset = mul(elements, dtype.get_byte())
        else:
            offset = self._sub_byte(var, elements, dtype)
        size = 0 if span is None else element_bytes(span, dtype)
        return region(memref.base_, _offset(memref, offset), size)

    def _sub_byte(self, var: Var, elements: Expr, dtype: DataType) -> Expr:
        bits = dtype.get_bit()
        value = const_value(elements)
        if value is None or value * bits % 8:
            raise user_error(
                f"slice '{var.name_hint}' of {dtype} data must be byte-aligned: its first element is not on a byte",
                span=var.span,
            )
        return int64(value * bits // 8)

    # -- control flow -------------------------------------------------------------------------------------------

    def _uses(self) -> TileStorage:
        if self._storage is None:
            self._storage = TileStorage(self._function)
        return self._storage

    def _private_copies(self, loop: ForStmt | WhileStmt) -> list[Stmt]:
        """Copies of initial values that somebody else still reads: a carry is updated in place."""
        copies: list[Stmt] = []
        self._copied = {}
        for arg, value in zip(loop.iter_args, yielded(loop.body)):
            kind = arg.type
            if not isinstance(kind, TileType) or kind.memory_space is not MemorySpace.Vec or value is arg:
                continue
            if self._refs.get(arg.initValue) is not None and self._uses().owns_for_loop(loop, arg.initValue):
                continue
            source = self.visit_expr(arg.initValue)
            plain = replace(kind, memref=None)
            copy = Var(f"{arg.initValue.name_hint}_mv", plain, loop.span)
            call = make(
                Call, op_ref("tile.move"), (source,), {"target_memory": kind.memory_space}, {}, plain, loop.span
            )
            copies.append(AssignStmt(self.visit_def(copy), call, loop.span))
            self._copied[arg] = copy
        return copies

    def visit_seq_stmts(self, stmt: SeqStmts) -> Stmt:
        return seq([self.visit_stmt(child) for child in stmt.stmts], stmt.span)

    def visit_iter_args(self, iter_args) -> tuple:
        result = []
        for arg in iter_args:
            source = self._copied.get(arg, arg.initValue)
            init = self.visit_expr(source)
            kind = arg.type
            if isinstance(kind, (TensorType, TileType)):
                memref = self._refs.get(source)
                self._refs[arg] = memref
                kind = self._typed(kind, memref)
            if kind is arg.type and init is arg.initValue:
                result.append(arg)
                continue
            new = self.var_map[arg] = make(IterArg, arg.name_hint, kind, arg.span, _next_id(), init)
            result.append(new)
        return tuple(result)

    def _results(self, stmt: ForStmt | WhileStmt) -> tuple:
        results = []
        for var, arg in zip(stmt.return_vars, stmt.iter_args):
            if isinstance(var.type, TileType):
                # The number is used up although the buffer is the carry's: names follow the order of definitions.
                self._counter += 1
                results.append(self._bind(var, self._refs.get(arg)))
            else:
                results.append(self.visit_def(var))
        return tuple(results)

    def visit_for_stmt(self, stmt: ForStmt) -> Stmt:
        bounds = {name: self.visit_expr(getattr(stmt, name)) for name in ("start", "stop", "step")}
        copies = self._private_copies(stmt)
        iter_args = self.visit_iter_args(stmt.iter_args)
        attrs = self.visit_attrs(stmt.attrs)
        body = self.visit_stmt(stmt.body)
        loop = self._rebuild(
            stmt, **bounds, iter_args=iter_args, attrs=attrs, body=body, return_vars=self._results(stmt)
        )
        return seq([*copies, loop]) if copies else loop

    def visit_while_stmt(self, stmt: WhileStmt) -> Stmt:
        copies = self._private_copies(stmt)
        iter_args = self.visit_iter_args(stmt.iter_args)
        condition = self.visit_expr(stmt.condition)
        body = self.visit_stmt(stmt.body)
        loop = self._rebuild(stmt, iter_args=iter_args, condition=condition, body=body, return_vars=self._results(stmt))
        return seq([*copies, loop]) if copies else loop

    def visit_if_stmt(self, stmt: IfStmt) -> Stmt:
        condition = self.visit_expr(stmt.condition)
        then_body = self.visit_stmt(stmt.then_body)
        else_body = None if stmt.else_body is None else self.visit_stmt(stmt.else_body)
        results = []
        arms = zip(yielded(stmt.then_body), yielded(stmt.else_body))
        for var, values in zip(stmt.return_vars, arms):
            if isinstance(var.type, TileType):
                memref = self._refs.get(values[0]) if isinstance(values[0], Var) else None
                if memref is not None and self._uses().owns_for_branch(stmt, values[0]):
                    self._counter += 1
                    results.append(self._bind(var, memref))
                    continue
            results.append(self.visit_def(var))
        return self._rebuild(
            stmt, condition=condition, then_body=then_body, else_body=else_body, return_vars=tuple(results)
        )

    # -- operators ----------------------------------------------------------------------------------------------

    def visit_call(self, call: Call) -> Expr:
        call = super().visit_call(call)
        if call.op.name == "tile.load" and len(call.args) == 3:
            call = replace(call, args=(*call.args, call.args[2]))
        return call

    def run(self) -> Function:
        function = self._function
        params = tuple(self.visit_def(p) for p in function.params)
        body = None if function.body is None else self.visit_stmt(function.body)
        attrs = self.visit_attrs(function.attrs)
        if body is not None:
            pinned = [alloc_stmt(*a, pinned=True) for a in self._declared.allocations()]
            allocs = [*pinned, *self.allocations]
            if allocs:
                body = seq([*allocs, *flatten_to_stmts(body)], function.body.span)
        return self._rebuild(function, params=params, body=body, attrs=attrs)


def _offset(memref: MemRef, relative: Expr) -> Expr:
    base, value = const_value(memref.byte_offset_), const_value(relative)
    if base is not None and value is not None:
        return int64(base + value)
    return relative if base == 0 else add(memref.byte_offset_, relative)


def _linear(offsets, extents, shape, pitch: Expr) -> tuple[Expr, int | None]:
    """(first element, elements from the first to the last one) of a window of a row-major buffer."""
    strides: list[Expr] = [mul(1, 1)] * len(shape)
    step: Expr = strides[-1]
    for axis in reversed(range(len(shape))):
        strides[axis] = step
        step = mul(step, pitch if axis == len(shape) - 1 else shape[axis])
    first: Expr = mul(0, 0)
    last: int | None = 1
    # Erased unit axes make the window shorter than its parent; offsets always cover every axis.
    for offset, extent, stride in zip(offsets, extents, strides):
        first = add(first, mul(offset, stride))
        size, width = const_value(extent), const_value(stride)
        last = None if last is None or size is None or width is None else last + (size - 1) * width
    return first, last


def _is_column_window(parent: Type, offsets, extents) -> bool:
    """A full-height column window of a boxed accumulator, whose boxes lie column after column."""
    if not isinstance(parent, TileType) or parent.memory_space is not MemorySpace.Acc or len(parent.shape) != 2:
        return False
    view = parent.get_effective_tile_view()
    rows, width = const_value(parent.shape[0]), const_value(extents[1])
    column = const_value(offsets[1])
    return (
        (view.blayout, view.slayout, view.fractal) == (TileLayout.col_major, TileLayout.row_major, 1024)
        and parent.dtype.get_byte() == 4
        and rows is not None
        and rows % 16 == 0
        and width is not None
        and width % 16 == 0
        and const_value(extents[0]) == rows
        and const_value(offsets[0]) == 0
        and (column is None or column % 16 == 0)
    )


@function_pass(
    "InitMemRef",
    required=(P.SSAForm, P.SplitIncoreOrch, P.IncoreTileOps, P.TileOps2D, P.TileMemoryInferred),
    produced=(P.HasMemRefs, P.NormalizedStmtStructure),
    invalidated=(P.SSAForm,),
)
def init_mem_ref(function: Function) -> Function:
    """Give tiles ``mem_<space>_<n>`` and tensors ``mem_ddr_<n>``; results that alias an operand share its MemRef."""
    if function.body is not None:
        function = with_body(function, seq(flatten_to_stmts(function.body), function.body.span))
    return _MemRefs(function).run()
