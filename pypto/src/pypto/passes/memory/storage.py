"""Tiles of one function: who shares storage with whom, when each is written and read, on which path."""

from __future__ import annotations

from typing import NamedTuple

from pypto.ir.enums import is_orchestration_like
from pypto.ir.expr import Call, Expr, TupleGetItemExpr, Var
from pypto.ir.memref import MemRef
from pypto.ir.program import Function
from pypto.ir.stmt import AssignStmt, ForStmt, IfStmt, ScopeStmt, Stmt, WhileStmt, flatten_to_stmts
from pypto.ir.types import TileType
from pypto.passes.lib.op_facts import VIEWS, is_user_call, same_object_arg
from pypto.passes.lib.walk import direct_uses

Path = tuple[tuple[Stmt, int], ...]


class Definition(NamedTuple):
    """Where a storage root is written first."""

    point: int
    path: Path
    loops: tuple[Stmt, ...]
    #: The assignment, loop or if that defines it; None for parameters.
    stmt: Stmt | None


class Use(NamedTuple):
    """One read."""

    point: int
    path: Path
    loops: tuple[Stmt, ...]


class TileStorage:
    """Storage roots with definitions and uses, in one numbering of the statements.

    A *root* is the definition that a chain of aliases, views and in-place operators starts from; loop carries, loop
    results and if results start their own. All variables of a root are its *family*.

    Points number the statements in program order; a loop and an if also get a point at their end, where their
    results are defined.
    """

    def __init__(self, function: Function) -> None:
        self.function = function
        self.root: dict[Var, Var] = {}
        self.family: dict[Var, list[Var]] = {}
        self.definition: dict[Var, Definition] = {}
        self.uses: dict[Var, list[Use]] = {}
        self.end: dict[Stmt, int] = {}
        self.around: dict[Stmt, tuple[Stmt, ...]] = {}
        #: Loops and ifs in program order, parents first.
        self.loops: list[ForStmt | WhileStmt] = []
        self.branches: list[IfStmt] = []
        self.assignments: list[AssignStmt] = []
        self.definers: dict[Var, AssignStmt] = {}
        #: Point and path of every statement.
        self.point: dict[Stmt, int] = {}
        self.path_of: dict[Stmt, Path] = {}
        #: Variables that name a window of their root rather than all of it.
        self.windows: set[Var] = set()
        self._tuples: dict[Var, Definition] = {}
        self._point = 0
        for param in function.params:
            self._define(param, Definition(0, (), (), None))
        if function.body is not None:
            self._walk(function.body, (), ())

    # -- questions ----------------------------------------------------------------------------------------------

    def owns_for_loop(self, loop: ForStmt | WhileStmt, init: Expr) -> bool:
        """Nothing but this carry reads the storage of ``init`` once the loop has started."""
        root = self.root.get(init) if isinstance(init, Var) else None
        if root is None:
            return False
        sharers = sum(1 for a in loop.iter_args if self.root.get(a.initValue) is root)
        return sharers == 1 and self._free_after(root, self.point[loop], self.around[loop])

    def owns_for_branch(self, branch: IfStmt, value: Expr) -> bool:
        """Nothing reads the storage of ``value`` after the branch that yields it."""
        root = self.root.get(value) if isinstance(value, Var) else None
        return root is not None and self._free_after(root, self.end[branch], self.around[branch])

    def _free_after(self, root: Var, point: int, loops: tuple[Stmt, ...]) -> bool:
        uses = self.uses.get(root)
        last = uses[-1].point if uses else 0
        return last <= point and self.definition[root].loops[: len(loops)] == loops

    def live_until(self, root: Var) -> float:
        """Last point at which the value of a root is needed; loops around a use that leave out the definition count
        whole, and a value that is never read still occupies its statement."""
        definition = self.definition[root]
        last: float = definition.point + 0.5
        depth = len(definition.loops)
        for use in self.uses.get(root, ()):
            point = use.point if len(use.loops) <= depth else self.end[use.loops[depth]]
            last = max(last, point)
        if isinstance(definition.stmt, (ForStmt, WhileStmt)) and definition.stmt in definition.loops:
            last = max(last, self.end[definition.stmt])
        return last

    # -- construction -------------------------------------------------------------------------------------------

    def _define(self, var: Var, definition: Definition, source: Expr | None = None) -> None:
        if not isinstance(var.type, TileType):
            return
        root = self.root.get(source) if isinstance(source, Var) else None
        if root is None:
            root = var
            self.definition[var] = definition
            self.family[var] = []
        self.root[var] = root
        self.family[root].append(var)

    def _walk(self, body: Stmt, loops: tuple[Stmt, ...], path: Path) -> None:
        for stmt in flatten_to_stmts(body):
            self._point += 1
            point = self.point[stmt] = self._point
            self.path_of[stmt] = path
            for var in direct_uses(stmt):
                root = self.root.get(var)
                if root is not None:
                    self.uses.setdefault(root, []).append(Use(point, path, loops))
            kind = type(stmt)
            if kind is AssignStmt:
                definition = Definition(point, path, loops, stmt)
                value = stmt.value
                if isinstance(value, TupleGetItemExpr) and value.tuple in self._tuples:
                    # The item is written by the call that made the tuple.
                    definition = self._tuples[value.tuple]
                elif not isinstance(stmt.var.type, TileType):
                    self._tuples[stmt.var] = definition
                source = storage_source(value)
                self._define(stmt.var, definition, source)
                if source in self.windows or (isinstance(value, Call) and value.op.name in VIEWS):
                    self.windows.add(stmt.var)
                self.assignments.append(stmt)
                self.definers[stmt.var] = stmt
            elif kind is ForStmt or kind is WhileStmt:
                self.around[stmt] = loops
                self.loops.append(stmt)
                inside = (*loops, stmt)
                for arg in stmt.iter_args:
                    self._define(arg, Definition(point, path, inside, stmt))
                self._walk(stmt.body, inside, path)
                self._point += 1
                self.end[stmt] = self._point
                for var in stmt.return_vars:
                    self._define(var, Definition(self._point, path, loops, stmt))
            elif kind is IfStmt:
                self.around[stmt] = loops
                self.branches.append(stmt)
                self._walk(stmt.then_body, loops, (*path, (stmt, 0)))
                if stmt.else_body is not None:
                    self._walk(stmt.else_body, loops, (*path, (stmt, 1)))
                self._point += 1
                self.end[stmt] = self._point
                for var in stmt.return_vars:
                    self._define(var, Definition(self._point, path, loops, stmt))
            elif isinstance(stmt, ScopeStmt):
                self._walk(stmt.body, loops, path)


def storage_source(value: Expr) -> Expr | None:
    """The value whose storage an assigned value uses: alias, view source or in-place operand; None when fresh."""
    if isinstance(value, Var):
        return value
    if not isinstance(value, Call) or is_user_call(value):
        return None
    index = 0 if value.op.name in VIEWS else same_object_arg(value)
    return value.args[index] if index is not None and index < len(value.args) else None


def exclusive(a: Path, b: Path) -> bool:
    """Two paths lie in different arms of one if."""
    for (branch_a, arm_a), (branch_b, arm_b) in zip(a, b):
        if branch_a is not branch_b:
            return False
        if arm_a != arm_b:
            return True
    return False


def holds_tiles(function: Function) -> bool:
    """Device and group functions only: orchestration holds no tiles."""
    return function.body is not None and not is_orchestration_like(function.func_type)


def memref_of(var: Expr) -> MemRef | None:
    """The MemRef in the type of a tile variable."""
    return var.type.memref if isinstance(var, Var) and isinstance(var.type, TileType) else None
