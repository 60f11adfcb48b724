"""MaterializeSemanticAliases: give loop carries and if results one buffer, as the meaning of the program requires."""

from __future__ import annotations

from pypto.ir.expr import Call, Expr, Var
from pypto.ir.memref import MemRef
from pypto.ir.program import Function
from pypto.ir.stmt import AssignStmt, ForStmt, IfStmt, Stmt, WhileStmt
from pypto.ir.types import TileType
from pypto.passes.context import MemoryPlanner, active_memory_planner, backend_handler
from pypto.passes.lib.op_facts import VIEWS, may_share
from pypto.passes.lib.walk import yielded
from pypto.passes.memory.placement import ScratchAllocator, allocations, place, rebase
from pypto.passes.memory.storage import Definition, TileStorage, exclusive, holds_tiles, memref_of
from pypto.passes.memory.yield_moves import reconcile_yields, same_location
from pypto.passes.pass_ import function_pass
from pypto.passes.properties import IRProperty as P


class _Aliases:
    """Pushes the buffer of a carry or if result back onto the producers of the yielded values."""

    def __init__(self, function: Function) -> None:
        self.storage = TileStorage(function)
        self.memrefs: dict[Var, MemRef] = {}
        self._pinned = {a.pointer for a in allocations(function).values() if a.pinned}
        handler = backend_handler()
        self._relaxed_prelu = handler is not None and handler.name == "950"
        self._roots_on: dict[Var, set[Var]] = {}
        for root in self.storage.family:
            memref = memref_of(root)
            if memref is not None:
                self._roots_on.setdefault(memref.base_, set()).add(root)

    def run(self) -> None:
        for stmt in sorted([*self.storage.loops, *self.storage.branches], key=self.storage.point.__getitem__):
            if isinstance(stmt, IfStmt):
                if stmt.return_vars:
                    self._branch(stmt)
            else:
                self._loop(stmt)

    def current(self, var: Expr) -> MemRef | None:
        return self.memrefs.get(var) if var in self.memrefs else memref_of(var)

    def _loop(self, loop: ForStmt | WhileStmt) -> None:
        for arg, value in zip(loop.iter_args, yielded(loop.body)):
            target = self.current(arg)
            if target is not None and isinstance(value, Var):
                self._push(value, target, (*self.storage.around[loop], loop), self.storage.end[loop])

    def _branch(self, branch: IfStmt) -> None:
        arms = zip(branch.return_vars, yielded(branch.then_body), yielded(branch.else_body))
        for result, then_value, else_value in arms:
            target = self.current(result)
            if target is None:
                continue
            loops, end = self.storage.around[branch], self.storage.end[branch]
            agreed = [
                isinstance(value, Var) and self._push(value, target, loops, end) for value in (then_value, else_value)
            ]
            if agreed == [True, False] and isinstance(else_value, Var):
                # A fresh seed in one arm joins the accumulator that the other arm updates in place.
                other = self.current(else_value)
                owned = self.storage.owns_for_branch(branch, else_value)
                if other is not None and owned and self._push(then_value, other, loops, end):
                    self._set(result, other)

    def _push(self, value: Var, target: MemRef, loops: tuple[Stmt, ...], end: int) -> bool:
        """Try to make ``value`` live in ``target`` from its definition on; True when it does."""
        if same_location(self.current(value), target):
            return True
        storage = self.storage
        root = storage.root.get(value)
        if root is None or not isinstance(value.type, TileType) or self.current(value) is None:
            return False
        definition = storage.definition[root]
        stmt = definition.stmt
        if (
            stmt is None
            or definition.loops != loops
            or self.current(root).base_ in self._pinned
            or not same_location(self.current(value), self.current(root))
            or root.type.memory_space is not value.type.memory_space
            or _is_renaming(value, storage)
            or not self._dead_after(target, definition, end)
        ):
            return False
        if isinstance(stmt, AssignStmt):
            return self._push_call(root, stmt, target)
        if isinstance(stmt, IfStmt):
            self._set(root, target)
            slot = next(i for i, v in enumerate(stmt.return_vars) if v is root)
            for body in (stmt.then_body, stmt.else_body):
                arm = yielded(body)[slot]
                if isinstance(arm, Var):
                    self._push(arm, target, loops, storage.end[stmt])
            return True
        slot = next((i for i, v in enumerate(stmt.return_vars) if v is root), None)
        if slot is None:
            return False
        arg = stmt.iter_args[slot]
        if not isinstance(arg.initValue, Var) or not self._push(arg.initValue, target, loops, end):
            return False
        self._set(arg, target)
        self._set(root, target)
        return True

    def _push_call(self, root: Var, stmt: AssignStmt, target: MemRef) -> bool:
        call = stmt.value
        if not isinstance(call, Call):
            return False
        for index, arg in enumerate(call.args):
            memref = self.current(arg) if isinstance(arg, Var) else None
            if memref is not None and memref.base_ is target.base_:
                exact = same_location(memref, target)
                if not exact or not may_share(call, index, relaxed_prelu=self._relaxed_prelu):
                    return False
        self._set(root, target)
        return True

    def _dead_after(self, target: MemRef, definition: Definition, end: int) -> bool:
        """Nothing reads the buffer of ``target`` between a definition and ``end`` on a path through the definition."""
        for root in self._roots_on.get(target.base_, ()):
            for use in self.storage.uses.get(root, ()):
                if definition.point < use.point <= end and not exclusive(use.path, definition.path):
                    return False
        return True

    def _set(self, root: Var, target: MemRef) -> None:
        old = self.current(root)
        for var in self.storage.family[root]:
            memref = self.current(var)
            if memref is not None:
                self.memrefs[var] = rebase(memref, old, target, window=var in self.storage.windows)
        if old is not None:
            self._roots_on[old.base_].discard(root)
        self._roots_on.setdefault(target.base_, set()).add(root)


def _is_renaming(value: Var, storage: TileStorage) -> bool:
    """The yielded variable is a plain alias or a view of another tile rather than a produced value."""
    root = storage.root[value]
    if root is value:
        return False
    stmt = storage.definers.get(value)
    source = stmt.value if stmt is not None else None
    return isinstance(source, Var) or (isinstance(source, Call) and source.op.name in VIEWS)


@function_pass(
    "MaterializeSemanticAliases",
    required=(P.SplitIncoreOrch, P.IncoreTileOps, P.HasMemRefs, P.TileOps2D, P.NormalizedStmtStructure),
    produced=(P.NormalizedStmtStructure,),
)
def materialize_semantic_aliases(function: Function) -> Function:
    """Make initial value, carry, yielded value and result of every loop (and the arms of every if) share a buffer.

    What cannot share without changing the program is left for a move before the yield: MemoryReuse inserts it under
    the PYPTO planner, this pass under the others.
    """
    if not holds_tiles(function):
        return function
    aliases = _Aliases(function)
    if aliases.storage.loops or aliases.storage.branches:
        aliases.run()
        function = place(function, aliases.memrefs)
        if active_memory_planner() is not MemoryPlanner.PYPTO:
            scratch = ScratchAllocator(function)
            function = scratch.declare(reconcile_yields(function, scratch))
    return function
