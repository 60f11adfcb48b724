"""AivSplitValid: what may stand inside and outside the vector-lane regions of a kernel."""

from __future__ import annotations

from pypto.ir.enums import FunctionType, MemorySpace, SplitMode
from pypto.ir.expr import Call, Var, const_value
from pypto.ir.program import Function, Program
from pypto.ir.stmt import AssignStmt, ForStmt, IfStmt, ScopeStmt, SplitAivScopeStmt, Stmt, WhileStmt, flatten_to_stmts
from pypto.ir.types import TileType
from pypto.passes.diagnostics import Diagnostic
from pypto.passes.lib.core_affinity import Affinity, call_affinity
from pypto.passes.lib.op_facts import MATMULS
from pypto.passes.lib.walk import direct_uses, iter_calls, iter_stmts, stmt_call
from pypto.passes.properties import IRProperty
from pypto.passes.verification import PropertyVerifierRegistry
from pypto.passes.verifiers.base import defined_functions, error

_RULE = "AivSplitValid"
_BOUNDARIES = frozenset(("tile.aiv_shard", "tile.aic_gather", "tensor.aiv_shard", "tensor.aic_gather"))
_OUTSIDE = frozenset(("tile.load", "tile.store", "pld.tile.put", "pld.tile.get"))
_CUBE_TENSOR_OPS = frozenset(("tensor.matmul", "tensor.matmul_acc"))
_MOVES = frozenset(("tile.move", "tile.extract", "tile.slice"))


@PropertyVerifierRegistry.register(IRProperty.AivSplitValid)
def verify_lane_regions(program: Program) -> list[Diagnostic]:
    """Rules (a) to (h) of lane regions for functions that hold one, and (c) for all others."""
    found: list[Diagnostic] = []
    for function in defined_functions(program):
        _Lanes(function, found).run()
    return found


