"""Which variables a region assigns, and which are read after a compound statement, before SSA."""

from __future__ import annotations

from collections.abc import Callable, Container

from pypto.ir.expr import Var
from pypto.ir.stmt import (
    AssignStmt,
    ForStmt,
    IfStmt,
    RuntimeScopeStmt,
    ScopeStmt,
    SplitAivScopeStmt,
    Stmt,
    WhileStmt,
    flatten_to_stmts,
)
from pypto.passes.lib.walk import direct_uses

_EMPTY: frozenset[Var] = frozenset()


class Liveness:
    """Backward liveness of one function body; results are kept for compound statements only."""

    def __init__(self, body: Stmt) -> None:
        self._after: dict[int, frozenset[Var]] = {}
        self._assigned: dict[int, frozenset[Var]] = {}
        self._transparent: dict[int, frozenset[Var]] = {}
        self._reads: dict[int, set[Var]] = {}
        self._confined: list[tuple[frozenset[Var], Container[Var]]] = []
        self._root = body  # statement ids stay valid as long as the body lives
        self._list(body, set())

    def live_after(self, stmt: Stmt) -> Container[Var]:
        """Variables read after a compound statement, those a scope around it hides left out."""
        live = self._after.get(id(stmt), _EMPTY)
        for hidden, defined in self._confined:
            live = frozenset(v for v in live if v not in hidden or v in defined)
        return live

    def confine(self, scope: Stmt, defined: dict[Var, object]) -> Callable[[], None]:
        """Inside ``scope``, reads after it count only for variables defined before it; call the result to end."""
        after = self._after.get(id(scope), _EMPTY)
        inside = self.assigned(scope)
        hidden = frozenset(v for v in inside & after if v not in defined)
        self._confined.append((hidden, ()))
        return lambda: self._confined.pop() and None

    def assigned(self, stmt: Stmt | None) -> frozenset[Var]:
        """Variables assigned anywhere inside ``stmt``."""
        return self._assigned_in(stmt, self._assigned, through_scopes=True)

    def assigned_transparently(self, stmt: Stmt | None) -> frozenset[Var]:
        """Like :meth:`assigned`, not looking into scopes that keep their names."""
        return self._assigned_in(stmt, self._transparent, through_scopes=False)

    def _assigned_in(self, stmt: Stmt | None, cache: dict[int, frozenset[Var]], *, through_scopes: bool) -> frozenset:
        if stmt is None:
            return _EMPTY
        kind = type(stmt)
        if kind is AssignStmt:
            return frozenset((stmt.var,))
        found = cache.get(id(stmt))
        if found is not None:
            return found
        result: set[Var] = set()
        for child in flatten_to_stmts(stmt):
            if type(child) is AssignStmt:
                result.add(child.var)
            elif isinstance(child, IfStmt):
                result |= self._assigned_in(child.then_body, cache, through_scopes=through_scopes)
                result |= self._assigned_in(child.else_body, cache, through_scopes=through_scopes)
            elif isinstance(child, (ForStmt, WhileStmt)):
                result |= self._assigned_in(child.body, cache, through_scopes=through_scopes)
            elif isinstance(child, ScopeStmt):
                if through_scopes or isinstance(child, (RuntimeScopeStmt, SplitAivScopeStmt)):
                    result |= self._assigned_in(child.body, cache, through_scopes=through_scopes)
        frozen = cache[id(stmt)] = frozenset(result)
        return frozen

    def _list(self, body: Stmt | None, live: set[Var], record: bool = True) -> set[Var]:
        """Update ``live`` (in place) from after ``body`` to before it, noting it after compound statements."""
        for stmt in reversed(flatten_to_stmts(body)):
            kind = type(stmt)
            if kind is AssignStmt:
                live.discard(stmt.var)
                live.update(direct_uses(stmt))
                continue
            if record and isinstance(stmt, (IfStmt, ForStmt, WhileStmt, ScopeStmt)):
                self._after[id(stmt)] = frozenset(live)
            if isinstance(stmt, IfStmt):
                other = self._list(stmt.else_body, set(live), record)
                self._list(stmt.then_body, live, record)
                live |= other
            elif isinstance(stmt, (ForStmt, WhileStmt)):
                # Values may travel around the back edge, so the end of the body is followed by its own reads.
                live |= self._loop_reads(stmt)
                if record:
                    self._list(stmt.body, set(live))
            elif isinstance(stmt, ScopeStmt):
                self._list(stmt.body, live, record)
            live.update(direct_uses(stmt))
        return live

    def _loop_reads(self, loop: ForStmt | WhileStmt) -> set[Var]:
        """Variables that an iteration reads before assigning them."""
        found = self._reads.get(id(loop))
        if found is None:
            found = self._reads[id(loop)] = self._list(loop.body, set(), record=False)
            found.update(direct_uses(loop))
        return found
