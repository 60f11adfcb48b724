"""InferTileMemorySpace: every tile gets a memory space, and operands move to where their operator wants them."""

from __future__ import annotations

from typing import Any

from pypto.errors import internal_check_span
from pypto.ir.enums import MemorySpace, TileLayout, is_incore_type
from pypto.ir.expr import Call, Expr, GlobalVar, IterArg, Var
from pypto.ir.node import replace
from pypto.ir.program import Function, Program
from pypto.ir.stmt import AssignStmt, EvalStmt, ForStmt, IfStmt, ScopeStmt, Stmt, WhileStmt, flatten_to_stmts, seq
from pypto.ir.types import TileType
from pypto.ir.visitor import IRMutator
from pypto.ops.registry import create_op_call, find_op
from pypto.passes.lib.op_facts import TILE_VIEWS
from pypto.passes.lib.walk import iter_calls, iter_stmts, map_functions, yielded
from pypto.passes.pass_ import program_pass
from pypto.passes.properties import IRProperty as P
from pypto.passes.tile.conversions.registry import MAT_BRIDGE
from pypto.passes.tile.mat_residency import keep_operands_resident

_FORM = (P.SSAForm, P.IncoreTileOps, P.SplitIncoreOrch, P.NormalizedStmtStructure)
_RETARGETABLE = frozenset(("tile.load", "tile.create"))
Spaces = dict[Var, MemorySpace]


@program_pass(
    "InferTileMemorySpace",
    required=_FORM,
    produced=(P.SSAForm, P.TileMemoryInferred, P.NormalizedStmtStructure, P.AivSplitValid, P.AccToGmStoreValid),
    invalidated=(P.AivSplitValid,),
)
def infer_tile_memory_space(program: Program) -> Program:
    """Resolve spaces, insert moves before consumers, give types the views of their spaces; keep operands resident."""
    program = keep_operands_resident(map_functions(program, _infer))
    return map_functions(program, _without_marks)


def _infer(function: Function) -> Function:
    if function.body is None or not is_incore_type(function.func_type):
        return function
    for param in function.params:
        internal_check_span(
            not isinstance(param.type, TileType),
            f"parameter '{param.name_hint}' of InCore function '{function.name}' is a tile; kernels take tensors",
            param.span,
        )
    spaces = _Resolution(function).spaces
    return replace_body(function, _Placement(spaces).body(function.body))


def _without_marks(function: Function) -> Function:
    """The function without the marks of generated loads."""
    if function.body is None or not any(MAT_BRIDGE in c.attrs for _, c in iter_calls(function.body)):
        return function
    return replace_body(function, _Unmark().visit_stmt(function.body))


class _Unmark(IRMutator):
    def visit_call(self, call: Call) -> Expr:
        if MAT_BRIDGE not in call.attrs:
            return call
        return replace(call, attrs={k: v for k, v in call.attrs.items() if k != MAT_BRIDGE})


def replace_body(function: Function, body: Stmt) -> Function:
    """The function with another body; the same object when the body is the same."""
    return function if body is function.body else replace(function, body=body)


def _is_tile(value: Expr) -> bool:
    return isinstance(value.type, TileType)


def _allowed(call: Call) -> tuple[tuple[MemorySpace, ...], ...]:
    """Allowed spaces per operand of an operator call, ``()`` for unconstrained ones."""
    if isinstance(call.op, GlobalVar):
        return ()
    definition = find_op(call.op.name)
    return definition.memory.inputs if definition is not None and definition.memory is not None else ()


def _first_tile(call: Call) -> Expr | None:
    return next((a for a in call.args if isinstance(a, Var) and _is_tile(a)), None)


def _inherits(call: Call) -> bool:
    definition = find_op(call.op.name)
    return definition is not None and definition.memory is not None and definition.memory.output == "inherit_from_input"


