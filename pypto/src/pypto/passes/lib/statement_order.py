"""Order that the statements of one list must keep: data flow, memory, and exchanges between cores."""

from __future__ import annotations

from pypto.ir.enums import ArgEffect
from pypto.ir.expr import Call, Submit, Var
from pypto.ir.stmt import AssignStmt, ReturnStmt, Stmt, YieldStmt
from pypto.ir.types import TensorType, TileType
from pypto.passes.lib.op_facts import FREES, POPS, PUSHES, VIEWS, arg_effect, is_user_call, same_object_arg
from pypto.passes.lib.walk import all_uses, defined_vars, iter_calls, iter_stmts


class _Access:
    """What one statement reads and writes."""

    __slots__ = ("barrier", "crosses", "defines", "frees", "reads", "uses", "writes")

    def __init__(self) -> None:
        self.uses: set[Var] = set()
        self.defines: set[Var] = set()
        #: Memory roots read and written.
        self.reads: set[Var] = set()
        self.writes: set[Var] = set()
        self.frees: set[Var] = set()
        self.crosses = False
        self.barrier = False


class MemoryRoots:
    """Storage that a tile or tensor variable names, as far as one statement list shows it."""

    def __init__(self) -> None:
        self._root: dict[Var, Var] = {}

    def of(self, var: Var) -> Var:
        return self._root.get(var, var)

    def learn(self, stmt: Stmt) -> None:
        for inner in iter_stmts(stmt):
            if type(inner) is not AssignStmt or not isinstance(inner.var.type, (TensorType, TileType)):
                if hasattr(inner, "iter_args"):
                    for arg, result in zip(inner.iter_args, inner.return_vars):
                        if isinstance(arg.initValue, Var):
                            self._root[arg] = self._root[result] = self.of(arg.initValue)
                continue
            value = inner.value
            source = value if isinstance(value, Var) else None
            if isinstance(value, Call) and not is_user_call(value):
                index = 0 if value.op.name in VIEWS else same_object_arg(value)
                if index is not None and index < len(value.args) and isinstance(value.args[index], Var):
                    source = value.args[index]
            if source is not None:
                self._root[inner.var] = self.of(source)


def _access(stmt: Stmt, roots: MemoryRoots) -> _Access:
    access = _Access()
    access.uses = all_uses(stmt)
    for inner in iter_stmts(stmt):
        access.defines.update(defined_vars(inner))
    access.barrier = isinstance(stmt, (YieldStmt, ReturnStmt))
    for _, call in iter_calls(stmt):
        _call_access(call, access, roots)
    return access


def _call_access(call: Call | Submit, access: _Access, roots: MemoryRoots) -> None:
    name = call.op.name
    if name in PUSHES or name in POPS or name in FREES:
        access.crosses = True
        if name in FREES:
            access.frees.update(roots.of(a) for a in call.args if isinstance(a, Var))
        else:
            access.reads.update(roots.of(a) for a in call.args if isinstance(a, Var))
        return
    if is_user_call(call) or (name.startswith(("system.", "pld.", "prefetch.")) and name != "system.task_dummy"):
        access.barrier = True
        return
    in_place = same_object_arg(call)
    for index, arg in enumerate(call.args):
        if not isinstance(arg, Var) or not isinstance(arg.type, (TensorType, TileType)):
            continue
        root = roots.of(arg)
        effect = arg_effect(call, index)
        if effect is not ArgEffect.Write:
            access.reads.add(root)
        if effect is not ArgEffect.Read or index == in_place:
            access.writes.add(root)


def predecessors(stmts: list[Stmt]) -> list[set[int]]:
    """Per statement, the earlier statements of the list that must stay in front of it.

    Memory counts by root: a read and a write, or two writes, of one root keep their order. Exchanges between cores
    keep their order among themselves; a free stays behind everything that reads the popped tile; other system
    operators order everything.
    """
    roots = MemoryRoots()
    for stmt in stmts:
        roots.learn(stmt)
    accesses = [_access(stmt, roots) for stmt in stmts]
    definer: dict[Var, int] = {}
    readers: dict[Var, list[int]] = {}
    writers: dict[Var, list[int]] = {}
    users: dict[Var, list[int]] = {}
    result: list[set[int]] = []
    last_crossing: int | None = None
    last_barrier: int | None = None
    for index, access in enumerate(accesses):
        before: set[int] = set()
        for var in access.uses:
            if var in definer:
                before.add(definer[var])
        for root in access.reads:
            before.update(writers.get(root, ()))
        for root in access.writes:
            before.update(readers.get(root, ()))
            before.update(writers.get(root, ()))
        for root in access.frees:
            before.update(users.get(root, ()))
        if access.crosses:
            if last_crossing is not None:
                before.add(last_crossing)
            last_crossing = index
        if access.barrier:
            before.update(range(index))
        if last_barrier is not None:
            before.add(last_barrier)
        if access.barrier:
            last_barrier = index
        for var in access.defines:
            definer[var] = index
        for var in access.uses:
            users.setdefault(roots.of(var), []).append(index)
        for root in access.reads:
            readers.setdefault(root, []).append(index)
        for root in access.writes:
            writers.setdefault(root, []).append(index)
        before.discard(index)
        result.append(before)
    return result
