"""Regions whose author wrote the lane boundary: every vector operator has to be per lane already."""

from __future__ import annotations

from pypto.errors import user_error
from pypto.ir.expr import Call, Expr, Var
from pypto.ir.stmt import AssignStmt, SplitAivScopeStmt, Stmt
from pypto.ir.types import TileType
from pypto.passes.lib.core_affinity import Affinity, call_affinity
from pypto.passes.lib.walk import iter_calls, iter_stmts, used_vars

BOUNDARIES = frozenset(("tile.aiv_shard", "tile.aic_gather"))
_GENERATORS = frozenset(("tile.full", "tile.ci", "tile.random", "tile.create"))
#: Operator -> operands that hold the address it reads from.
_ADDRESSES = {"tile.load": (1,), "tile.slice": (2,), "tile.extract": (1, 2), "tile.gather_row": (3,)}


def has_boundary(body: Stmt) -> bool:
    """Whether a region shards or gathers explicitly."""
    return any(call.op.name in BOUNDARIES for _, call in iter_calls(body))


def check_explicit_region(region: SplitAivScopeStmt) -> None:
    """Raise ``ValueError`` for vector operators of the region that would compute the same thing on both lanes."""
    lanes = _lane_values(region.body)
    halves: set[Var] = set()
    wrong: list[str] = []
    for stmt in iter_stmts(region.body):
        if type(stmt) is not AssignStmt or not isinstance(stmt.var.type, TileType):
            continue
        value = stmt.value
        if isinstance(value, Var):
            if value in halves:
                halves.add(stmt.var)
            continue
        if not isinstance(value, Call):
            continue
        name = value.op.name
        if name == "tile.aiv_shard" or any(isinstance(a, Var) and a in halves for a in value.args):
            halves.add(stmt.var)
        elif name in _GENERATORS or name in BOUNDARIES:
            continue
        elif any(_mentions(value.args[i], lanes) for i in _ADDRESSES.get(name, ()) if i < len(value.args)):
            halves.add(stmt.var)
        elif call_affinity(value) is Affinity.VECTOR:
            wrong.append(f"{name} ('{stmt.var.name_hint}')")
    if wrong:
        raise user_error(
            "a pl.split_aiv region mixes explicit aiv_shard/aic_gather with full-width vector work: "
            f"{', '.join(wrong)}. Shard the operand, or read at an offset that depends on the lane",
            span=region.span,
        )


def _lane_values(body: Stmt) -> set[Var]:
    """Scalars computed from the lane number."""
    found: set[Var] = set()
    for stmt in iter_stmts(body):
        if type(stmt) is not AssignStmt or isinstance(stmt.var.type, TileType):
            continue
        value = stmt.value
        if (isinstance(value, Call) and value.op.name == "tile.get_subblock_idx") or _mentions(value, found):
            found.add(stmt.var)
    return found


def _mentions(value: Expr, variables: set[Var]) -> bool:
    return any(v in variables for v in used_vars(value))
