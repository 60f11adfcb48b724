"""SplitVectorKernel: make vector kernels safe to launch on both vector cores of a cluster."""

from __future__ import annotations

from pypto.errors import InternalError
from pypto.ir.dtype import DataType
from pypto.ir.enums import FunctionType, SplitMode
from pypto.ir.expr import Call, Eq, IterArg, MakeTuple, Var, _next_id, const_index
from pypto.ir.node import make, replace
from pypto.ir.program import Function
from pypto.ir.stmt import (
    AssignStmt,
    EvalStmt,
    ForStmt,
    IfStmt,
    ReturnStmt,
    Stmt,
    WhileStmt,
    flatten_to_stmts,
    seq,
)
from pypto.ir.types import TileType, Type, scalar_type
from pypto.passes.context import backend_handler
from pypto.passes.lib.op_facts import FREES, INIT_PIPES, POPS, PUSHES
from pypto.passes.lib.rewrite import Substitution, with_body
from pypto.passes.lib.walk import op_name, stmt_call
from pypto.passes.mixed.crossings import op_call
from pypto.passes.pass_ import function_pass
from pypto.passes.properties import IRProperty as P

_SETUP = INIT_PIPES | {"system.reserve_buffer", "system.import_peer_buffer"}
#: Producers that read memory: the replay gets an empty tile of the same shape instead.
_READERS = ("tile.load", "tile.slice", "tile.transpose")


def _empty(kind: Type) -> Type:
    """The tile type with nothing valid."""
    if not isinstance(kind, TileType):
        return kind
    zeros = tuple(const_index(0) for _ in kind.shape)
    return replace(kind, tile_view=replace(kind.get_effective_tile_view(), valid_shape=zeros))


class _Replay(Substitution):
    """The body as the idle lane runs it: the same pushes, pops and frees, but no data and no store."""

    def __init__(self) -> None:
        super().__init__(in_types=False)

    def visit_def(self, var: Var) -> Var:
        if var not in self.var_map:
            self.var_map[var] = replace(var, type=_empty(var.type))
        return self.var_map[var]

    def visit_iter_args(self, iter_args) -> tuple:
        inits = [self.visit_expr(a.initValue) for a in iter_args]
        result = []
        for arg, init in zip(iter_args, inits):
            new = make(IterArg, arg.name_hint, _empty(arg.type), arg.span, _next_id(), init)
            self.var_map[arg] = new
            result.append(new)
        return tuple(result)

    def list(self, stmts: list[Stmt]) -> list[Stmt]:
        result: list[Stmt] = []
        for stmt in stmts:
            result.extend(self._stmt(stmt))
        return result

    def _stmt(self, stmt: Stmt) -> list[Stmt]:
        call = stmt_call(stmt)
        if isinstance(call, Call):
            return self._call_stmt(stmt, call)
        kind = type(stmt)
        if kind is IfStmt:
            else_body = None if stmt.else_body is None else self._body(stmt.else_body)
            then_body = self._body(stmt.then_body)
            new = replace(
                stmt,
                condition=self.visit_expr(stmt.condition),
                then_body=then_body,
                else_body=else_body,
                return_vars=tuple(self.visit_def(v) for v in stmt.return_vars),
            )
            return [new]
        if kind is ForStmt or kind is WhileStmt:
            iter_args = self.visit_iter_args(stmt.iter_args)
            fields = {}
            if kind is ForStmt:
                fields = {name: self.visit_expr(getattr(stmt, name)) for name in ("start", "stop", "step")}
                fields["loop_var"] = self.visit_def(stmt.loop_var)
            else:
                fields["condition"] = self.visit_expr(stmt.condition)
            body = self._body(stmt.body)
            results = tuple(self.visit_def(v) for v in stmt.return_vars)
            return [replace(stmt, iter_args=iter_args, body=body, return_vars=results, **fields)]
        return [self.visit_stmt(stmt)]

    def _body(self, body: Stmt) -> Stmt:
        return seq(self.list(flatten_to_stmts(body)), body.span)

    def _call_stmt(self, stmt: Stmt, call: Call) -> list[Stmt]:
        name = call.op.name
        if name == "tile.store":
            if type(stmt) is not AssignStmt:
                return []
            target = self.visit_expr(call.args[2])
            var = self.visit_def(stmt.var)
            self.var_map[stmt.var] = target
            return [AssignStmt(var, target, stmt.span)]
        if type(stmt) is EvalStmt:
            keep = name in PUSHES or name in FREES or name.startswith("system.")
            return [self.visit_stmt(stmt)] if keep else []
        if name in _READERS and isinstance(stmt.var.type, TileType):
            kind = stmt.var.type
            kwargs = {"dtype": kind.dtype}
            if kind.memory_space is not None:
                kwargs["target_memory"] = kind.memory_space
            create = op_call("tile.create", (MakeTuple(kind.shape),), kwargs, _empty(kind), call.span)
            return [AssignStmt(self.visit_def(stmt.var), create, stmt.span)]
        new = self.visit_expr(call)
        if name == "tile.set_validshape":
            new = replace(new, args=(new.args[0], *(const_index(0) for _ in new.args[1:])))
        if name in POPS or isinstance(stmt.var.type, TileType):
            new = replace(new, type=_empty(new.type))
        return [AssignStmt(self.visit_def(stmt.var), new, stmt.span)]


