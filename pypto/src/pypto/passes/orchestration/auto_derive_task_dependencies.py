"""AutoDeriveTaskDependencies: explicit task dependencies for AUTO scopes, on request."""

from __future__ import annotations

from pypto.errors import UnsupportedFeatureError
from pypto.ir.program import Program
from pypto.passes.pass_ import Pass, PassProperties, create_program_pass
from pypto.passes.properties import IRProperty as P


def auto_derive_task_dependencies(analyze_auto_scopes: bool = False) -> Pass:
    """Derive ``compiler_manual_dep_edges`` for AUTO scopes when asked; otherwise leave the program as it is."""

    def derive(program: Program) -> Program:
        if not analyze_auto_scopes:
            return program
        raise UnsupportedFeatureError("analyze_auto_scopes_for_deps: derived task dependencies")

    properties = PassProperties(
        required=(P.SplitIncoreOrch, P.CallDirectionsResolved), produced=(P.CallDirectionsResolved,)
    )
    return create_program_pass(derive, "AutoDeriveTaskDependencies", properties)
