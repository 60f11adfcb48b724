"""OutlineClusterScopes: cluster scopes become Group functions, standalone spmd scopes Spmd functions."""

from __future__ import annotations

from typing import Any

from pypto.ir.enums import FunctionType
from pypto.ir.expr import Expr, Var
from pypto.ir.node import replace
from pypto.ir.program import Function, Program
from pypto.ir.stmt import ClusterScopeStmt, ScopeStmt, SpmdScopeStmt, Stmt, flatten_to_stmts
from pypto.passes.lib.outlining import Namespace, Outliner, Target
from pypto.passes.lib.rewrite import Substitution, rebuild_lists, with_body
from pypto.passes.lib.walk import iter_stmts
from pypto.passes.pass_ import program_pass
from pypto.passes.properties import IRProperty as P

_PARENTS = (FunctionType.Opaque, FunctionType.Orchestration)


@program_pass("OutlineClusterScopes", required=[P.SSAForm], produced=[P.SSAForm, P.ClusterOutlined])
def outline_cluster_scopes(program: Program) -> Program:
    """Move clusters, then spmd scopes outside of clusters, into functions; launch counts stay at the dispatch."""
    names = Namespace(program)
    functions: list[Function] = []
    for function in program.functions.values():
        if function.body is None or function.func_type not in _PARENTS:
            functions.append(function)
            continue
        for scope_type in (ClusterScopeStmt, SpmdScopeStmt):
            if any(isinstance(s, scope_type) for s in iter_stmts(function.body)):
                outliner = Outliner(function, names, _Chooser(function, names, scope_type), _lift_nested_launch)
                function = outliner.run()
                functions.extend(outliner.outlined)
        functions.append(function)
    changed = len(functions) != len(program.functions)
    return Program(functions, program.name, program.span) if changed else program


class _Chooser:
    """Names the functions of one parent and one kind of scope."""

    def __init__(self, function: Function, names: Namespace, scope_type: type) -> None:
        self._function, self._names, self._scope_type = function, names, scope_type
        self._count = 0

    def __call__(self, scope: ScopeStmt) -> Target | None:
        if not isinstance(scope, self._scope_type):
            return None
        spmd = isinstance(scope, SpmdScopeStmt)
        hint = scope.name_hint or f"{self._function.name}_{'spmd' if spmd else 'cluster'}_{self._count}"
        self._count += 1
        name = self._names.choose(hint, self._function.name)
        if not spmd:
            return Target(name, FunctionType.Group)
        return Target(name, FunctionType.Spmd, launch=_launch(scope))


def _launch(scope: SpmdScopeStmt) -> dict[str, Any]:
    launch: dict[str, Any] = {"core_num": scope.core_num}
    if scope.sync_start:
        launch["sync_start"] = True
    return launch


def _lift_nested_launch(function: Function, launch: dict, args: list[Expr]) -> tuple[Function, dict]:
    """The launch of an spmd scope inside a cluster moves to the dispatch of the Group, in terms of its arguments."""
    if function.func_type is not FunctionType.Group:
        return function, launch
    nested = next((s for s in iter_stmts(function.body) if isinstance(s, SpmdScopeStmt)), None)
    if nested is None:
        return function, launch
    to_caller: dict[Var, Expr] = dict(zip(function.params, args))
    lifted = _launch(nested)
    lifted["core_num"] = Substitution(to_caller).visit_expr(nested.core_num)

    def unwrap(stmts: list[Stmt]) -> list[Stmt]:
        if not any(isinstance(s, SpmdScopeStmt) for s in stmts):
            return stmts
        return [t for s in stmts for t in (flatten_to_stmts(s.body) if isinstance(s, SpmdScopeStmt) else [s])]

    flat = with_body(function, rebuild_lists(function.body, unwrap))
    return replace(flat, attrs={**function.attrs, "spmd_unwrapped": True}), {**launch, **lifted}
