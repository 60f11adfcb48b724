"""What a body lowering decides before it starts: which values live on chip, which parameters load at entry."""

from __future__ import annotations

from dataclasses import dataclass, field

from pypto.ir.expr import Call, Expr, GlobalVar, Var
from pypto.ir.program import Function
from pypto.ir.stmt import AssignStmt, ForStmt, IfStmt, ReturnStmt, Stmt, WhileStmt
from pypto.ir.types import TensorType
from pypto.passes.lib.op_facts import TENSOR_VIEWS
from pypto.passes.lib.uses import count_reads
from pypto.passes.lib.walk import iter_calls, iter_stmts, yielded
from pypto.passes.tile.conversions.registry import find_conversion

_MATMULS = {"tensor.matmul": (0, 1), "tensor.matmul_acc": (1, 2)}
_GLOBAL_RESULTS = frozenset(("tensor.view", "tile.store", "tensor.as_layout", "tensor.alloc"))


@dataclass
class Plan:
    """Decisions about one function."""

    has_work: bool = False
    #: Variables whose value is a tile after lowering.
    tiles: set[Var] = field(default_factory=set)
    #: Parameters that are loaded whole at function entry.
    entry_loads: set[Var] = field(default_factory=set)
    #: Variables that operators write in global memory: they must not be replaced by a loaded copy.
    global_targets: set[Var] = field(default_factory=set)
    #: Results that feed a matrix product through zero-copy operators.
    wants_mat: set[Var] = field(default_factory=set)
    #: Return position -> (created buffer that becomes the Out parameter, its type).
    direct_outputs: dict[int, tuple[Var, TensorType]] = field(default_factory=dict)

    @property
    def direct_buffers(self) -> set[Var]:
        return {buffer for buffer, _ in self.direct_outputs.values()}


def make_plan(function: Function) -> Plan:
    """Analyse one InCore function."""
    plan = Plan()
    calls = [c for _, c in iter_calls(function.body)]
    plan.has_work = any(c.op.name.startswith(("tensor.", "pld.tensor.")) for c in calls)
    if not plan.has_work:
        return plan
    analysis = _Analysis(function, plan)
    analysis.mark_mat_demand()
    analysis.find_direct_outputs()
    analysis.find_tiles()
    analysis.find_entry_loads()
    return plan