def _setup_run(stmts: list[Stmt]) -> int:
    count = 0
    while count < len(stmts) and op_name(stmts[count]) in _SETUP:
        count += 1
    return count


def _guarded(function: Function) -> Function:
    """Lane 0 runs the body, lane 1 its replay."""
    stmts = flatten_to_stmts(function.body)
    span = function.span
    lane = Var("subblock_idx", scalar_type(DataType.INDEX), span)
    query = AssignStmt(lane, op_call("tile.get_subblock_idx", (), {}, lane.type, span), span)
    lead = _setup_run(stmts)
    work = stmts[lead:]
    if not work or all(isinstance(s, ReturnStmt) for s in work):
        return function
    first = Eq(lane, const_index(0, span), DataType.BOOL, span)
    branch = IfStmt(first, seq(work), seq(_Replay().list(work)), (), span)
    return with_body(function, seq([query, *stmts[:lead], branch], function.body.span))


@function_pass(
    "SplitVectorKernel",
    required=(P.SSAForm, P.MixedKernelExpanded),
    produced=(P.SSAForm, P.VectorKernelSplit, P.NormalizedStmtStructure),
)
def split_vector_kernel(function: Function) -> Function:
    """Write the lane attributes of split kernels; guard unsplit kernels that both lanes run."""
    if function.func_type not in (FunctionType.AIC, FunctionType.AIV):
        return function
    attrs = function.attrs
    handler = backend_handler()
    dual = handler is not None and handler.requires_no_split_dual_aiv_dispatch()
    if attrs.get("split_aiv"):
        return _split_attributes(function)
    split = function.split
    unsplit = split is None or split is SplitMode.NONE
    if not unsplit:
        if function.func_type is FunctionType.AIV and dual and not attrs.get("dual_aiv_dispatch"):
            return replace(function, attrs={**attrs, "dual_aiv_dispatch": True})
        return function
    if function.func_type is not FunctionType.AIV or not dual or not attrs.get("dual_aiv_dispatch"):
        return function
    if function.body is None or attrs.get("external_source") or _is_guarded(function):
        return function
    return _guarded(function)


def _split_attributes(function: Function) -> Function:
    attrs = dict(function.attrs)
    mode = attrs.pop("split", None)
    if mode is None and not attrs.get("split_aiv_region_validated"):
        raise InternalError(f"kernel '{function.name}' is split over the vector lanes but has no split mode")
    if mode is not None:
        attrs["split"] = mode
    if function.func_type is FunctionType.AIV:
        attrs.pop("dual_aiv_dispatch", None)
        attrs["dual_aiv_dispatch"] = True
    if list(attrs.items()) == list(function.attrs.items()):
        return function
    return replace(function, attrs=attrs)


def _is_guarded(function: Function) -> bool:
    """The body already branches on the lane."""
    stmts = flatten_to_stmts(function.body)
    return bool(stmts) and op_name(stmts[0]) == "tile.get_subblock_idx"
