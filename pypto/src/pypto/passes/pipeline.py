"""The default strategy: the one ordered table of passes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from pypto.passes.context import MemoryPlanner
from pypto.passes.distributed.insert_comm_fence import insert_comm_fence
from pypto.passes.distributed.lower_host_tensor_collectives import lower_host_tensor_collectives
from pypto.passes.distributed.materialize_comm_domain_scopes import materialize_comm_domain_scopes
from pypto.passes.distributed.materialize_dist_tensor_ctx import materialize_dist_tensor_ctx
from pypto.passes.distributed.synthesize_allreduce_signals import synthesize_allreduce_signals
from pypto.passes.frontend.convert_to_ssa import convert_to_ssa
from pypto.passes.frontend.ctrl_flow_transform import ctrl_flow_transform
from pypto.passes.frontend.flatten_call_expr import flatten_call_expr
from pypto.passes.frontend.inline_functions import inline_functions
from pypto.passes.frontend.normalize_stmt_structure import normalize_stmt_structure
from pypto.passes.frontend.simplify import simplify
from pypto.passes.frontend.unroll_loops import unroll_loops
from pypto.passes.memory.allocate_memory_addr import allocate_memory_addr
from pypto.passes.memory.fold_no_op_reshape import fold_no_op_reshape
from pypto.passes.memory.init_mem_ref import init_mem_ref
from pypto.passes.memory.materialize_semantic_aliases import materialize_semantic_aliases
from pypto.passes.memory.materialize_tensor_strides import materialize_tensor_strides
from pypto.passes.memory.memory_reuse import memory_reuse
from pypto.passes.mixed.expand_mixed_kernel import expand_mixed_kernel
from pypto.passes.mixed.inject_gm_pipe_buffer import inject_gm_pipe_buffer
from pypto.passes.mixed.split_vector_kernel import split_vector_kernel
from pypto.passes.mixed.stamp_tfree_split import stamp_tfree_split
from pypto.passes.orchestration.auto_derive_task_dependencies import auto_derive_task_dependencies
from pypto.passes.orchestration.classify_iter_arg_carry import classify_iter_arg_carry
from pypto.passes.orchestration.derive_call_directions import derive_call_directions
from pypto.passes.orchestration.expand_manual_phase_fence import expand_manual_phase_fence
from pypto.passes.orchestration.fuse_create_assemble_to_slice import fuse_create_assemble_to_slice
from pypto.passes.orchestration.legalize_spmd_launches import legalize_spmd_launches
from pypto.passes.orchestration.materialize_runtime_scopes import materialize_runtime_scopes
from pypto.passes.orchestration.materialize_valid_shape_symbols import materialize_valid_shape_symbols
from pypto.passes.orchestration.normalize_return_order import normalize_return_order
from pypto.passes.outline.outline_cluster_scopes import outline_cluster_scopes
from pypto.passes.outline.outline_hierarchy_scopes import outline_hierarchy_scopes
from pypto.passes.outline.outline_incore_scopes import outline_incore_scopes
from pypto.passes.pass_ import Pass
from pypto.passes.pipelining.canonicalize_io_order import canonicalize_io_order
from pypto.passes.pipelining.lower_pipeline_loops import lower_pipeline_loops
from pypto.passes.pipelining.lower_pipeline_to_slots import lower_pipeline_to_slots
from pypto.passes.pipelining.skew_cross_core_pipeline import skew_cross_core_pipeline
from pypto.passes.tile.auto_tile_matmul_l0 import auto_tile_matmul_l0
from pypto.passes.tile.canonicalize_tile_slice import canonicalize_tile_slice
from pypto.passes.tile.convert_tensor_to_tile_ops import convert_tensor_to_tile_ops
from pypto.passes.tile.flatten_tile_nd_to_2d import flatten_tile_nd_to_2d
from pypto.passes.tile.infer_tile_memory_space import infer_tile_memory_space
from pypto.passes.tile.insert_mx_scale_addr import insert_mx_scale_addr
from pypto.passes.tile.legalize_tile_cast import legalize_tile_cast
from pypto.passes.tile.lower_auto_vector_split import lower_auto_vector_split
from pypto.passes.tile.lower_composite_ops import lower_composite_ops
from pypto.passes.tile.optimize_orch_tensors import optimize_orch_tensors
from pypto.passes.tile.resolve_backend_op_layouts import resolve_backend_op_layouts


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


def shares_by_lifetime(options: PipelineOptions) -> bool:
    return options.memory_planner is MemoryPlanner.PYPTO


def assigns_addresses(options: PipelineOptions) -> bool:
    return options.memory_planner is not MemoryPlanner.PTOAS


def keeps_auto_scopes(options: PipelineOptions) -> bool:
    return not options.analyze_auto_scopes


def analyzes_scopes(options: PipelineOptions) -> bool:
    return options.analyze_auto_scopes


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
    ("ConvertTensorToTileOps", convert_tensor_to_tile_ops, always),
    ("OptimizeOrchTensors", optimize_orch_tensors, always),
    ("LowerCompositeOps", lower_composite_ops, always),
    ("FlattenTileNdTo2D", flatten_tile_nd_to_2d, always),
    ("LegalizeTileCast", legalize_tile_cast, always),
    ("AutoTileMatmulL0", auto_tile_matmul_l0, always),
    ("CanonicalizeTileSlice", canonicalize_tile_slice, always),
    ("InferTileMemorySpace", infer_tile_memory_space, always),
    ("InsertMxScaleAddr", insert_mx_scale_addr, always),
    ("ResolveBackendOpLayouts", resolve_backend_op_layouts, always),
    ("LowerAutoVectorSplit", lower_auto_vector_split, always),
    ("ExpandMixedKernel", expand_mixed_kernel, always),
    ("InjectGMPipeBuffer", inject_gm_pipe_buffer, always),
    ("SplitVectorKernel", split_vector_kernel, always),
    ("StampTfreeSplit", stamp_tfree_split, always),
    ("NormalizeReturnOrder", normalize_return_order, always),
    ("SkewCrossCorePipeline", skew_cross_core_pipeline, always),
    ("LowerPipelineToSlots", lower_pipeline_to_slots, always),
    ("LowerPipelineLoops", lower_pipeline_loops, always),
    ("CanonicalizeIOOrder", canonicalize_io_order, always),
    ("MaterializeTensorStrides", materialize_tensor_strides, always),
    ("InitMemRef", init_mem_ref, always),
    ("MaterializeSemanticAliases", materialize_semantic_aliases, always),
    ("MemoryReuse", memory_reuse, shares_by_lifetime),
    ("AllocateMemoryAddr", allocate_memory_addr, assigns_addresses),
    ("FoldNoOpReshape", fold_no_op_reshape, always),
    ("FuseCreateAssembleToSlice", fuse_create_assemble_to_slice, always),
    ("LegalizeSpmdLaunches", legalize_spmd_launches, always),
    ("DeriveCallDirections", derive_call_directions, always),
    ("AutoDeriveTaskDependencies", auto_derive_task_dependencies, keeps_auto_scopes),
    ("AutoDeriveTaskDependencies", partial(auto_derive_task_dependencies, analyze_auto_scopes=True), analyzes_scopes),
    ("ExpandManualPhaseFence", expand_manual_phase_fence, always),
    ("SynthesizeAllReduceSignals", synthesize_allreduce_signals, always),
    ("MaterializeCommDomainScopes", materialize_comm_domain_scopes, always),
    ("LowerHostTensorCollectives", lower_host_tensor_collectives, always),
    ("MaterializeDistTensorCtx", materialize_dist_tensor_ctx, always),
    ("Simplify", simplify, always),
    ("MaterializeRuntimeScopes", materialize_runtime_scopes, always),
    ("ClassifyIterArgCarry", classify_iter_arg_carry, always),
    ("InsertCommFence", insert_comm_fence, always),
    ("MaterializeValidShapeSymbols", materialize_valid_shape_symbols, always),
]


def default_passes(options: PipelineOptions) -> list[Pass]:
    """Fresh passes of the default strategy under ``options``, in execution order."""
    return [factory() for _, factory, runs in TABLE if runs(options)]
