"""LowerPipelineToSlots: under the PTOAS planner, rotate loads of a pipelined loop through the slots of one buffer."""

from __future__ import annotations

from pypto.ir.dtype import DataType
from pypto.ir.enums import MemorySpace
from pypto.ir.expr import Call, FloorMod, Var, _next_id, const_index, const_value
from pypto.ir.memref import MemRef
from pypto.ir.node import make, replace
from pypto.ir.program import Function
from pypto.ir.stmt import AssignStmt, ForStmt, IfStmt, ScopeStmt, SeqStmts, Stmt, WhileStmt, flatten_to_stmts, seq
from pypto.ir.types import MemRefType, PtrType, TileType
from pypto.passes.context import MemoryPlanner, active_memory_planner, backend_handler
from pypto.passes.lib.op_facts import VIEWS, is_user_call, same_object_arg
from pypto.passes.lib.rewrite import Retype, with_body
from pypto.passes.lib.scalars import int64, product
from pypto.passes.lib.sizes import shaped_bytes
from pypto.passes.lib.walk import iter_stmts, stmt_call, yielded
from pypto.passes.pass_ import function_pass
from pypto.passes.pipelining.replication import has_pipeline, sequential, stages_of
from pypto.passes.properties import IRProperty as P

_TILE_IR = (
    P.SSAForm, P.SplitIncoreOrch, P.IncoreTileOps, P.TileOps2D, P.TileMemoryInferred, P.NormalizedStmtStructure,
)  # fmt: skip
_SPACES = (MemorySpace.Vec, MemorySpace.Mat, MemorySpace.Acc)


class _Slots:
    def __init__(self, function: Function) -> None:
        self.types: dict[Var, TileType] = {}
        self._names: set[str] = set()
        self._used: dict[MemorySpace, int] = {}
        for stmt in iter_stmts(function.body):
            kind = stmt.var.type if type(stmt) is AssignStmt else None
            if isinstance(kind, TileType) and kind.memref is not None and kind.memref.is_pinned_:
                size = (shaped_bytes(kind) or 0) * kind.memref.slot_count_
                self._used[kind.memory_space] = self._used.get(kind.memory_space, 0) + size

    def rewrite(self, stmt: Stmt, declined: bool) -> Stmt:
        kind = type(stmt)
        if kind is SeqStmts:
            children = [self.rewrite(c, declined) for c in stmt.stmts]
            return stmt if all(a is b for a, b in zip(children, stmt.stmts)) else seq(children, stmt.span)
        if kind is IfStmt:
            then_body = self.rewrite(stmt.then_body, declined)
            else_body = None if stmt.else_body is None else self.rewrite(stmt.else_body, declined)
            if then_body is stmt.then_body and else_body is stmt.else_body:
                return stmt
            return replace(stmt, then_body=then_body, else_body=else_body)
        if kind is ForStmt and stages_of(stmt) > 1:
            if not declined and self._take(stmt):
                return sequential(stmt, body=self.rewrite(stmt.body, False))
            declined = True
        if kind is ForStmt or kind is WhileStmt or isinstance(stmt, ScopeStmt):
            body = self.rewrite(stmt.body, declined)
            return stmt if body is stmt.body else replace(stmt, body=body)
        return stmt

    def _take(self, loop: ForStmt) -> bool:
        """Bind the loads of a loop to slots; False when the loop must be replicated instead."""
        factor = stages_of(loop)
        start = const_value(loop.start)
        if not 2 <= factor <= 16 or const_value(loop.step) != 1 or start is None or start % factor:
            return False
        loads = [s for s in flatten_to_stmts(loop.body) if _is_load(s)]
        loads = [s for s in loads if s.var.type.memref is None]
        escaping = _escaping(loop)
        needed: dict[MemorySpace, int] = {}
        for stmt in loads:
            kind = stmt.var.type
            size = shaped_bytes(kind)
            if kind.memory_space not in _SPACES or size is None or product(kind.valid_shape) is None:
                return False
            if stmt.var in escaping:
                return False
            needed[kind.memory_space] = needed.get(kind.memory_space, 0) + size * factor
        handler = backend_handler()
        for space, size in needed.items():
            limit = handler.mem_size(space) if handler is not None else 0
            if limit and self._used.get(space, 0) + size > limit:
                return False
        for space, size in needed.items():
            self._used[space] = self._used.get(space, 0) + size
        for stmt in loads:
            self.types[stmt.var] = replace(stmt.var.type, memref=self._declaration(stmt.var, loop, factor))
        return True

    def _declaration(self, var: Var, loop: ForStmt, factor: int) -> MemRef:
        name, number = f"pipe_{var.name_hint}", 0
        while name in self._names:
            number += 1
            name = f"pipe_{var.name_hint}_{number}"
        self._names.add(name)
        slot = FloorMod(loop.loop_var, const_index(factor), DataType.INDEX)
        base = Var(name, PtrType.get(), var.span)
        return make(MemRef, name, MemRefType.get(), var.span, _next_id(), base, int64(0), 0, True, factor, slot)


def _is_load(stmt: Stmt) -> bool:
    call = stmt_call(stmt)
    return type(stmt) is AssignStmt and call is not None and call.op.name == "tile.load"


def _escaping(loop: ForStmt) -> set[Var]:
    """Tiles of the body that outlive a plain read: yielded, carried by an inner loop, viewed or updated in place."""
    found: set[Var] = {v for v in yielded(loop.body) if isinstance(v, Var)}
    aliases: list[tuple[Var, Var]] = []
    for stmt in iter_stmts(loop.body):
        if isinstance(stmt, (ForStmt, WhileStmt)):
            found.update(a.initValue for a in stmt.iter_args if isinstance(a.initValue, Var))
        if type(stmt) is not AssignStmt:
            continue
        value = stmt.value
        if isinstance(value, Var):
            aliases.append((stmt.var, value))
        elif isinstance(value, Call) and not is_user_call(value) and isinstance(stmt.var.type, TileType):
            index = 0 if value.op.name in VIEWS else same_object_arg(value)
            if index is not None and isinstance(value.args[index], Var):
                found.add(value.args[index])
    for target, source in reversed(aliases):
        if target in found:
            found.add(source)
    return found


@function_pass("LowerPipelineToSlots", required=_TILE_IR, produced=_TILE_IR)
def lower_pipeline_to_slots(function: Function) -> Function:
    """Declare a multi-slot buffer per load of an eligible pipelined loop; the assembler places and rotates it."""
    if active_memory_planner() is not MemoryPlanner.PTOAS or function.body is None:
        return function
    if not has_pipeline(function.body):
        return function
    slots = _Slots(function)
    function = with_body(function, slots.rewrite(function.body, False))
    return Retype(slots.types).visit_function(function) if slots.types else function
