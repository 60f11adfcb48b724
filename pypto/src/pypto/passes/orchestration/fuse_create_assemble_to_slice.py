"""FuseCreateAssembleToSlice: a buffer that is only assembled into a target becomes a window of that target."""

from __future__ import annotations

from pypto.ir.enums import AtomicType, FunctionType
from pypto.ir.expr import Call, Expr, MakeTuple, Var, const_index
from pypto.ir.node import make, replace
from pypto.ir.program import Function, Program
from pypto.ir.stmt import AssignStmt, ForStmt, SeqStmts, Stmt, WhileStmt, YieldStmt, flatten_to_stmts, seq
from pypto.ir.types import TensorType, Type
from pypto.ir.visitor import IRMutator
from pypto.ops.registry import op_ref
from pypto.passes.lib.lineage import Lineage
from pypto.passes.lib.tensor_roots import exact_roots
from pypto.passes.lib.walk import bodies, defined_vars, iter_calls, map_functions, used_vars, yielded
from pypto.passes.pass_ import program_pass
from pypto.passes.properties import IRProperty as P


def _named(stmt: Stmt, name: str) -> bool:
    return type(stmt) is AssignStmt and isinstance(stmt.value, Call) and stmt.value.op.name == name


def _is_atomic(call: Call) -> bool:
    return int(call.kwargs.get("atomic", AtomicType.None_)) != AtomicType.None_


class _Plan:
    """Which creates become slices of what, and which assembles disappear."""

    def __init__(self, function: Function, lineage: Lineage) -> None:
        self.slices: dict[Stmt, tuple[Var, tuple[Expr, ...]]] = {}
        self.dropped: set[Stmt] = set()
        roots = exact_roots(function, lineage)
        sources: dict[Var, list[Stmt]] = {}
        for stmt, call in iter_calls(function.body):
            if call.op.name == "tensor.assemble" and isinstance(call.args[1], Var):
                sources.setdefault(roots.get(call.args[1], call.args[1]), []).append(stmt)
        self._roots = roots
        self._scan(function.body, sources, set(function.params))

    def _scan(self, body: Stmt, sources: dict[Var, list[Stmt]], visible: set[Var]) -> None:
        stmts = flatten_to_stmts(body)
        here = set(visible)
        for position, stmt in enumerate(stmts):
            if _named(stmt, "tensor.create"):
                uses = sources.get(stmt.var, ())
                if len(uses) == 1 and any(uses[0] is s for s in stmts[position + 1 :]):
                    self._try(stmt, uses[0], here)
            inner = here | set(defined_vars(stmt)) if bodies(stmt) else here
            for nested in bodies(stmt):
                self._scan(nested, sources, inner)
            here.update(defined_vars(stmt))

    def _try(self, create: AssignStmt, assemble: Stmt, visible: set[Var]) -> None:
        call = assemble.value
        offsets = call.args[2].elements
        if _is_atomic(call) or type(assemble) is not AssignStmt or "init_value" in create.value.kwargs:
            return
        target = self._visible_name(call.args[0], visible)
        if target is None or any(v not in visible for offset in offsets for v in used_vars(offset)):
            return
        self.slices[create] = (target, offsets)
        self.dropped.add(assemble)

    def _visible_name(self, target: Expr, visible: set[Var]) -> Var | None:
        """A name of the target buffer that exists where the create stands."""
        if not isinstance(target, Var):
            return None
        if target in visible:
            return target
        root = self._roots.get(target)
        return next((v for v in visible if root is not None and self._roots.get(v) is root), None)


