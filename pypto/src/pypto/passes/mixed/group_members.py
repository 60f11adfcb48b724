"""Hand-written Groups whose kernels take different arguments: give both the Group's own signature."""

from __future__ import annotations

from pypto.errors import user_error
from pypto.ir.enums import FunctionType
from pypto.ir.expr import Call, Expr, GlobalVar, Submit, Var
from pypto.ir.node import replace
from pypto.ir.program import Function, Program
from pypto.ir.stmt import Stmt
from pypto.ir.visitor import IRMutator
from pypto.passes.lib.rewrite import clone
from pypto.passes.lib.walk import iter_calls


def align_group_members(program: Program) -> Program:
    """Rebuild the AIC and AIV members of Groups that pass them different argument lists.

    Raises:
        ValueError: such a member is external, so its signature cannot be changed.
    """
    for group in list(program.functions.values()):
        if group.func_type is FunctionType.Group and group.body is not None:
            program = _align(program, group)
    return program


def _align(program: Program, group: Function) -> Program:
    calls = {}
    for _, call in iter_calls(group.body):
        member = program.get_function(call.op.name) if isinstance(call.op, GlobalVar) else None
        if member is not None and member.func_type in (FunctionType.AIC, FunctionType.AIV):
            calls[member.func_type] = (call, member)
    if len(calls) != 2:
        return program
    (cube_call, cube), (vector_call, vector) = calls[FunctionType.AIC], calls[FunctionType.AIV]
    same = len(cube_call.args) == len(vector_call.args) and all(
        a is b for a, b in zip(cube_call.args, vector_call.args)
    )
    if same:
        return program
    for member in (cube, vector):
        if member.body is None or member.requires_runtime_binding or member.attrs.get("external_source"):
            raise user_error(
                f"group '{group.name}': kernels '{cube.name}' and '{vector.name}' take different arguments and "
                f"'{member.name}' is external; give both identical signatures",
                span=group.span,
            )
    renamed: dict[str, str] = {}
    added: list[Function] = []
    shared = any(_has_other_callers(program, group, m.name) for m in (cube, vector))
    for call, member, suffix in ((cube_call, cube, "aic"), (vector_call, vector, "aiv")):
        name = f"{group.name}_{suffix}_adapter" if shared else member.name
        renamed[member.name] = name
        added.append(_rebuilt(member, call, group, name))
    peers = _Peers({old: new for old, new in renamed.items() if old != new})
    added = [peers.visit_function(f) for f in added]
    forwarded = _Forward(renamed, group).visit_function(group)
    names = {f.name for f in added} | {group.name}
    kept = [f for f in program.functions.values() if f.name not in names]
    return Program([*kept, *added, forwarded], program.name, program.span)


def _has_other_callers(program: Program, group: Function, name: str) -> bool:
    return any(
        call.op.name == name and isinstance(call.op, GlobalVar)
        for function in program.functions.values()
        if function is not group and function.body is not None
        for _, call in iter_calls(function.body)
    )


def _rebuilt(member: Function, call: Call | Submit, group: Function, name: str) -> Function:
    """The member with the group's parameters, its own ones replaced by what the group passes."""
    params = tuple(replace(p) for p in group.params)
    of_group = dict(zip(group.params, params))
    mapping: dict[Var, Expr] = {
        own: of_group.get(arg, arg) if isinstance(arg, Var) else arg for own, arg in zip(member.params, call.args)
    }
    directions = list(group.param_directions)
    for own, arg in zip(range(len(member.params)), call.args):
        for index, param in enumerate(group.params):
            if arg is param:
                directions[index] = member.param_directions[own]
    body: Stmt = clone(member.body, mapping)
    return replace(member, name=name, params=params, param_directions=directions, body=body)


class _Peers(IRMutator):
    """Retargets the ``peer_func`` names of pipe imports."""

    def __init__(self, renamed: dict[str, str]) -> None:
        super().__init__()
        self._renamed = renamed

    def visit_call(self, call: Call) -> Expr:
        call = super().visit_call(call)
        new = self._renamed.get(call.kwargs.get("peer_func"))
        return call if new is None else replace(call, kwargs={**call.kwargs, "peer_func": new})


class _Forward(IRMutator):
    """Calls both members with every parameter of the group."""

    def __init__(self, renamed: dict[str, str], group: Function) -> None:
        super().__init__()
        self._renamed, self._args = renamed, group.params

    def visit_call(self, call: Call) -> Expr:
        return self._forwarded(call) or super().visit_call(call)

    def visit_submit(self, submit: Submit) -> Expr:
        return self._forwarded(submit) or super().visit_submit(submit)

    def _forwarded(self, call: Call | Submit) -> Expr | None:
        new = self._renamed.get(call.op.name) if isinstance(call.op, GlobalVar) else None
        if new is None:
            return None
        attrs = {k: v for k, v in call.attrs.items() if k != "arg_directions"}
        overrides = attrs.get("arg_direction_overrides")
        if overrides:
            # The overrides count arguments; every argument moved to its place among the group's parameters.
            places = [next((i for i, p in enumerate(self._args) if p is arg), None) for arg in call.args]
            attrs["arg_direction_overrides"] = [places[i] for i in overrides if places[i] is not None]
        return replace(call, op=GlobalVar(new), args=self._args, attrs=attrs)
