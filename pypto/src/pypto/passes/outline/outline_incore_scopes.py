"""OutlineIncoreScopes: every ``pl.at(CORE_GROUP)`` scope becomes an InCore function."""

from __future__ import annotations

from typing import Any

from pypto.errors import user_error
from pypto.ir.enums import FunctionType, SplitMode
from pypto.ir.expr import Call, Expr, Var, const_value
from pypto.ir.node import replace
from pypto.ir.program import PLACEMENT, Function, Program
from pypto.ir.stmt import AssignStmt, InCoreScopeStmt, ScopeStmt, SplitAivScopeStmt, Stmt
from pypto.ir.types import TensorType
from pypto.passes.lib.defer_wait import check_deferred_waits, is_deferred_waiter
from pypto.passes.lib.outlining import Namespace, Outliner, Target
from pypto.passes.lib.rewrite import rebuild_lists, substitute
from pypto.passes.lib.walk import iter_stmts
from pypto.passes.pass_ import program_pass
from pypto.passes.properties import IRProperty as P

_PARENTS = (FunctionType.Opaque, FunctionType.Orchestration, FunctionType.Graph)


@program_pass(
    "OutlineIncoreScopes", required=[P.SSAForm], produced=[P.SSAForm, P.SplitIncoreOrch, P.AivSplitValid]
)  # fmt: skip
def outline_incore_scopes(program: Program) -> Program:
    """Move InCore scopes into functions; an Opaque parent with a scope becomes Orchestration.

    Raises:
        ValueError: ``pl.split`` together with ``pl.split_aiv`` regions, or a misplaced ``defer_wait``.
    """
    names = Namespace(program)
    functions: list[Function] = []
    for function in program.functions.values():
        if function.body is None or function.func_type not in _PARENTS or not _has_scope(function):
            functions.append(function)
            continue
        check_deferred_waits(function)
        promoted = function
        if function.func_type is FunctionType.Opaque:
            level, role = PLACEMENT[FunctionType.Orchestration]
            promoted = replace(
                function,
                func_type=FunctionType.Orchestration,
                level=level,
                role=role,
                body=_fold_symbol_reads(function),
            )
        outliner = Outliner(promoted, names, _Chooser(promoted, names))
        functions.append(outliner.run())
        functions.extend(outliner.outlined)
    changed = len(functions) != len(program.functions)
    return Program(functions, program.name, program.span) if changed else program


def _has_scope(function: Function) -> bool:
    return any(isinstance(s, InCoreScopeStmt) for s in iter_stmts(function.body))


class _Chooser:
    """Names the functions of one parent; the number counts all its scopes, hinted ones too."""

    def __init__(self, function: Function, names: Namespace) -> None:
        self._function, self._names = function, names
        self._count = 0

    def __call__(self, scope: ScopeStmt) -> Target | None:
        if not isinstance(scope, InCoreScopeStmt):
            return None
        hint = scope.name_hint or f"{self._function.name}_incore_{self._count}"
        self._count += 1
        name = self._names.choose(hint, self._function.name)
        return Target(name, FunctionType.InCore, _function_attrs(scope))


def _function_attrs(scope: InCoreScopeStmt) -> dict[str, Any]:
    attrs: dict[str, Any] = {}
    modes = [s.split for s in iter_stmts(scope.body) if isinstance(s, SplitAivScopeStmt)]
    if modes:
        if scope.split is not SplitMode.NONE:
            raise user_error(
                "pl.split(...) and pl.split_aiv regions on one scope are mutually exclusive: keep the regions, or "
                "remove them and let pl.split halve the vector work",
                span=scope.span,
            )
        attrs["split_aiv"] = True
        if len(set(modes)) == 1 and modes[0] is not SplitMode.NONE:
            attrs["split"] = int(modes[0])
    elif scope.split is not SplitMode.NONE:
        attrs["split"] = int(scope.split)
    for key in ("slot_num", "windowize", "cache_policy"):
        if scope.attrs.get(key):
            attrs[key] = scope.attrs[key]
    if is_deferred_waiter(scope.body):
        attrs["deferred_completion_waiter"] = True
    return attrs


def _fold_symbol_reads(function: Function) -> Stmt:
    """Replace reads of a dynamic extent that the signature declares by its symbol: one quantity, one name."""
    params = {p for p in function.params if isinstance(p.type, TensorType)}
    symbols: dict[Var, Expr] = {}
    for stmt in iter_stmts(function.body):
        if type(stmt) is AssignStmt and isinstance(stmt.value, Call) and stmt.value.op.name == "tensor.dim":
            tensor, axis = stmt.value.args[0], const_value(stmt.value.args[1])
            if tensor in params and axis is not None and -len(tensor.type.shape) <= axis < len(tensor.type.shape):
                extent = tensor.type.shape[axis]
                if type(extent) is Var:
                    symbols[stmt.var] = extent
    if not symbols:
        return function.body

    def drop(stmts: list[Stmt]) -> list[Stmt]:
        kept = [s for s in stmts if not (type(s) is AssignStmt and s.var in symbols)]
        return kept if len(kept) != len(stmts) else stmts

    return substitute(rebuild_lists(function.body, drop), symbols)
