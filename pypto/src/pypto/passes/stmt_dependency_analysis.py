"""Data dependencies between the statements of one sequence, and the hand-over rule that makes them complete."""

from __future__ import annotations

from pypto.errors import VerificationError
from pypto.ir.enums import ParamDirection
from pypto.ir.expr import Call, GlobalVar, Submit, Var
from pypto.ir.program import Function, Program
from pypto.ir.stmt import AssignStmt, ForStmt, IfStmt, ReturnStmt, ScopeStmt, Stmt, WhileStmt, flatten_to_stmts
from pypto.ir.types import DistributedTensorType
from pypto.passes.diagnostics import Diagnostic, DiagnosticSeverity
from pypto.passes.lib.walk import all_uses, defined_vars, direct_uses, iter_stmts


class StmtDependencyGraph:
    """Statements of a region and, for each, the earlier ones whose definitions it reads."""

    def __init__(self, stmts: list[Stmt], predecessors: dict[Stmt, list[Stmt]]) -> None:
        self.stmts = stmts
        self._predecessors = predecessors

    def get_predecessors(self, stmt: Stmt) -> list[Stmt]:
        """Direct predecessors in program order; ``KeyError`` for a statement outside of the region."""
        return list(self._predecessors[stmt])


def build_stmt_dependency_graph(region: Stmt, program: Program | None = None) -> StmtDependencyGraph:
    """Read-after-write dependencies between the statements directly in ``region``.

    A compound statement reads and defines whatever anything inside it reads and defines. Without in-place updates
    these are all dependencies, so with a ``program`` the hand-over rule is checked first.

    Args:
        region: a sequence; any other statement is a graph of one node.

    Raises:
        pypto.Error: see :func:`check_inout_use_discipline`.
    """
    if program is not None:
        check_inout_use_discipline(region, program)
    stmts = flatten_to_stmts(region)
    definer: dict[Var, Stmt] = {}
    predecessors: dict[Stmt, list[Stmt]] = {}
    for stmt in stmts:
        needed = {definer[v] for v in all_uses(stmt) if v in definer}
        predecessors[stmt] = [s for s in predecessors if s in needed]
        definer.update((v, stmt) for inner in iter_stmts(stmt) for v in defined_vars(inner))
    return StmtDependencyGraph(stmts, predecessors)


def check_inout_use_discipline(region: Stmt, program: Program) -> None:
    """Raise ``pypto.Error`` ("InOutUseDiscipline") when a tensor is read after a call took it as InOut or Out."""
    found = inout_violations(region, program)
    if found:
        raise VerificationError("\n".join(f"{d.rule_name}: {d.message}" for d in found), found)


def inout_violations(region: Stmt | None, program: Program, function: Function | None = None) -> list[Diagnostic]:
    """Reads of tensors that an earlier call of a function of ``program`` took as InOut or Out.

    Args:
        function: the function of the region, if it is its whole body: it may return its own parameters.
    """
    walk = _InOutUse(program, function)
    walk.body(region, {})
    return walk.found


class _InOutUse:
    """Walks in program order with the variables that a call consumed; assigning one again revives it."""

    def __init__(self, program: Program, function: Function | None) -> None:
        self.found: list[Diagnostic] = []
        self._program = program
        self._where = f" in function '{function.name}'" if function is not None else ""
        self._params = frozenset(function.params if function is not None else ())
        self._seen: set[tuple[Stmt, Var]] = set()

    def body(self, body: Stmt | None, consumed: dict[Var, str]) -> dict[Var, str]:
        for stmt in flatten_to_stmts(body):
            self._stmt(stmt, consumed)
        return consumed

    def _stmt(self, stmt: Stmt, consumed: dict[Var, str]) -> None:
        if consumed:
            for var in direct_uses(stmt):
                if var not in consumed or (type(stmt) is ReturnStmt and var in self._params):
                    continue
                if (stmt, var) not in self._seen:
                    self._seen.add((stmt, var))
                    message = (
                        f"'{var.name_hint}' is read{self._where} after it was passed as "
                        f"InOut/Out to '{consumed[var]}'; use the value that call returns"
                    )
                    self.found.append(Diagnostic(DiagnosticSeverity.Error, "InOutUseDiscipline", 1, message, stmt.span))
                del consumed[var]
        kind = type(stmt)
        if kind is IfStmt:
            other = self.body(stmt.else_body, dict(consumed))
            self.body(stmt.then_body, consumed)
            consumed.update(other)
        elif kind is ForStmt or kind is WhileStmt:
            for _ in range(2):  # the second time with what an earlier iteration consumed
                for arg in stmt.iter_args:
                    consumed.pop(arg, None)
                self.body(stmt.body, consumed)
        elif isinstance(stmt, ScopeStmt):
            self.body(stmt.body, consumed)
        elif kind is AssignStmt or hasattr(stmt, "expr"):
            value = stmt.value if kind is AssignStmt else stmt.expr
            target = stmt.var if kind is AssignStmt else None
            self._call(value, target, consumed)
            if target is not None:
                consumed.pop(target, None)

    def _call(self, value, target: Var | None, consumed: dict[Var, str]) -> None:
        if not isinstance(value, (Call, Submit)) or not isinstance(value.op, GlobalVar):
            return
        callee = self._program.get_function(value.op.name)
        if callee is None:
            return
        for arg, direction in zip(value.args, callee.param_directions):
            shared = isinstance(arg.type, DistributedTensorType)
            if direction is not ParamDirection.In and isinstance(arg, Var) and arg is not target and not shared:
                consumed[arg] = callee.name
