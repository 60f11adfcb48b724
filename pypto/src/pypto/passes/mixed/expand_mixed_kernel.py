"""ExpandMixedKernel: split every kernel that uses both cores into a cube and a vector kernel that exchange tiles."""

from __future__ import annotations

from collections.abc import Iterable

from pypto.ir.enums import FunctionType, SplitMode
from pypto.ir.expr import Call, GlobalVar, Submit, Var
from pypto.ir.node import make, replace
from pypto.ir.program import PLACEMENT as LEVELS
from pypto.ir.program import Function, Program
from pypto.ir.stmt import AssignStmt, EvalStmt, ReturnStmt, SplitAivScopeStmt, Stmt, flatten_to_stmts, seq
from pypto.ir.types import TupleType, Type, UnknownType
from pypto.ir.visitor import IRMutator
from pypto.passes.context import backend_handler
from pypto.passes.lib.core_affinity import PLACEMENT, Affinity, stmt_affinity
from pypto.passes.lib.lineage import Lineage
from pypto.passes.lib.rewrite import rebuild_lists, with_body
from pypto.passes.lib.walk import iter_calls, iter_stmts, map_functions, op_name, stmt_call
from pypto.passes.mixed.crossings import fractal_form, gathers_land_in_mat
from pypto.passes.mixed.deferred_waiters import check_deferred_waiters
from pypto.passes.mixed.gm_exchange import fence_gm_exchanges
from pypto.passes.mixed.group_members import align_group_members
from pypto.passes.mixed.pipe_setup import has_setup, pipe_shape, setup, with_setup
from pypto.passes.mixed.sides import Side, private_copy
from pypto.passes.mixed.split_checks import check_split_transposes
from pypto.passes.mixed.tile_frees import add_frees
from pypto.passes.pass_ import program_pass
from pypto.passes.properties import IRProperty as P

_REQUIRED = (
    P.SSAForm, P.IncoreTileOps, P.SplitIncoreOrch, P.TileOps2D, P.TileMemoryInferred, P.NormalizedStmtStructure,
)  # fmt: skip


def retyped(function: Function, func_type: FunctionType, **changes) -> Function:
    """The function with another type and the level and role that go with it."""
    level, role = LEVELS[func_type]
    return replace(function, func_type=func_type, level=level, role=role, **changes)


class _Placement(IRMutator):
    """Drops the placement attribute of calls."""

    def visit_type(self, kind: Type) -> Type:
        return kind

    def visit_call(self, call: Call) -> Call:
        if PLACEMENT not in call.attrs:
            return call
        return replace(call, attrs={k: v for k, v in call.attrs.items() if k != PLACEMENT})


def _function_affinity(function: Function) -> Affinity:
    result = Affinity.SHARED
    for stmt in flatten_to_stmts(function.body):
        result |= stmt_affinity(stmt)
    return result


def _single_core(function: Function, affinity: Affinity) -> Function:
    func_type = FunctionType.AIC if affinity is Affinity.CUBE else FunctionType.AIV
    attrs = function.attrs
    if "split" in attrs:
        attrs = {k: v for k, v in attrs.items() if k != "split"}
    if any(PLACEMENT in call.attrs for _, call in iter_calls(function.body)):
        function = _Placement().visit_function(function)
    function = with_body(function, add_frees(_without_regions(function.body)))
    return retyped(function, func_type, attrs=attrs)


def _without_regions(body: Stmt) -> Stmt:
    """Lane regions have done their work once every statement has its core."""
    if not any(isinstance(s, SplitAivScopeStmt) for s in iter_stmts(body)):
        return body

    def edit(stmts: list[Stmt]) -> list[Stmt]:
        result: list[Stmt] = []
        for stmt in stmts:
            if isinstance(stmt, SplitAivScopeStmt):
                inner = flatten_to_stmts(stmt.body)
                if inner and stmt.leading_comments and not inner[0].leading_comments:
                    inner[0].leading_comments[:] = stmt.leading_comments
                result.extend(inner)
            else:
                result.append(stmt)
        return result

    return rebuild_lists(body, edit)