class _Resolution:
    """Demands and the space of every tile variable."""

    def __init__(self, function: Function) -> None:
        self.spaces: Spaces = {}
        self._forced: Spaces = {}
        self._demand = self._demands(function)
        self._values: dict[Var, Expr] = {
            s.var: s.value for s in iter_stmts(function.body) if type(s) is AssignStmt and _is_tile(s.var)
        }
        self._body(function.body)

    # -- demands ------------------------------------------------------------------------------------------------

    def _demands(self, function: Function) -> Spaces:
        """First allowed space of each constrained operand, handed back through operators that keep the space."""
        demand: Spaces = {}

        def want(value: Expr, space: MemorySpace) -> None:
            if isinstance(value, Var) and _is_tile(value) and demand.get(value, MemorySpace.Vec) is MemorySpace.Vec:
                demand[value] = space

        for stmt in reversed(list(iter_stmts(function.body))):
            call = stmt.value if type(stmt) is AssignStmt else stmt.expr if type(stmt) is EvalStmt else None
            if type(stmt) is AssignStmt and isinstance(call, Var) and stmt.var in demand:
                want(call, demand[stmt.var])
            if not isinstance(call, Call) or isinstance(call.op, GlobalVar):
                continue
            for arg, spaces in zip(call.args, _allowed(call)):
                if spaces:
                    want(arg, spaces[0])
            if type(stmt) is AssignStmt and stmt.var in demand and _inherits(call):
                source = _first_tile(call)
                if source is not None:
                    want(source, demand[stmt.var])
        return demand

    # -- spaces -------------------------------------------------------------------------------------------------

    def _body(self, body: Stmt | None) -> None:
        for stmt in flatten_to_stmts(body):
            kind = type(stmt)
            if kind is AssignStmt:
                if _is_tile(stmt.var):
                    self.spaces[stmt.var] = self._of(stmt.value, stmt.var)
            elif kind is IfStmt:
                self._body(stmt.then_body)
                self._body(stmt.else_body)
                values = zip(stmt.return_vars, yielded(stmt.then_body), yielded(stmt.else_body))
                for var, a, b in values:
                    if _is_tile(var):
                        self.spaces[var] = self.spaces.get(a) or self.spaces.get(b) or self._own(var)
            elif kind is ForStmt or kind is WhileStmt:
                self._loop(stmt)
            elif isinstance(stmt, ScopeStmt):
                self._body(stmt.body)

    def _loop(self, stmt: ForStmt | WhileStmt) -> None:
        for arg in stmt.iter_args:
            if _is_tile(arg):
                self.spaces[arg] = self.spaces.get(arg.initValue) or self._own(arg)
        self._body(stmt.body)
        again = False
        for arg, result, value in zip(stmt.iter_args, stmt.return_vars, yielded(stmt.body)):
            if not _is_tile(arg):
                continue
            space = self.spaces.get(value) or self.spaces[arg]
            if space is not self.spaces[arg]:
                again = True
                self.spaces[arg] = space
                self._force(arg.initValue, space)
            self.spaces[result] = space
        if again:
            self._body(stmt.body)

    def _force(self, value: Expr, space: MemorySpace) -> None:
        """A freshly created buffer that starts a carry is created where the carry lives."""
        while isinstance(value, Var):
            made = self._values.get(value)
            if isinstance(made, Call) and made.op.name == "tile.create":
                self.spaces[value] = space
                return
            if isinstance(made, Call) and made.op.name in TILE_VIEWS:
                self.spaces[value] = space
                value = made.args[0]
            elif isinstance(made, Var):
                self.spaces[value] = space
                value = made
            else:
                return

    def _own(self, var: Var) -> MemorySpace:
        return var.type.memory_space or MemorySpace.Vec

    def _of(self, value: Expr, var: Var) -> MemorySpace:
        if isinstance(value, Var):
            return self.spaces.get(value) or self._own(var)
        if not isinstance(value, Call) or isinstance(value.op, GlobalVar):
            return self._own(var)
        explicit = value.kwargs.get("target_memory")
        if explicit is not None:
            return explicit
        definition = find_op(value.op.name)
        output = definition.memory.output if definition is not None and definition.memory is not None else None
        if value.op.name in _RETARGETABLE:
            wanted = self._demand.get(var)
            if wanted in (MemorySpace.Vec, MemorySpace.Mat):
                return wanted
            source = _first_tile(value)
            return (self.spaces.get(source) if source is not None else None) or MemorySpace.Vec
        if isinstance(output, MemorySpace):
            return output
        if output == "inherit_from_input":
            source = _first_tile(value)
            return (self.spaces.get(source) if source is not None else None) or MemorySpace.Vec
        return self._own(var)