class _Fuser(IRMutator):
    def __init__(self, plan: _Plan) -> None:
        super().__init__()
        self._plan = plan

    def visit_type(self, kind: Type) -> Type:
        return kind

    def visit_seq_stmts(self, stmt: SeqStmts) -> Stmt:
        children = [self.visit_stmt(c) for c in stmt.stmts if c not in self._plan.dropped or self._drop(c)]
        same = len(children) == len(stmt.stmts) and all(a is b for a, b in zip(children, stmt.stmts))
        return stmt if same else seq(children, stmt.span)

    def _drop(self, stmt: AssignStmt) -> bool:
        self.var_map[stmt.var] = self.visit_expr(stmt.value.args[0])
        return False

    def visit_assign_stmt(self, stmt: AssignStmt) -> Stmt:
        found = self._plan.slices.get(stmt)
        if found is None:
            return super().visit_assign_stmt(stmt)
        target, offsets = found
        target = self.visit_expr(target)
        shape = stmt.var.type.shape
        padding = tuple(const_index(1) for _ in range(len(target.type.shape) - len(shape)))
        args = (target, MakeTuple((*padding, *shape)), MakeTuple(tuple(self.visit_expr(o) for o in offsets)))
        call = make(Call, op_ref("tensor.slice"), args, {}, {}, replace(stmt.var.type, memref=None), stmt.value.span)
        return replace(stmt, value=call)

    def visit_for_stmt(self, stmt: ForStmt) -> Stmt:
        return self._loop(stmt, super().visit_for_stmt)

    def visit_while_stmt(self, stmt: WhileStmt) -> Stmt:
        return self._loop(stmt, super().visit_while_stmt)

    def _loop(self, stmt: ForStmt | WhileStmt, visit) -> Stmt:
        """Rebuild a loop; tensor carries that the fusion turned into identities go away."""
        gone = [
            index
            for index, (arg, value) in enumerate(zip(stmt.iter_args, yielded(stmt.body)))
            if isinstance(arg.type, TensorType) and value is not arg and self._becomes(value, arg, stmt)
        ]
        if not gone:
            return visit(stmt)
        for index in gone:
            init = self.visit_expr(stmt.iter_args[index].initValue)
            self.var_map[stmt.iter_args[index]] = self.var_map[stmt.return_vars[index]] = init
        keep = [i for i in range(len(stmt.iter_args)) if i not in gone]
        return visit(
            replace(
                stmt,
                iter_args=tuple(stmt.iter_args[i] for i in keep),
                return_vars=tuple(stmt.return_vars[i] for i in keep),
                body=_without_slots(stmt.body, gone),
            )
        )

    def _becomes(self, value: Expr, arg: Var, loop: Stmt) -> bool:
        """The yielded value names ``arg`` itself once the planned assembles are gone."""
        defined = {v: s for s in flatten_to_stmts(loop.body) for v in defined_vars(s)}
        while isinstance(value, Var) and value is not arg:
            stmt = defined.get(value)
            if stmt in self._plan.dropped:
                value = stmt.value.args[0]
            elif isinstance(stmt, (ForStmt, WhileStmt)):
                slot = next(i for i, v in enumerate(stmt.return_vars) if v is value)
                inner = stmt.iter_args[slot]
                produced = yielded(stmt.body)[slot]
                if produced is not inner and not self._becomes(produced, inner, stmt):
                    return False
                value = inner.initValue
            else:
                return False
        return value is arg


def _without_slots(body: Stmt, gone: list[int]) -> Stmt:
    stmts = flatten_to_stmts(body)
    last = stmts[-1]
    if not isinstance(last, YieldStmt):
        inner = replace(last, body=_without_slots(last.body, gone))
        return seq([*stmts[:-1], inner], body.span)
    values = tuple(v for i, v in enumerate(last.value) if i not in gone)
    return seq([*stmts[:-1], *([replace(last, value=values)] if values else [])], body.span)


@program_pass("FuseCreateAssembleToSlice", required=(P.SplitIncoreOrch,))
def fuse_create_assemble_to_slice(program: Program) -> Program:
    """Let tasks write straight into the window of the target instead of into a buffer that is assembled later."""
    lineage = Lineage(program)

    def fuse(function: Function) -> Function:
        if function.func_type is not FunctionType.Orchestration or function.body is None:
            return function
        if not any(call.op.name == "tensor.assemble" for _, call in iter_calls(function.body)):
            return function
        plan = _Plan(function, lineage)
        return _Fuser(plan).visit_function(function) if plan.slices else function

    return map_functions(program, fuse)
