"""What the orchestration generator reads off a function before it prints: uses, trip counts, tracked tensors."""

from __future__ import annotations

import msgspec

from pypto.codegen.orchestration.names import ssa_version, strip_ssa
from pypto.codegen.pto.kernel import collect_vars_from_shape_expr
from pypto.ir import Expr, Function, ParamDirection, Var
from pypto.ir import stmt as S
from pypto.ir.expr import Call, ConstInt, Submit, TupleGetItemExpr
from pypto.ir.visitor import IRVisitor, attr_exprs


class TaskId(msgspec.Struct):
    """C++ value of a task id: a variable, or an array of them; ``guarded`` ids may be invalid."""

    text: str
    guarded: bool = True
    count: int = 0


def trip_count(stmt: S.ForStmt) -> int | None:
    """Number of iterations when the bounds are constant."""
    bounds = (stmt.start, stmt.stop, stmt.step)
    if not all(isinstance(b, ConstInt) for b in bounds):
        return None
    start, stop, step = (b.value for b in bounds)
    return max(0, -(-(stop - start) // step)) if step > 0 else None


def used_variables(function: Function) -> set[Var]:
    """Variables that some expression reads (definitions and types do not count)."""

    class Uses(IRVisitor):
        def __init__(self) -> None:
            self.found: set[Var] = set()

        def visit_var_like(self, var: Var) -> None:
            self.found.add(var)

        def visit_assign_stmt(self, stmt: S.AssignStmt) -> None:
            self.visit_expr(stmt.value)

        def visit_function(self, function: Function) -> None:
            self.visit_stmt(function.body)

        def visit_call(self, call: Call) -> None:
            for arg in call.args:
                self.visit_expr(arg)
            for value in attr_exprs(call.attrs):
                self.visit_expr(value)
            if call.op.name == "tensor.dim":
                for dim in call.args[0].type.shape:
                    self.visit_expr(dim)

        def visit_for_stmt(self, stmt: S.ForStmt) -> None:
            for expr in (stmt.start, stmt.stop, stmt.step, *(a.initValue for a in stmt.iter_args)):
                self.visit_expr(expr)
            self.visit_stmt(stmt.body)

        def visit_if_stmt(self, stmt: S.IfStmt) -> None:
            self.visit_expr(stmt.condition)
            self.visit_stmt(stmt.then_body)
            if stmt.else_body is not None:
                self.visit_stmt(stmt.else_body)

    uses = Uses()
    uses.visit_function(function)
    return uses.found


def overwritten_output(function: Function) -> S.AssignStmt | None:
    """A second binding of an Out parameter's name when nothing ever touches the parameter itself.

    The first value is lost for good then, and the second does not reach the caller either.
    """
    used = used_variables(function)
    pairs = zip(function.params, function.param_directions)
    lost = {strip_ssa(p.name_hint) for p, d in pairs if d is not ParamDirection.In and p not in used}

    class Bindings(IRVisitor):
        def __init__(self) -> None:
            self.found: S.AssignStmt | None = None

        def visit_assign_stmt(self, stmt: S.AssignStmt) -> None:
            name = stmt.var.name_hint
            if strip_ssa(name) in lost and ssa_version(name) > 1:
                self.found = stmt

    bindings = Bindings()
    bindings.visit_stmt(function.body)
    return bindings.found


def tracked_tensors(function: Function) -> set[Var]:
    """Tensors whose producing task a derived dependency names, followed back through loops, branches and tuples."""

    class Search(IRVisitor):
        def __init__(self) -> None:
            self.tracked: set[Var] = set()
            self.links: dict[Var, list[Expr]] = {}

        def visit_call(self, call: Call) -> None:
            self.tracked.update(call.attrs.get("compiler_manual_dep_edges", ()))

        def visit_submit(self, submit: Submit) -> None:
            self.tracked.update(submit.attrs.get("compiler_manual_dep_edges", ()))

        def visit_assign_stmt(self, stmt: S.AssignStmt) -> None:
            if isinstance(stmt.value, (Var, TupleGetItemExpr)):
                source = stmt.value.tuple if isinstance(stmt.value, TupleGetItemExpr) else stmt.value
                self.links.setdefault(stmt.var, []).append(source)
            super().visit_assign_stmt(stmt)

        def visit_for_stmt(self, stmt: S.ForStmt) -> None:
            self._yielded(stmt.body, stmt.return_vars)
            super().visit_for_stmt(stmt)

        def visit_if_stmt(self, stmt: S.IfStmt) -> None:
            for body in (stmt.then_body, stmt.else_body):
                self._yielded(body, stmt.return_vars)
            super().visit_if_stmt(stmt)

        def _yielded(self, body: S.Stmt | None, results: tuple[Var, ...]) -> None:
            stmts = S.flatten_to_stmts(body)
            while len(stmts) == 1 and isinstance(stmts[0], S.RuntimeScopeStmt):
                stmts = S.flatten_to_stmts(stmts[0].body)
            if stmts and isinstance(stmts[-1], S.YieldStmt):
                for var, value in zip(results, stmts[-1].value):
                    self.links.setdefault(var, []).append(value)

    search = Search()
    search.visit_function(function)
    pending = list(search.tracked)
    while pending:
        for source in search.links.get(pending.pop(), ()):
            if isinstance(source, Var) and source not in search.tracked:
                search.tracked.add(source)
                pending.append(source)
    return search.tracked


def variables_of(expr: Expr) -> list[Var]:
    """Variables of a scalar expression."""
    return collect_vars_from_shape_expr(expr)