class _Placement(IRMutator):
    """Rewrites a body: moves before consumers, types with their spaces."""

    def __init__(self, spaces: Spaces) -> None:
        super().__init__()
        self._spaces = spaces
        self._new_space: Spaces = {}
        self._pending: list[Stmt] = []
        self._moved: dict[tuple[Var, MemorySpace], Var] = {}

    def body(self, body: Stmt) -> Stmt:
        pending, self._pending = self._pending, []
        moved, self._moved = self._moved, {}  # a move is visible in its own sequence only
        old = flatten_to_stmts(body)
        new: list[Stmt] = []
        for stmt in old:
            result = self.visit_stmt(stmt)
            new.extend(self._pending)
            self._pending = []
            new.append(result)
        self._pending, self._moved = pending, moved
        if len(new) == len(old) and all(a is b for a, b in zip(new, old)):
            return body
        return seq(new, body.span)

    visit_seq_stmts = body

    # -- calls --------------------------------------------------------------------------------------------------

    def visit_call(self, call: Call) -> Expr:
        if isinstance(call.op, GlobalVar):
            return super().visit_call(call)
        before = [self.visit_expr(a) for a in call.args]
        args = list(before)
        for index, spaces in enumerate(_allowed(call)):
            if index < len(args) and spaces and _is_tile(args[index]):
                if self._space(args[index]) not in spaces:
                    args[index] = self._move(args[index], spaces[0])
        kwargs = self._kwargs(call)
        same = all(a is b for a, b in zip(args, call.args))
        if same and kwargs is call.kwargs:
            return call
        if (same and kwargs is not call.kwargs) or any(_is_tile(a) for a in args):
            new = create_op_call(call.op.name, args, kwargs, call.span)
            kind = _keep_declared(new.type, call.type)
            attrs = _follow_moves(self.visit_attrs(call.attrs) or {}, before, args)
            return replace(new, attrs=attrs, type=kind)
        return replace(call, args=tuple(args), kwargs=kwargs, attrs=self.visit_attrs(call.attrs) or {})

    def _kwargs(self, call: Call) -> dict[str, Any]:
        """Retargetable producers say where they put their tile."""
        target = self._assigned
        if target is None or call.op.name not in _RETARGETABLE:
            return call.kwargs
        space = self._spaces.get(target)
        if space is None or call.kwargs.get("target_memory") is space:
            return call.kwargs
        return {**call.kwargs, "target_memory": space}

    _assigned: Var | None = None

    def _space(self, value: Expr) -> MemorySpace:
        if value in self._new_space:
            return self._new_space[value]
        return self._spaces.get(value) or value.type.memory_space or MemorySpace.Vec

    def _move(self, value: Var, space: MemorySpace) -> Var:
        found = self._moved.get((value, space))
        if found is not None:
            return found
        options: dict[str, Any] = {"target_memory": space}
        if space is MemorySpace.Vec and self._space(value) is MemorySpace.Acc:
            # Accumulators leave the cube core as plain rows; a move from elsewhere keeps the layout.
            options |= {"blayout": TileLayout.row_major, "slayout": TileLayout.none_box}
        move = create_op_call("tile.move", [value], options, value.span)
        new = Var(f"{value.name_hint}_{space.name}", move.type, value.span)
        self._pending.append(AssignStmt(new, move, value.span))
        self._moved[(value, space)] = new
        self._new_space[new] = space
        return new

    # -- definitions --------------------------------------------------------------------------------------------

    def visit_assign_stmt(self, stmt: AssignStmt) -> Stmt:
        self._assigned = stmt.var
        value = self.visit_expr(stmt.value)
        self._assigned = None
        var = stmt.var
        if not _is_tile(var):
            return self._rebuild(stmt, value=value, var=self.visit_def(var))
        space = self._spaces.get(var, MemorySpace.Vec)
        kind = var.type if value is stmt.value else _keep_declared(value.type, var.type)
        kind = _in_space(kind, space)
        if isinstance(value, Call) and isinstance(value.type, TileType) and value.type.memory_space is not space:
            value = replace(value, type=_in_space(value.type, space))
        if kind is var.type or (type(kind) is type(var.type) and kind == var.type and value is stmt.value):
            return stmt if value is stmt.value else replace(stmt, value=value)
        new = self.var_map[var] = Var(var.name_hint, kind, var.span)
        self._new_space[new] = space
        return replace(stmt, value=value, var=new)

    def visit_iter_args(self, iter_args) -> tuple:
        result = []
        for arg in iter_args:
            init = self.visit_expr(arg.initValue)
            kind = arg.type
            if _is_tile(arg):
                space = self._spaces.get(arg, MemorySpace.Vec)
                if _is_tile(init) and isinstance(init, Var) and self._space(init) is not space:
                    init = self._move(init, space)
                kind = _in_space(_keep_declared(init.type, arg.type), space)
            if init is arg.initValue and (kind is arg.type or kind == arg.type):
                result.append(arg)
                continue
            new = self.var_map[arg] = IterArg(arg.name_hint, kind, init, arg.span)
            result.append(new)
        return tuple(result)

    def visit_for_stmt(self, stmt: ForStmt) -> Stmt:
        bounds = {name: self.visit_expr(getattr(stmt, name)) for name in ("start", "stop", "step")}
        iter_args = self.visit_iter_args(stmt.iter_args)
        return self._finish_loop(stmt, iter_args, **bounds, attrs=self.visit_attrs(stmt.attrs))

    def visit_while_stmt(self, stmt: WhileStmt) -> Stmt:
        iter_args = self.visit_iter_args(stmt.iter_args)
        return self._finish_loop(stmt, iter_args, condition=self.visit_expr(stmt.condition))

    def _finish_loop(self, stmt, iter_args: tuple, **fields) -> Stmt:
        body = self.body(stmt.body)
        results = tuple(self._result(var, arg) for var, arg in zip(stmt.return_vars, iter_args))
        return self._rebuild(stmt, **fields, iter_args=iter_args, body=body, return_vars=results)

    def _result(self, var: Var, like: Expr) -> Var:
        if not _is_tile(var):
            return self.visit_def(var)
        kind = _in_space(_keep_declared(like.type, var.type), self._spaces.get(var, MemorySpace.Vec))
        if kind == var.type:
            return var
        new = self.var_map[var] = Var(var.name_hint, kind, var.span)
        return new

    def visit_if_stmt(self, stmt: IfStmt) -> Stmt:
        condition = self.visit_expr(stmt.condition)
        then_body = self.body(stmt.then_body)
        else_body = None if stmt.else_body is None else self.body(stmt.else_body)
        values = yielded(then_body)
        results = tuple(
            self._result(var, values[i]) if i < len(values) else self.visit_def(var)
            for i, var in enumerate(stmt.return_vars)
        )
        return self._rebuild(stmt, condition=condition, then_body=then_body, else_body=else_body, return_vars=results)

    def _scope(self, stmt: ScopeStmt, **fields: Any) -> Stmt:
        return self._rebuild(stmt, **fields, attrs=self.visit_attrs(stmt.attrs), body=self.body(stmt.body))


