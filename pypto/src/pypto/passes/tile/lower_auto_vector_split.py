"""LowerAutoVectorSplit: vector work of mixed kernels is written per lane, boundaries to the cube core explicitly."""

from __future__ import annotations

from pypto.errors import user_error
from pypto.ir.enums import FunctionType, SplitMode
from pypto.ir.expr import Call, Var
from pypto.ir.node import replace
from pypto.ir.program import Function, Program
from pypto.ir.stmt import (
    AssignStmt,
    ScopeStmt,
    SplitAivScopeStmt,
    Stmt,
    flatten_to_stmts,
    seq,
)
from pypto.ops.registry import create_op_call, find_op
from pypto.passes.lib.core_affinity import PLACEMENT, Affinity, call_affinity, stmt_affinity
from pypto.passes.lib.rewrite import rebuild_lists, with_body
from pypto.passes.lib.walk import iter_stmts, map_functions, stmt_call
from pypto.passes.pass_ import program_pass
from pypto.passes.properties import IRProperty as P
from pypto.passes.tile.lane_split.halving import Halver
from pypto.passes.tile.lane_split.regions import check_explicit_region, has_boundary

_FORM = (
    P.SSAForm, P.IncoreTileOps, P.SplitIncoreOrch, P.TileOps2D, P.TileMemoryInferred, P.NormalizedStmtStructure,
)  # fmt: skip


@program_pass(
    "LowerAutoVectorSplit",
    required=(*_FORM, P.AivSplitValid),
    produced=(*_FORM, P.AivSplitLoweredValid),
    invalidated=(P.AivSplitValid,),
)
def lower_auto_vector_split(program: Program) -> Program:
    """Lower functions with a split mode and mixed work, and functions with ``pl.split_aiv`` regions.

    Raises:
        ValueError: vector code that cannot be halved along the split axis, or a scope inside a region.
    """
    return map_functions(program, _lower)


def _lower(function: Function) -> Function:
    if function.func_type is not FunctionType.InCore or function.body is None:
        return function
    if any(isinstance(s, SplitAivScopeStmt) for s in iter_stmts(function.body)):
        return _lower_regions(function)
    mode = function.split
    if mode in (None, SplitMode.NONE) or function.attrs.get("split_aiv"):
        return function
    affinity = Affinity.SHARED
    for stmt in flatten_to_stmts(function.body):
        affinity |= stmt_affinity(stmt)
    if affinity & Affinity.MIXED != Affinity.MIXED:
        return function
    _reject_scopes(function.body, "whole-function halving (pl.split)")
    lane, define = _lane_index(function)
    body = Halver(mode, lane).body(function.body)
    return _marked(with_body(function, [define, *flatten_to_stmts(body)]), split=int(mode))


def _lane_index(function: Function) -> tuple[Var, AssignStmt]:
    """The lane number under a name that the function does not use yet."""
    taken = {s.var.name_hint for s in iter_stmts(function.body) if type(s) is AssignStmt}
    taken |= {p.name_hint for p in function.params}
    name, number = "subblock_idx", 0
    while name in taken:
        number += 1
        name = f"subblock_idx_{number}"
    call = create_op_call("tile.get_subblock_idx", [], {}, function.span)
    lane = Var(name, call.type, function.span)
    return lane, AssignStmt(lane, call, function.span)


def _marked(function: Function, *, split: int | None, validated: bool = False) -> Function:
    attrs = {k: v for k, v in function.attrs.items() if k not in ("split", "split_aiv")}
    if split is not None:
        attrs["split"] = split
    attrs["split_aiv"] = True
    if validated:
        attrs["split_aiv_region_validated"] = True
    return replace(function, attrs=attrs)


def _reject_scopes(body: Stmt, what: str) -> None:
    for stmt in iter_stmts(body):
        if isinstance(stmt, ScopeStmt) and not isinstance(stmt, SplitAivScopeStmt):
            raise user_error(
                f"{what}: the body still contains a scope; remove it, or write the kernel as a pl.at(CORE_GROUP) scope "
                "of an ordinary function",
                span=stmt.span,
            )


# -- regions --------------------------------------------------------------------------------------------------------


def _lower_regions(function: Function) -> Function:
    lowering = _Regions(function)
    new = with_body(function, rebuild_lists(function.body, lowering.splice))
    for stmt in iter_stmts(new.body):
        if isinstance(stmt, SplitAivScopeStmt):
            raise user_error(
                "a pl.split_aiv region inside another scope of an InCore function cannot be lowered; remove the scope",
                span=stmt.span,
            )
        if isinstance(stmt, ScopeStmt):
            raise user_error("a scope survives inside a pl.split_aiv region body; remove it", span=stmt.span)
    return _marked(new, split=function.attrs.get("split"), validated=True)


class _Regions:
    """Replaces each region by its per-lane statements."""

    def __init__(self, function: Function) -> None:
        self._function = function

    def splice(self, stmts: list[Stmt]) -> list[Stmt]:
        if not any(isinstance(s, SplitAivScopeStmt) for s in stmts):
            return stmts
        result: list[Stmt] = []
        for stmt in stmts:
            if isinstance(stmt, SplitAivScopeStmt):
                result.extend(self._region(stmt))
            else:
                result.append(stmt)
        return result

    def _region(self, region: SplitAivScopeStmt) -> list[Stmt]:
        if any(isinstance(s, ScopeStmt) for s in iter_stmts(region.body)):
            raise user_error(
                "a scope survives inside a pl.split_aiv region body; regions hold plain statements only",
                span=region.span,
            )
        body = region.body
        if region.split is not SplitMode.NONE:
            if has_boundary(body):
                check_explicit_region(region)
            else:
                lane, define = _lane_index(self._function)
                body = seq([define, Halver(region.split, lane).body(body)])
        placed = rebuild_lists(body, _place_on_vector_core)
        return flatten_to_stmts(placed)


def _place_on_vector_core(stmts: list[Stmt]) -> list[Stmt]:
    """Calls that may run once only, and that no operator fact places, stay on the core the region gave them."""
    result: list[Stmt] = []
    changed = False
    for stmt in stmts:
        call = stmt_call(stmt)
        if type(call) is Call and PLACEMENT not in call.attrs and call_affinity(call) is Affinity.SHARED:
            definition = find_op(call.op.name)
            if definition is not None and definition.no_duplicate:
                new = replace(call, attrs={**call.attrs, PLACEMENT: "aiv"})
                stmt = replace(stmt, value=new) if type(stmt) is AssignStmt else replace(stmt, expr=new)
                changed = True
        result.append(stmt)
    return result if changed else stmts
