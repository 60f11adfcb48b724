"""The default strategy: the one ordered table of passes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pypto.passes.context import MemoryPlanner
from pypto.passes.frontend.convert_to_ssa import convert_to_ssa
from pypto.passes.frontend.ctrl_flow_transform import ctrl_flow_transform
from pypto.passes.frontend.flatten_call_expr import flatten_call_expr
from pypto.passes.frontend.inline_functions import inline_functions
from pypto.passes.frontend.normalize_stmt_structure import normalize_stmt_structure
from pypto.passes.frontend.simplify import simplify
from pypto.passes.frontend.unroll_loops import unroll_loops
from pypto.passes.outline.outline_cluster_scopes import outline_cluster_scopes
from pypto.passes.outline.outline_hierarchy_scopes import outline_hierarchy_scopes
from pypto.passes.outline.outline_incore_scopes import outline_incore_scopes
from pypto.passes.pass_ import Pass


@dataclass(frozen=True)
class PipelineOptions:
    """What decides whether a row of the table runs."""

    memory_planner: MemoryPlanner = MemoryPlanner.PYPTO
    enable_buffer_ir: bool = False
    analyze_auto_scopes: bool = False


Condition = Callable[[PipelineOptions], bool]
Row = tuple[str, Callable[..., Pass], Condition]


def always(options: PipelineOptions) -> bool:
    return True


#: Name, factory and condition of every pass, in execution order.
TABLE: list[Row] = [
    ("InlineFunctions", inline_functions, always),
    ("UnrollLoops", unroll_loops, always),
    ("CtrlFlowTransform", ctrl_flow_transform, always),
    ("ConvertToSSA", convert_to_ssa, always),
    ("Simplify", simplify, always),
    ("NormalizeStmtStructure", normalize_stmt_structure, always),
    ("FlattenCallExpr", flatten_call_expr, always),
    ("OutlineHierarchyScopes", outline_hierarchy_scopes, always),
    ("OutlineIncoreScopes", outline_incore_scopes, always),
    ("OutlineClusterScopes", outline_cluster_scopes, always),
]


def default_passes(options: PipelineOptions) -> list[Pass]:
    """Fresh passes of the default strategy under ``options``, in execution order."""
    return [factory() for _, factory, runs in TABLE if runs(options)]