class _Expansion:
    """The functions that replace one mixed kernel."""

    def __init__(self, function: Function, origins: dict[Var, Var]) -> None:
        self.name = function.name
        check_split_transposes(function)
        body = fence_gm_exchanges(gathers_land_in_mat(_without_regions(function.body)), origins)
        function = with_body(function, body)
        cube = Side(function, Affinity.CUBE, origins).build()
        vector = Side(function, Affinity.VECTOR, origins).build()
        if not has_setup([*cube, *vector]):
            shape = pipe_shape(function, [cube, vector])
            if shape is not None:
                cube = with_setup(cube, setup(self.name, shape, cube=True, span=function.span))
                vector = with_setup(vector, setup(self.name, shape, cube=False, span=function.span))
        cube, cube_params = private_copy(flatten_to_stmts(add_frees(seq(cube))), function.params)
        vector = flatten_to_stmts(add_frees(seq(vector)))
        attrs = dict(function.attrs)
        self.aic = retyped(
            function, FunctionType.AIC, name=f"{self.name}_aic", params=cube_params, return_types=[],
            body=seq(cube, function.span), attrs=attrs,
        )  # fmt: skip
        self.aiv = retyped(
            function, FunctionType.AIV, name=f"{self.name}_aiv", body=seq(vector, function.span), attrs=dict(attrs)
        )
        self._origins = origins
        self._function = function

    def group(self) -> Function:
        """The Group that launches both kernels."""
        function = self._function
        _, params = private_copy([], function.params)
        position = dict(zip(function.params, params))
        span = function.span
        cube = make(Call, GlobalVar(self.aic.name), params, {}, {}, UnknownType.get(), span)
        kind = _result_type(function)
        vector = make(Call, GlobalVar(self.aiv.name), params, {}, {}, kind, span)
        stmts: list[Stmt] = [EvalStmt(cube, span)]
        returned = _returned(self.aiv)
        origins = [self._origins.get(v) if isinstance(v, Var) else None for v in returned]
        if all(o in position for o in origins):
            stmts.append(EvalStmt(vector, span))
            values = tuple(position[o] for o in origins)
            if values:
                stmts.append(make(ReturnStmt, values, span, []))
        else:
            result = Var("result", kind, span)
            stmts.append(AssignStmt(result, vector, span))
            stmts.append(make(ReturnStmt, (result,), span, []))
        return retyped(function, FunctionType.Group, params=params, body=seq(stmts, span), attrs=dict(function.attrs))


def _returned(function: Function) -> tuple:
    for stmt in flatten_to_stmts(function.body):
        if isinstance(stmt, ReturnStmt):
            return stmt.value
    return ()


def _result_type(function: Function) -> Type:
    kinds = function.return_types
    return UnknownType.get() if not kinds else kinds[0] if len(kinds) == 1 else TupleType(tuple(kinds))


def _calls_into(program: Program, names: set[str]) -> dict[str, set[FunctionType]]:
    """Mixed kernel -> types of the functions that call it."""
    callers: dict[str, set[FunctionType]] = {name: set() for name in names}
    for function in program.functions.values():
        if function.body is None:
            continue
        for stmt in iter_stmts(function.body):
            calls: Iterable = [stmt_call(stmt)]
            if isinstance(stmt, ReturnStmt):
                calls = stmt.value
            for call in calls:
                if isinstance(call, (Call, Submit)) and isinstance(call.op, GlobalVar) and call.op.name in callers:
                    callers[call.op.name].add(function.func_type)
    return callers


def _inline_in_group(function: Function, expansions: dict[str, _Expansion]) -> Function:
    """An existing Group launches the two kernels itself: cube first, then vector in place of the old call."""

    def edit(stmts: list[Stmt]) -> list[Stmt]:
        result: list[Stmt] = []
        changed = False
        for stmt in stmts:
            call = stmt_call(stmt)
            expansion = expansions.get(call.op.name) if call is not None else None
            if expansion is None or not isinstance(call, Call):
                result.append(stmt)
                continue
            changed = True
            cube = replace(call, op=GlobalVar(expansion.aic.name), type=UnknownType.get())
            vector = replace(call, op=GlobalVar(expansion.aiv.name))
            result.append(EvalStmt(cube, stmt.span))
            result.append(replace(stmt, value=vector) if type(stmt) is AssignStmt else replace(stmt, expr=vector))
        return result if changed else stmts

    return with_body(function, rebuild_lists(function.body, edit))