class _Lanes:
    def __init__(self, function: Function, found: list[Diagnostic]) -> None:
        self._function, self._found = function, found
        self._manual = any(isinstance(s, SplitAivScopeStmt) for s in iter_stmts(function.body))
        #: Tile -> (affinity, region it was made in or None).
        self._made: dict[Var, tuple[Call, SplitAivScopeStmt | None]] = {}

    def _report(self, message: str, span) -> None:
        self._found.append(error(_RULE, 1, f"{message} in function '{self._function.name}'", span))

    def run(self) -> None:
        if not self._manual:
            if not self._function.attrs.get("split_aiv"):
                for stmt, call in iter_calls(self._function.body):
                    if call.op.name in _BOUNDARIES:
                        self._report(f"{call.op.name} must appear inside a pl.split_aiv region", stmt.span)
            return
        if self._function.func_type is FunctionType.InCore and not self._function.attrs.get("split_aiv"):
            region = next(s for s in iter_stmts(self._function.body) if isinstance(s, SplitAivScopeStmt))
            self._report(
                "a pl.split_aiv region in a declared InCore function; a lane region belongs into a CORE_GROUP-level "
                "region (pl.at) of an ordinary function",
                region.span,
            )
        self._body(self._function.body, None)

    def _body(self, body: Stmt | None, region: SplitAivScopeStmt | None) -> None:
        for stmt in flatten_to_stmts(body):
            if isinstance(stmt, SplitAivScopeStmt):
                self._body(stmt.body, stmt)
            elif isinstance(stmt, IfStmt):
                self._body(stmt.then_body, region)
                self._body(stmt.else_body, region)
            elif isinstance(stmt, (ForStmt, WhileStmt, ScopeStmt)):
                self._body(stmt.body, region)
            else:
                call = stmt_call(stmt)
                if isinstance(call, Call):
                    self._call(stmt, call, region)

    def _call(self, stmt: Stmt, call: Call, region: SplitAivScopeStmt | None) -> None:
        name = call.op.name
        affinity = Affinity.CUBE if name in _CUBE_TENSOR_OPS else call_affinity(call)
        if region is not None and affinity is Affinity.CUBE and self._lends_its_affinity(stmt, name):
            affinity = Affinity.VECTOR
        if name in _BOUNDARIES:
            if region is None:
                self._report(f"{name} must appear inside a pl.split_aiv region", stmt.span)
            self._boundary_spaces(stmt, call)
        elif region is not None and affinity is Affinity.CUBE and name != "tile.load":
            half = "" if region.split is SplitMode.NONE else ", and each lane holds only half the tile"
            self._report(
                f"cube operator {name} inside a pl.split_aiv region: the region body is AIV work{half}", stmt.span
            )
        elif region is None and affinity is Affinity.VECTOR and name not in _OUTSIDE and not _names_lane(call):
            self._report(
                f"vector operator {name} outside every pl.split_aiv region; wrap it in "
                "`for lane in pl.split_aiv(2, mode=pl.SplitMode.NONE)` to keep it at full width",
                stmt.span,
            )
        if region is not None and region.split in (SplitMode.UP_DOWN, SplitMode.LEFT_RIGHT):
            self._reduction(stmt, call, region)
        if name not in ("tile.load", "tile.store"):
            self._crossings(stmt, call, region, affinity)
        if type(stmt) is AssignStmt and isinstance(stmt.var.type, TileType):
            self._made[stmt.var] = (call, region)

    def _boundary_spaces(self, stmt: Stmt, call: Call) -> None:
        source = call.args[0].type
        if not isinstance(source, TileType):
            return
        shard = call.op.name.endswith("aiv_shard")
        want_in, want_out = (MemorySpace.Acc, MemorySpace.Vec) if shard else (MemorySpace.Vec, MemorySpace.Mat)
        have_out = getattr(call.type, "memory_space", None)
        wrong = []
        if source.memory_space not in (None, want_in):
            wrong.append(f"its operand is in {source.memory_space.name} and requires {want_in.name}")
        if have_out not in (None, want_out):
            wrong.append(f"its result is in {have_out.name} and must be {want_out.name}")
        if wrong:
            self._report(f"{call.op.name}: {'; '.join(wrong)}", stmt.span)

    def _lends_its_affinity(self, stmt: Stmt, name: str) -> bool:
        """A computation that only counts as cube work because of where a value from outside lives."""
        if name in MATMULS or name in _CUBE_TENSOR_OPS or name in _MOVES:
            return False
        return any(self._made[v][1] is None for v in direct_uses(stmt) if v in self._made)

    def _reduction(self, stmt: Stmt, call: Call, region: SplitAivScopeStmt) -> None:
        leaf = call.op.name.rsplit(".", 1)[-1]
        axis = 0 if region.split is SplitMode.UP_DOWN else 1
        reduces = (leaf.startswith("row_") and "expand" not in leaf and axis == 1) or (
            leaf.startswith("col_") and "expand" not in leaf and axis == 0
        )
        if leaf in ("sum", "max", "min") and call.kwargs.get("axis") in (axis, axis - 2):
            reduces = True
        if reduces and call.args and const_value(call.args[0].type.shape[axis]) != 1:
            self._report(
                f"{call.op.name} reduces over the split axis of its region: each lane holds only half of the values",
                stmt.span,
            )

    def _crossings(self, stmt: Stmt, call: Call, region: SplitAivScopeStmt | None, affinity: Affinity) -> None:
        for var in dict.fromkeys(direct_uses(stmt)):
            made = self._made.get(var)
            if made is None:
                continue
            producer, home = made
            name = producer.op.name
            if home is not None and region is None and affinity is Affinity.CUBE and name != "tile.aic_gather":
                self._report(
                    f"cube operator {call.op.name} reads '{var.name_hint}' from inside a region; hand it over with "
                    "pl.aic_gather",
                    stmt.span,
                )
            cube_made = call_affinity(producer) is Affinity.CUBE and name != "tile.load"
            if home is None and region is not None and affinity is Affinity.VECTOR and cube_made:
                self._report(
                    f"vector operator {call.op.name} reads the cube value '{var.name_hint}' in a region; shard it "
                    "with pl.aiv_shard",
                    stmt.span,
                )


def _names_lane(call: Call) -> bool:
    """The call declares that it runs on the vector core."""
    return call.kwargs.get("core_type") in ("aiv", "aiv_only")