def _follow_moves(attrs: dict[str, Any], before: list[Expr], after: list[Expr]) -> dict[str, Any]:
    """Attributes whose lists of operands name the moved tiles; an operand moved to two spaces becomes both."""
    moved: dict[Expr, list[Expr]] = {}
    for old, new in zip(before, after):
        if old is not new and not any(new is known for known in moved.get(old, ())):
            moved.setdefault(old, []).append(new)
    if not moved:
        return attrs
    result = dict(attrs)
    for key, value in attrs.items():
        if isinstance(value, (list, tuple)) and any(item in moved for item in value if isinstance(item, Var)):
            items = [moved.get(item, [item]) if isinstance(item, Var) else [item] for item in value]
            result[key] = type(value)(new for group in items for new in group)
    return result


def _keep_declared(new, old):
    """The new type with the allocation that the old one declares."""
    if isinstance(new, TileType) and isinstance(old, TileType) and old.memref is not None and new.memref is None:
        return replace(new, memref=old.memref, memory_space=new.memory_space or old.memory_space)
    return new


def _in_space(kind, space: MemorySpace):
    """A tile type in ``space``; the view is that space's implicit one when the space changes."""
    if not isinstance(kind, TileType) or kind.memory_space is space:
        return kind
    view = kind.tile_view
    if view is not None and view.valid_shape:
        from pypto.ir.types import implicit_tile_view

        view = replace(implicit_tile_view(kind.shape, space), valid_shape=view.valid_shape, pad=view.pad)
    else:
        view = None
    return replace(kind, tile_view=view, memory_space=space)
