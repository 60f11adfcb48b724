"""FlattenTileNdTo2D: tiles of more than two axes become matrices of their merged leading axes."""

from __future__ import annotations

from typing import Any

from pypto.errors import user_error
from pypto.ir.enums import MemorySpace, is_incore_type
from pypto.ir.expr import Call, Expr, GlobalVar, MakeTuple, Var, const_index, const_value
from pypto.ir.node import replace
from pypto.ir.program import Function
from pypto.ir.span import Span
from pypto.ir.stmt import AssignStmt, EvalStmt, Stmt, flatten_to_stmts, seq
from pypto.ir.types import TensorType, TileType, Type
from pypto.ir.visitor import IRMutator
from pypto.ops.registry import create_op_call
from pypto.passes.lib import scalars
from pypto.passes.lib.dead_tiles import drop_unread
from pypto.passes.lib.rewrite import with_body
from pypto.passes.lib.uses import count_reads
from pypto.passes.lib.walk import defined_vars, iter_stmts
from pypto.passes.pass_ import function_pass
from pypto.passes.properties import IRProperty as P
from pypto.passes.tile.flattening.batch import BatchLowering
from pypto.passes.tile.flattening.geometry import (
    collapse_offsets,
    collapses,
    flat_shape,
    flat_type,
    flat_valid,
)

_FORM = (P.SSAForm, P.IncoreTileOps, P.NormalizedStmtStructure)
_SHAPE_OPERANDS = {"tile.create": 0, "tile.full": 0, "tile.reshape": 1, "tile.random": 0, "tile.ci": 1}
_ROW_REDUCTIONS = frozenset(f"tile.{w}" for w in ("sum", "max", "min", "prod"))
_ELEMENT_ACCESS = frozenset(("tile.read", "tile.write", "tile.slice"))


@function_pass(
    "FlattenTileNdTo2D", required=_FORM, produced=(P.SSAForm, P.TileOps2D, P.NormalizedStmtStructure)
)  # fmt: skip
def flatten_tile_nd_to_2d(function: Function) -> Function:
    """Rewrite InCore-type functions; transposes get their scratch, batched products one product per batch.

    Raises:
        ValueError: a dynamic physical extent, an operator without a flat form, or a window that is not contiguous.
    """
    if function.body is None or not is_incore_type(function.func_type) or not _has_work(function):
        return function
    lowering = _Flattener(count_reads(function), set(function.params))
    flat = lowering.visit_function(function)
    return with_body(flat, drop_unread(flat, lowering.reloaded))


def _has_work(function: Function) -> bool:
    for stmt in iter_stmts(function.body):
        for var in defined_vars(stmt):
            if isinstance(var.type, TileType) and len(var.type.shape) > 2:
                return True
        call = stmt.value if type(stmt) is AssignStmt else stmt.expr if type(stmt) is EvalStmt else None
        if isinstance(call, Call) and (
            (call.op.name == "tile.transpose" and len(call.args) == 3)
            or (call.op.name == "tile.store" and len(call.args) == 3 and len(call.args[2].type.shape) > 2)
        ):
            return True
    return False


