"""Passes over the IR: framework, properties and verifiers, diagnostics, and every pass as a factory.

``passes.<name>()`` builds a pass; ``PassManager`` holds the default strategy (``passes/pipeline.py``).
"""

from pypto.passes import l0_tile_chooser, stmt_dependency_analysis
from pypto.passes.context import (
    DiagnosticPhase,
    MemoryPlanner,
    PassContext,
    RuntimeKind,
    VerificationLevel,
    VerificationMode,
    get_default_diagnostic_phase,
    get_default_verification_level,
    runtime_kind_from_name,
    runtime_kind_to_name,
)
from pypto.passes.diagnostics import (
    Diagnostic,
    DiagnosticCheck,
    DiagnosticCheckRegistry,
    DiagnosticCheckSet,
    DiagnosticSeverity,
)
from pypto.passes.distributed.insert_comm_fence import insert_comm_fence
from pypto.passes.distributed.lower_host_tensor_collectives import lower_host_tensor_collectives
from pypto.passes.distributed.materialize_comm_domain_scopes import materialize_comm_domain_scopes
from pypto.passes.distributed.materialize_dist_tensor_ctx import materialize_dist_tensor_ctx
from pypto.passes.distributed.synthesize_allreduce_signals import synthesize_allreduce_signals
from pypto.passes.dumps import PassDumpLevel, coerce_dump_level
from pypto.passes.frontend.convert_to_ssa import convert_to_ssa
from pypto.passes.frontend.ctrl_flow_transform import ctrl_flow_transform
from pypto.passes.frontend.flatten_call_expr import flatten_call_expr
from pypto.passes.frontend.inline_functions import inline_functions
from pypto.passes.frontend.normalize_stmt_structure import normalize_stmt_structure
from pypto.passes.frontend.simplify import simplify
from pypto.passes.frontend.unroll_loops import unroll_loops
from pypto.passes.instruments import (
    CallbackInstrument,
    DiagnosticInstrument,
    PassInstrument,
    ReportInstrument,
    VerificationInstrument,
    make_roundtrip_instrument,
)
from pypto.passes.manager import OptimizationStrategy, PassManager
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
from pypto.passes.pass_ import Pass, PassProperties, create_function_pass, create_program_pass
from pypto.passes.pipelining.canonicalize_io_order import canonicalize_io_order
from pypto.passes.pipelining.lower_pipeline_loops import lower_pipeline_loops
from pypto.passes.pipelining.lower_pipeline_to_slots import lower_pipeline_to_slots
from pypto.passes.pipelining.skew_cross_core_pipeline import skew_cross_core_pipeline
from pypto.passes.properties import (
    IRProperty,
    IRPropertySet,
    get_default_verify_properties,
    get_structural_properties,
    get_verified_properties,
)
from pypto.passes.sequence import PassPipeline
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
from pypto.passes.verification import PropertyVerifierRegistry, run_verifier, verify_properties
from pypto.passes.verifiers.control_flow import NestedCallErrorType
from pypto.passes.verifiers.ssa import SSAErrorType
from pypto.passes.verifiers.types import TypeCheckErrorType, verify_tensor_view_canonical
