"""OutlineHierarchyScopes: ``pl.at`` scopes above the core group become functions with a level and a role."""

from __future__ import annotations

from pypto.ir.enums import FunctionType, Level, Role
from pypto.ir.program import Function, Program
from pypto.ir.stmt import HierarchyScopeStmt, ScopeStmt
from pypto.passes.lib.outlining import Namespace, Outliner, Target
from pypto.passes.lib.walk import iter_stmts
from pypto.passes.pass_ import program_pass
from pypto.passes.properties import IRProperty as P

_LEVEL_WORDS = {
    Level.AIV: "aiv",
    Level.AIC: "aic",
    Level.CORE_GROUP: "core_group",
    Level.CHIP_DIE: "chip_die",
    Level.CHIP: "chip",
    Level.HOST: "host",
    Level.CLUSTER_0: "cluster0",
    Level.CLUSTER_1: "cluster1",
    Level.CLUSTER_2: "cluster2",
    Level.GLOBAL: "global",
}
_ROLE_WORDS = {Role.Orchestrator: "orch", Role.SubWorker: "worker"}


@program_pass(
    "OutlineHierarchyScopes",
    required=[P.SSAForm],
    produced=[P.SSAForm, P.HierarchyOutlined, P.OrchestrationReferencesResolved],
)
def outline_hierarchy_scopes(program: Program) -> Program:
    """Move hierarchy scopes of Opaque functions into Opaque functions, outer scopes first, named after their parent."""
    names = Namespace(program)
    functions: list[Function] = []
    pending = list(program.functions.values())
    while pending:
        function = pending.pop(0)
        if function.func_type is FunctionType.Opaque and function.body is not None and _has_scope(function):
            outliner = Outliner(function, names, _Chooser(function, names))
            function = outliner.run()
            pending.extend(outliner.outlined)  # scopes inside a scope
        functions.append(function)
    changed = len(functions) != len(program.functions)
    return Program(functions, program.name, program.span) if changed else program


def _has_scope(function: Function) -> bool:
    return any(isinstance(s, HierarchyScopeStmt) for s in iter_stmts(function.body))


class _Chooser:
    """Names the functions of one parent."""

    def __init__(self, function: Function, names: Namespace) -> None:
        self._function, self._names = function, names
        self._count = 0

    def __call__(self, scope: ScopeStmt) -> Target | None:
        if not isinstance(scope, HierarchyScopeStmt):
            return None
        words = [self._function.name, _LEVEL_WORDS[scope.level]]
        if scope.role is not None:
            words.append(_ROLE_WORDS[scope.role])
        hint = scope.name_hint or "_".join([*words, str(self._count)])
        self._count += 1
        name = self._names.choose(hint, self._function.name)
        return Target(name, FunctionType.Opaque, level=scope.level, role=scope.role, export_stores=False)