class _Flattener(IRMutator):
    """Rewrites in program order; definitions get flat types through :meth:`visit_type`."""

    def __init__(self, reads, params: set[Var]) -> None:
        super().__init__()
        self.reads = reads
        self._params = params
        #: Whole loads that were replaced by one load per batch.
        self.reloaded: set[Var] = set()
        self.pending: list[Stmt] = []
        self._batch = BatchLowering(self)
        self._consumer: dict[Var, AssignStmt] = {}
        self._definitions: dict[Var, Expr] = {}
        self._skip: set[int] = set()

    def visit_type(self, kind: Type) -> Type:
        kind = super().visit_type(kind)
        return flat_type(kind) if isinstance(kind, TileType) and len(kind.shape) > 2 else kind

    def definition(self, var: Var) -> Expr | None:
        """The original value of an original variable."""
        return self._definitions.get(var)

    def note_reloaded(self, *variables: Expr) -> None:
        """Whole operands that are no longer needed once nothing else reads them."""
        for value in variables:
            while isinstance(value, Var):
                self.reloaded.add(self.var_map.get(value, value))  # type: ignore[arg-type]
                source = self._definitions.get(value)
                value = source.args[0] if isinstance(source, Call) and source.op.name == "tile.transpose_view" else None

    # -- statements ---------------------------------------------------------------------------------------------

    def visit_seq_stmts(self, stmt: Stmt) -> Stmt:
        return self._list(stmt)

    def visit_stmt(self, stmt: Stmt) -> Stmt:
        if type(stmt) in (AssignStmt, EvalStmt) and not self._inside_list:
            return self._list(stmt)
        return super().visit_stmt(stmt)

    _inside_list = False

    def _list(self, body: Stmt) -> Stmt:
        outer, self.pending = self.pending, []
        old = flatten_to_stmts(body)
        for stmt in old:  # the one statement that reads a batched product, when it follows in this list
            if type(stmt) is AssignStmt and isinstance(stmt.value, Call) and stmt.value.op.name == "tile.store":
                if isinstance(stmt.value.args[0], Var):
                    self._consumer[stmt.value.args[0]] = stmt
        new: list[Stmt] = []
        for stmt in old:
            if id(stmt) in self._skip:
                continue
            nested, self._inside_list = self._inside_list, type(stmt) in (AssignStmt, EvalStmt)
            result = self._statement(stmt)
            self._inside_list = nested
            new.extend(self.pending)
            self.pending = []
            if result is not None:
                new.append(result)
        self.pending = outer
        if len(new) == len(old) and all(a is b for a, b in zip(new, old)):
            return body
        return seq(new, body.span)

    def _statement(self, stmt: Stmt) -> Stmt | None:
        if type(stmt) is AssignStmt:
            self._definitions[stmt.var] = stmt.value
        if type(stmt) is AssignStmt and isinstance(stmt.value, Call):
            call = stmt.value
            if call.op.name in ("tile.batch_matmul", "tile.batch_matmul_acc"):
                store = self._consumer.get(stmt.var) if self.reads[stmt.var] == 1 else None
                if self._batch.lower(stmt, store):
                    self._skip.add(id(store))
                return None
            if call.op.name == "tile.transpose" and len(call.args) == 3:
                return self._transpose(stmt)
            if call.op.name == "tile.load" and len(call.type.shape) > 2:
                return self._load(stmt)
        new = super().visit_stmt(stmt)
        if new is not stmt and type(new) is AssignStmt and new.var in self._params:
            # A store that rebinds a parameter's name: the new version gets a variable of its own.
            new = replace(new, var=replace(new.var))
            self.var_map[stmt.var] = new.var
        return new

    def visit_assign_stmt(self, stmt: AssignStmt) -> Stmt:
        value = self.visit_expr(stmt.value)
        if value is stmt.value or not isinstance(value, Call) or not isinstance(value.type, TileType):
            return self._rebuild(stmt, value=value, var=self.visit_def(stmt.var))
        kind = value.type
        if stmt.var.type.memref is not None and kind.memref is None:
            kind = replace(kind, memref=self.visit_expr(stmt.var.type.memref))
        var = self.var_map[stmt.var] = Var(stmt.var.name_hint, kind, stmt.var.span)
        return replace(stmt, var=var, value=value)

    # -- calls --------------------------------------------------------------------------------------------------

    def visit_call(self, call: Call) -> Expr:
        if isinstance(call.op, GlobalVar) or not call.op.name.startswith("tile."):
            return super().visit_call(call)
        name = call.op.name
        nd = any(isinstance(a.type, TileType) and len(a.type.shape) > 2 for a in call.args) or (
            isinstance(call.type, TileType) and len(call.type.shape) > 2
        )
        if name == "tile.store":
            return self._store(call)
        if not nd:
            return super().visit_call(call)
        self._check(call)
        if name == "tile.assemble":
            return self._assemble(call)
        args = [self.visit_expr(a) for a in call.args]
        index = _SHAPE_OPERANDS.get(name)
        if index is not None and isinstance(args[index], MakeTuple) and len(args[index].elements) > 2:
            args[index] = MakeTuple(flat_shape(args[index].elements, call.span), args[index].span)
        return self._recreate(call, args)

    def _recreate(self, call: Call, args: list[Expr], kwargs: dict[str, Any] | None = None) -> Call:
        new = create_op_call(call.op.name, args, call.kwargs if kwargs is None else kwargs, call.span)
        kind = new.type
        if isinstance(kind, TileType) and isinstance(call.type, TileType) and kind.memory_space is None:
            kind = replace(kind, memory_space=call.type.memory_space)
        return replace(new, attrs=self.visit_attrs(call.attrs) or {}, type=kind)

    def _check(self, call: Call) -> None:
        name = call.op.name
        for value in (*call.args, call):
            if isinstance(value.type, TileType) and len(value.type.shape) > 2:
                flat_shape(value.type.shape, call.span)
        if name in _ELEMENT_ACCESS and len(call.args[0].type.shape) > 2:
            raise user_error(
                f"{name} on a tile of rank {len(call.args[0].type.shape)} cannot be flattened to 2D; reshape the tile "
                "to two axes first",
                span=call.span,
            )
        axis = call.kwargs.get("axis")
        if name in _ROW_REDUCTIONS and axis is not None and axis not in (-1, len(call.args[0].type.shape) - 1):
            raise user_error(
                f"{name} reduces axis {axis} of a rank-{len(call.args[0].type.shape)} tile; only the last axis can be "
                "flattened to 2D",
                span=call.span,
            )

    def _store(self, call: Call) -> Call:
        tile, offsets, tensor = (self.visit_expr(a) for a in call.args[:3])
        rank = len(call.args[2].type.shape)
        if rank <= 2:
            return super().visit_call(call)
        if len(call.args) > 3:
            return self._rebuild(call, args=(tile, offsets, tensor, *self._exprs(call.args[3:])))
        own = call.args[0].type.shape
        sizes = (*(const_index(1) for _ in range(rank - len(own))), *own)
        return self._recreate(call, [tile, offsets, tensor, MakeTuple(tuple(sizes), call.span)])

    def _assemble(self, call: Call) -> Call:
        target, source, offset = call.args
        shape = target.type.shape
        if len(source.type.shape) != len(shape) or len(offset.elements) != len(shape):
            raise user_error(
                f"tile.assemble into a rank-{len(shape)} tile needs a source and an offset of that rank, got a rank-"
                f"{len(source.type.shape)} source and {len(offset.elements)} offsets",
                span=call.span,
            )
        if not collapses(source.type.shape, shape):
            raise user_error(
                "tile.assemble: the written region of a flattened tile must be one contiguous row band; assemble whole "
                "inner axes or use a 2D tile",
                span=call.span,
            )
        offsets = collapse_offsets([self.visit_expr(e) for e in offset.elements], shape)
        return self._recreate(call, [self.visit_expr(target), self.visit_expr(source), MakeTuple(offsets, offset.span)])

    # -- loads --------------------------------------------------------------------------------------------------

    def _load(self, stmt: AssignStmt) -> Stmt:
        call = stmt.value
        flat_shape(call.type.shape, call.span)
        source = self.visit_expr(call.args[0])
        operands = [source, *(self.visit_expr(a) for a in call.args[1:])]
        self._batch.note_load(stmt.var, call, operands)
        name = stmt.var.name_hint
        value = self.emit_load(call, operands, name)
        var = Var(name, value.type, stmt.var.span)
        if stmt.var.type.memref is not None:
            var = replace(var, type=replace(value.type, memref=self.visit_expr(stmt.var.type.memref)))
        self.var_map[stmt.var] = var
        return replace(stmt, var=var, value=value)

    def emit_load(self, call: Call, operands: list[Expr], name: str) -> Call:
        """A flat load of an N-D window; loads to Mat read a 2D view of the source when the window is contiguous."""
        source, offsets, shape, valid = operands[:4]
        kind = source.type
        to_mat = call.type.memory_space is MemorySpace.Mat
        window = shape.elements
        if not to_mat or not isinstance(kind, TensorType) or not collapses(window, kind.shape) or _is_blocked(kind):
            return self._flat_window(call, operands)
        rows = scalars.index(1)
        for extent in kind.shape[:-1]:
            rows = scalars.mul(rows, extent)
        view = create_op_call(
            "tensor.view", [source, MakeTuple((rows, kind.shape[-1]))], {}, call.span
        )  # fmt: skip
        flat = self.let(f"{name}_view2d", view, call.span)
        args: list[Expr] = [
            flat,
            MakeTuple(collapse_offsets(offsets.elements, kind.shape)),
            MakeTuple(flat_shape(window, call.span)),
            MakeTuple(flat_valid(valid.elements)),
        ]
        new = create_op_call("tile.load", args, call.kwargs, call.span)
        return replace(new, attrs=call.attrs) if call.attrs else new

    def _flat_window(self, call: Call, operands: list[Expr]) -> Call:
        wide = create_op_call(call.op.name, operands, call.kwargs, call.span)
        return replace(wide, type=flat_type(wide.type), attrs=call.attrs)

    # -- transposes ---------------------------------------------------------------------------------------------

    def _transpose(self, stmt: AssignStmt) -> Stmt | None:
        call = stmt.value
        source = self.visit_expr(call.args[0])
        shape = call.args[0].type.shape
        axes = sorted(const_value(a) % len(shape) for a in call.args[1:3])
        if axes != [len(shape) - 2, len(shape) - 1]:
            raise user_error(
                f"only last-two-axes tile.transpose is supported, got axes {axes} of a rank-{len(shape)} tile",
                span=call.span,
            )
        space = source.type.memory_space or MemorySpace.Vec
        if len(shape) == 2:
            scratch = self.create("transpose_tmp", shape, source.type, space, call.span)
            value = self._recreate(call, [source, *call.args[1:3], scratch])
            return replace(stmt, value=value, var=self.visit_def(stmt.var))
        return self._transpose_pages(stmt, source, shape, space)

    def _transpose_pages(self, stmt: AssignStmt, source: Expr, shape: tuple, space: MemorySpace) -> Stmt:
        span = stmt.span
        flat_shape(shape, span)
        pages = scalars.product(shape[:-2]) or 1
        a, b = const_value(shape[-2]), const_value(shape[-1])
        pool = self.create("transpose_tmp_pool", (pages * a, b), source.type, space, span)
        result: Expr = self.create("transpose_out", (pages * b, a), source.type, space, span)
        for page in range(pages):
            page_in = self.slice(f"transpose_in_{page}", source, (a, b), (page * a, 0), span)
            scratch = self.slice(f"transpose_tmp_{page}", pool, (a, b), (page * a, 0), span)
            zero, one = const_index(0), const_index(1)
            turned = create_op_call("tile.transpose", [page_in, zero, one, scratch], {}, span)
            value = self.let(f"transpose_{page}", turned, span)
            offset = MakeTuple((const_index(page * b), const_index(0)))
            call = create_op_call("tile.assemble", [result, value, offset], {}, span)
            if page == pages - 1:
                var = Var(stmt.var.name_hint, call.type, stmt.var.span)
                self.var_map[stmt.var] = var
                return replace(stmt, var=var, value=call)
            result = self.let(f"transpose_out_{page}", call, span)
        raise AssertionError("a tile has at least one page")

    # -- building -----------------------------------------------------------------------------------------------

    def let(self, name: str, value: Expr, span: Span) -> Var:
        """Bind ``value`` before the current statement."""
        var = Var(name, value.type, span)
        self.pending.append(AssignStmt(var, value, span))
        return var

    def create(self, name: str, shape, like: TileType, space: MemorySpace, span: Span) -> Var:
        """A fresh tile before the current statement."""
        extents = MakeTuple(tuple(scalars.index(d) for d in shape))
        call = create_op_call("tile.create", [extents], {"dtype": like.dtype, "target_memory": space}, span)
        return self.let(name, call, span)

    def slice(self, name: str, source: Expr, shape, offsets, span: Span) -> Var:
        """A window of a flat tile before the current statement."""
        args = [source, MakeTuple(tuple(scalars.index(d) for d in shape)),
                MakeTuple(tuple(scalars.index(o) for o in offsets))]  # fmt: skip
        call = create_op_call("tile.slice", args, {}, span)
        if call.type.memory_space is None:
            call = replace(call, type=replace(call.type, memory_space=source.type.memory_space))
        return self.let(name, call, span)


def _is_blocked(kind: TensorType) -> bool:
    from pypto.ir.enums import TensorLayout

    return kind.tensor_view is not None and kind.tensor_view.layout is not TensorLayout.ND