def _adapt_pushes(function: Function) -> Function:
    """Hand-written pushes to the cube core get the fractal layout too (where the backend needs it)."""
    handler = backend_handler()
    if handler is None or not handler.requires_vto_c_fractal_adapt() or function.body is None:
        return function
    if not any(call.op.name == "tile.tpush_to_aic" for _, call in iter_calls(function.body)):
        return function

    def edit(stmts: list[Stmt]) -> list[Stmt]:
        result: list[Stmt] = []
        for stmt in stmts:
            if op_name(stmt) == "tile.tpush_to_aic":
                call = stmt_call(stmt)
                moves, tile = fractal_form(call.args[0], stmt.span)
                if moves:
                    result.extend(moves)
                    stmt = replace(stmt, expr=replace(call, args=(tile, *call.args[1:])))
            result.append(stmt)
        return result if len(result) != len(stmts) else stmts

    return with_body(function, rebuild_lists(function.body, edit))


def _uses_pipe(function: Function) -> bool:
    return function.body is not None and any(
        call.op.name in ("system.aiv_initialize_pipe", "tile.tpop_from_aic", "tile.tpush_to_aic")
        for _, call in iter_calls(function.body)
    )


def _grouped_vector_kernels(program: Program) -> set[str]:
    """Vector kernels that a Group launches next to a cube kernel."""
    found: set[str] = set()
    for function in program.functions.values():
        if function.func_type is FunctionType.Group and function.body is not None:
            callees = [c.op.name for _, c in iter_calls(function.body) if isinstance(c.op, GlobalVar)]
            kinds = {n: f.func_type for n in callees if (f := program.get_function(n)) is not None}
            if FunctionType.AIC in kinds.values():
                found.update(n for n, t in kinds.items() if t is FunctionType.AIV)
    return found


def _dispatch_both_lanes(program: Program) -> Program:
    """Without a split both vector cores are launched where the hardware cannot launch one alone."""
    handler = backend_handler()
    if handler is None or not handler.requires_no_split_dual_aiv_dispatch():
        return program
    grouped = _grouped_vector_kernels(program)

    def mark(function: Function) -> Function:
        split = function.split
        unsplit = split is None or split is SplitMode.NONE
        if function.name not in grouped or not unsplit or function.attrs.get("split_aiv"):
            return function
        if function.attrs.get("dual_aiv_dispatch") or not _uses_pipe(function):
            return function
        return replace(function, attrs={**function.attrs, "dual_aiv_dispatch": True})

    return map_functions(program, mark)


@program_pass(
    "ExpandMixedKernel",
    required=(*_REQUIRED, P.AivSplitLoweredValid),
    produced=(P.SSAForm, P.MixedKernelExpanded, P.NormalizedStmtStructure, P.HardSyncallOccupancyValid),
    invalidated=(P.AivSplitLoweredValid,),
)
def expand_mixed_kernel(program: Program) -> Program:
    """Pure kernels change their type; a mixed kernel ``F`` becomes ``F_aic``, ``F_aiv`` and a Group ``F``."""
    check_deferred_waiters(program)
    lineage = Lineage(program)
    expansions: dict[str, _Expansion] = {}
    functions: list[Function] = []
    for function in program.functions.values():
        if function.func_type is not FunctionType.InCore:
            functions.append(function)
        elif function.body is None:
            functions.append(retyped(function, FunctionType.AIV))
        elif (affinity := _function_affinity(function)) & Affinity.BOUNDARY in (Affinity.MIXED, Affinity.BOUNDARY):
            expansions[function.name] = _Expansion(function, lineage.origins(function))
        else:
            functions.append(_single_core(function, affinity))
    if expansions:
        callers = _calls_into(program, set(expansions))
        result: list[Function] = []
        for function in functions:
            if function.func_type is FunctionType.Group and function.body is not None:
                function = _inline_in_group(function, expansions)
            result.append(function)
        for name, expansion in expansions.items():
            result += [expansion.aic, expansion.aiv]
            if callers[name] != {FunctionType.Group}:
                result.append(expansion.group())
        functions = result
    if not expansions and all(a is b for a, b in zip(functions, program.functions.values())):
        new = program
    else:
        new = Program(functions, program.name, program.span)
    new = align_group_members(new)
    new = map_functions(new, lambda f: _adapt_pushes(f) if f.func_type is FunctionType.AIV else f)
    new = map_functions(new, _freed_by_hand)
    return _dispatch_both_lanes(new)


def _freed_by_hand(function: Function) -> Function:
    """Hand-written AIC and AIV kernels get their missing frees as well."""
    if function.func_type not in (FunctionType.AIC, FunctionType.AIV) or function.body is None:
        return function
    return with_body(function, add_frees(function.body))