class _Analysis:
    def __init__(self, function: Function, plan: Plan) -> None:
        self._function = function
        self._plan = plan
        self._params = {p for p in function.params if type(p.type) is not None and isinstance(p.type, TensorType)}
        self._stmts = list(iter_stmts(function.body))
        self._value: dict[Var, Expr] = {s.var: s.value for s in self._stmts if type(s) is AssignStmt}
        self._init: dict[Var, Expr] = {}
        self._loop_of_result: dict[Var, tuple[Stmt, int]] = {}
        for stmt in self._stmts:
            if isinstance(stmt, (ForStmt, WhileStmt)):
                for index, (arg, result) in enumerate(zip(stmt.iter_args, stmt.return_vars)):
                    self._init[arg] = arg.initValue
                    self._loop_of_result[result] = (stmt, index)
        for call in self._calls():
            if call.op.name in ("tensor.assemble", "tensor.write") and isinstance(call.args[0], Var):
                plan.global_targets.add(call.args[0])
            elif call.op.name == "tile.store" and isinstance(call.args[2], Var):
                plan.global_targets.add(call.args[2])

    def _calls(self):
        return (c for _, c in iter_calls(self._function.body) if isinstance(c, Call))

    def mark_mat_demand(self) -> None:
        """Walk back from product operands through aliases and zero-copy operators."""
        for call in self._calls():
            for index in _MATMULS.get(call.op.name, ()):
                value = call.args[index]
                while isinstance(value, Var) and value not in self._plan.wants_mat:
                    self._plan.wants_mat.add(value)
                    source = self._value.get(value)
                    if isinstance(source, Call) and source.op.name in TENSOR_VIEWS:
                        value = source.args[0]
                    elif isinstance(source, Var):
                        value = source
                    else:
                        break

    def find_direct_outputs(self) -> None:
        """Returned loops that only assemble pieces into a freshly created buffer."""
        returns = [s for s in self._stmts if type(s) is ReturnStmt]
        if not returns:
            return
        reads = count_reads(self._function)
        for position, value in enumerate(returns[-1].value):
            found = self._loop_of_result.get(value) if isinstance(value, Var) else None
            if found is None:
                continue
            loop, index = found
            arg = loop.iter_args[index]
            buffer = arg.initValue
            created = self._value.get(buffer) if isinstance(buffer, Var) else None
            if not (isinstance(created, Call) and created.op.name == "tensor.create" and reads[buffer] == 1):
                continue
            if self._assembles_only(arg, yielded(loop.body)[index], reads):
                self._plan.direct_outputs[position] = (buffer, self._function.return_types[position])

    def _assembles_only(self, arg: Var, value: Expr, reads) -> bool:
        """``value`` is a chain of assembles that starts at ``arg``, with no other reader in between."""
        while value is not arg:
            call = self._value.get(value) if isinstance(value, Var) else None
            if not (isinstance(call, Call) and call.op.name == "tensor.assemble") or reads[value] != 1:
                return False
            value = call.args[0]
        return reads[arg] == 1

    def find_tiles(self) -> None:
        """Fixpoint over definitions: results of converted operators are tiles unless they stay in global memory."""
        tiles = self._plan.tiles
        direct = self._plan.direct_buffers
        consumed = self._consumed_whole()
        changed = True
        while changed:
            before = len(tiles)
            for stmt in self._stmts:
                kind = type(stmt)
                if kind is AssignStmt:
                    if stmt.var not in direct and self._is_tile(stmt.value):
                        tiles.add(stmt.var)
                elif kind is ForStmt or kind is WhileStmt:
                    values = yielded(stmt.body)
                    for index, arg in enumerate(stmt.iter_args):
                        value = values[index] if index < len(values) else arg
                        whole = arg in consumed and arg not in self._plan.global_targets
                        if not isinstance(arg.type, TensorType):
                            continue
                        if arg.initValue in tiles or value in tiles or whole:
                            tiles.add(arg)
                            tiles.add(stmt.return_vars[index])
                elif kind is IfStmt:
                    for body in (stmt.then_body, stmt.else_body):
                        for var, value in zip(stmt.return_vars, yielded(body)):
                            if value in tiles and isinstance(var.type, TensorType):
                                tiles.update((var,))
            changed = len(tiles) != before

    def _is_tile(self, value: Expr) -> bool:
        tiles = self._plan.tiles
        if isinstance(value, Var):
            return value in tiles
        if not isinstance(value, Call) or isinstance(value.op, GlobalVar) or not isinstance(value.type, TensorType):
            return False
        name = value.op.name
        if name in ("tensor.assemble", "tensor.write"):
            return value.args[0] in tiles
        if name in _GLOBAL_RESULTS or name == "tensor.expand_clone" or name.startswith("pld."):
            return False
        return name.startswith("tensor.")

    def _consumed_whole(self) -> dict[Var, None]:
        """Variables that a rule takes as whole tiles, in order."""
        found: dict[Var, None] = {}
        for stmt, call in iter_calls(self._function.body):
            if not isinstance(call, Call) or isinstance(call.op, GlobalVar):
                continue
            name = call.op.name
            conversion = find_conversion(name) if name.startswith(("tensor.", "pld.tensor.")) else None
            if conversion is None:
                continue
            operands: tuple[Expr, ...] = () if conversion.loads_itself else call.args
            if name in TENSOR_VIEWS and name not in ("tensor.slice", "tensor.view"):
                operands = () if getattr(stmt, "var", None) in self._plan.wants_mat else call.args[:1]
            for arg in operands:
                if isinstance(arg, Var) and isinstance(arg.type, TensorType):
                    found[arg] = None
        return found

    def find_entry_loads(self) -> None:
        """Parameters behind whole operands, carried values and joins that become tiles."""
        wanted: list[Expr] = list(self._consumed_whole())
        for stmt in self._stmts:
            if isinstance(stmt, (ForStmt, WhileStmt)):
                wanted += [a.initValue for a in stmt.iter_args if a in self._plan.tiles]
            elif isinstance(stmt, IfStmt):
                for body in (stmt.then_body, stmt.else_body):
                    wanted += [v for r, v in zip(stmt.return_vars, yielded(body)) if r in self._plan.tiles]
        for value in wanted:
            seen = 0
            while isinstance(value, Var) and value not in self._params and seen < 64:
                source = self._value.get(value)
                if not isinstance(source, Var) or value in self._plan.global_targets:
                    break
                value, seen = source, seen + 1
            if isinstance(value, Var) and value in self._params:
                self._plan.entry_loads.add(value)
