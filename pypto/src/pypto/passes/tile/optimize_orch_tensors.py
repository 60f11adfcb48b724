"""OptimizeOrchTensors: fewer tensors and copies between orchestration and kernels."""

from __future__ import annotations

from pypto.ir.program import Program
from pypto.passes.pass_ import program_pass
from pypto.passes.properties import IRProperty as P
from pypto.passes.tile.orch_tensors.assemble_loops import store_from_loops
from pypto.passes.tile.orch_tensors.externalize_windows import externalize_windows
from pypto.passes.tile.orch_tensors.iter_arg_reuse import reuse_carried_tensors
from pypto.passes.tile.orch_tensors.parent_strides import use_parent_strides

_FORM = (P.SplitIncoreOrch, P.IncoreTileOps)


@program_pass("OptimizeOrchTensors", required=_FORM, produced=_FORM)
def optimize_orch_tensors(program: Program) -> Program:
    """Apply the patterns in order; each sees the result of the one before."""
    for pattern in (reuse_carried_tensors, use_parent_strides, store_from_loops, externalize_windows):
        program = pattern(program)
    return program
