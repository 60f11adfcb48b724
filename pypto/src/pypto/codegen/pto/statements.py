"""Statements of a kernel function: assignments, control flow, carries."""

from __future__ import annotations

from pypto.codegen.pto.kernel import KernelEmitter
from pypto.codegen.pto.operators import SCALAR_EMISSIONS, call_span, emit_call, load_emissions
from pypto.codegen.pto.scalars import index_value, scalar_value, truth_value, typed_value
from pypto.codegen.pto.types import signless_text
from pypto.errors import InternalError, UnsupportedFeatureError, user_error
from pypto.ir import Expr, Span, TensorType, TileType, Var
from pypto.ir import stmt as S
from pypto.ir.expr import Call, ConstInt, TupleGetItemExpr
from pypto.ir.types import ArrayType, PtrType, ScalarType

load_emissions()


def emit_body(emitter: KernelEmitter, stmt: S.Stmt) -> None:
    """Lines of a body in program order."""
    for child in S.flatten_to_stmts(stmt):
        emit_stmt(emitter, child)


def emit_stmt(emitter: KernelEmitter, stmt: S.Stmt) -> None:
    match stmt:
        case S.AssignStmt():
            _assign(emitter, stmt.var, stmt.value, stmt.span)
        case S.EvalStmt():
            _evaluate(emitter, stmt.expr, stmt.span)
        case S.ForStmt():
            _for(emitter, stmt)
        case S.IfStmt():
            _if(emitter, stmt)
        case S.WhileStmt():
            _while(emitter, stmt)
        case S.ReturnStmt():
            pass
        case S.ScopeStmt():
            emit_body(emitter, stmt.body)
        case _:
            raise InternalError(
                f"{type(stmt).__name__} cannot be printed in kernel '{emitter.function.name}'", span=stmt.span
            )


def _evaluate(emitter: KernelEmitter, expr: Expr, span: Span) -> None:
    if not isinstance(expr, Call):
        raise InternalError(f"a statement made of {type(expr).__name__} has no effect in a kernel", span=span)
    if expr.op.name in SCALAR_EMISSIONS:
        scalar_value(emitter, expr, span=call_span(span, expr))
        return
    emit_call(emitter, expr, None, span)


def _assign(emitter: KernelEmitter, var: Var, value: Expr, span: Span) -> None:
    if isinstance(value, Var):
        _alias(emitter, var, value)
    elif isinstance(var.type, ScalarType):
        at = call_span(span, value) if isinstance(value, Call) else span
        emitter.scalars[var] = scalar_value(emitter, value, hint=var.name_hint, span=at)
    elif isinstance(value, Call):
        emit_call(emitter, value, var, span)
    elif isinstance(value, TupleGetItemExpr):
        raise UnsupportedFeatureError(f"multi-output operators inside kernels [{span}]")
    elif not isinstance(var.type, PtrType):
        raise InternalError(f"cannot print the assignment of {type(value).__name__}", span=span)


def _alias(emitter: KernelEmitter, var: Var, value: Var) -> None:
    """``var`` becomes another name of ``value``."""
    for table in (emitter.tiles, emitter.tensors, emitter.scalars, emitter.unsigned, emitter.arrays, emitter.popped):
        if value in table:
            table[var] = table[value]


def _bind_carries(emitter: KernelEmitter, iter_args: tuple) -> None:
    """Tiles, tensors and arrays of a loop keep the handle of their initial value."""
    for arg in iter_args:
        if not isinstance(arg.type, ScalarType):
            _require_var(arg.initValue)
            _alias(emitter, arg, arg.initValue)


def _require_var(value: Expr) -> None:
    if not isinstance(value, Var):
        raise InternalError("a loop carry must start from a variable", span=value.span)


def _finish_carries(emitter: KernelEmitter, targets: tuple, values: tuple, span: Span) -> None:
    """At a yield: a tile that ends elsewhere is copied into the buffer of its carry."""
    for target, value in zip(targets, values):
        if isinstance(target.type, TileType):
            emitter.copy_if_elsewhere(emitter.tile(value), emitter.tile(target), span)
        elif isinstance(target.type, TensorType):
            old, new = emitter.tensors.get(target), emitter.tensors.get(value)
            if old is None or new is None or old.pointer != new.pointer:
                raise UnsupportedFeatureError(
                    f"a tensor carried by a loop or branch of kernel '{emitter.function.name}' that changes buffers"
                )


def _yield_values(body: S.Stmt) -> tuple:
    stmts = S.flatten_to_stmts(body)
    return stmts[-1].value if stmts and isinstance(stmts[-1], S.YieldStmt) else ()


def _body_without_yield(body: S.Stmt) -> list[S.Stmt]:
    stmts = S.flatten_to_stmts(body)
    return stmts[:-1] if stmts and isinstance(stmts[-1], S.YieldStmt) else stmts


def _scalar_positions(variables: tuple) -> list[int]:
    return [i for i, v in enumerate(variables) if isinstance(v.type, ScalarType)]


def _yield_line(emitter: KernelEmitter, targets: tuple, values: tuple, positions: list[int], span: Span) -> None:
    if not positions:
        return
    names = [typed_value(emitter, values[i], targets[i].type.dtype, span=span) for i in positions]
    types = [signless_text(targets[i].type.dtype) for i in positions]
    emitter.line(f"scf.yield {', '.join(names)} : {', '.join(types)}", span)


def _for(emitter: KernelEmitter, stmt: S.ForStmt) -> None:
    if isinstance(stmt.step, ConstInt) and stmt.step.value <= 0:
        raise user_error("a loop must have a positive step", span=stmt.span)
    bounds = [index_value(emitter, e, span=stmt.span) for e in (stmt.start, stmt.stop, stmt.step)]
    _bind_carries(emitter, stmt.iter_args)
    positions = _scalar_positions(stmt.iter_args)
    inits = [
        typed_value(emitter, stmt.iter_args[i].initValue, stmt.iter_args[i].type.dtype, span=stmt.span)
        for i in positions
    ]
    loop_var = emitter.fresh(stmt.loop_var.name_hint)
    emitter.scalars[stmt.loop_var] = loop_var
    header = f"scf.for {loop_var} = {bounds[0]} to {bounds[1]} step {bounds[2]}"
    results: list[str] = []
    if positions:
        pairs = []
        for i, init in zip(positions, inits):
            name = emitter.scalars[stmt.iter_args[i]] = emitter.fresh(stmt.iter_args[i].name_hint)
            pairs.append(f"{name} = {init}")
        results = [emitter.fresh(stmt.return_vars[i].name_hint) for i in positions]
        types = ", ".join(signless_text(stmt.iter_args[i].type.dtype) for i in positions)
        header = f"{', '.join(results)} = {header} iter_args({', '.join(pairs)}) -> ({types})"
    emitter.line(f"{header} {{")
    with emitter.region():
        for child in _body_without_yield(stmt.body):
            emit_stmt(emitter, child)
        values = _yield_values(stmt.body)
        _finish_carries(emitter, stmt.iter_args, values, stmt.span)
        _yield_line(emitter, stmt.iter_args, values, positions, stmt.span)
    emitter.line("}")
    for i, name in zip(positions, results):
        emitter.scalars[stmt.return_vars[i]] = name
    for arg, var in zip(stmt.iter_args, stmt.return_vars):
        if not isinstance(var.type, ScalarType):
            _alias(emitter, var, arg)


def _if(emitter: KernelEmitter, stmt: S.IfStmt) -> None:
    condition = truth_value(emitter, stmt.condition, stmt.span)
    positions = _scalar_positions(stmt.return_vars)
    for var in stmt.return_vars:
        if isinstance(var.type, TileType):
            with emitter.in_head():
                emitter.alloc_tile(var, emitter.function.span, physical_valid=True)
    header = f"scf.if {condition}"
    results: list[str] = []
    if positions:
        results = [emitter.fresh(stmt.return_vars[i].name_hint) for i in positions]
        types = ", ".join(signless_text(stmt.return_vars[i].type.dtype) for i in positions)
        header = f"{', '.join(results)} = {header} -> ({types})"
    emitter.line(f"{header} {{")
    _branch(emitter, stmt, stmt.then_body, positions)
    if stmt.else_body is not None:
        emitter.line("} else {")
        _branch(emitter, stmt, stmt.else_body, positions)
    emitter.line("}")
    for i, name in zip(positions, results):
        emitter.scalars[stmt.return_vars[i]] = name


def _branch(emitter: KernelEmitter, stmt: S.IfStmt, body: S.Stmt, positions: list[int]) -> None:
    with emitter.region():
        for child in _body_without_yield(body):
            emit_stmt(emitter, child)
        values = _yield_values(body)
        for var, value in zip(stmt.return_vars, values):
            if isinstance(var.type, TensorType) and var not in emitter.tensors:
                emitter.tensors[var] = emitter.tensor(value)
            if isinstance(var.type, ArrayType):
                _merge_array(emitter, var, value, stmt.span)
            if isinstance(var.type, TileType):
                _narrow_result(emitter, var, value)
        _finish_carries(emitter, stmt.return_vars, values, stmt.span)
        _yield_line(emitter, stmt.return_vars, values, positions, stmt.span)


def _merge_array(emitter: KernelEmitter, var: Var, value: Expr, span: Span) -> None:
    """Branches write the stack array in place, so they must end with one and the same array."""
    name = emitter.arrays.get(value) if isinstance(value, Var) else None
    if name is None or emitter.arrays.setdefault(var, name) != name:
        raise user_error(
            f"stack array '{var.name_hint}' must not be the result of an if whose branches end with different arrays; "
            "write the elements of one array in both branches",
            span=span,
        )


def _narrow_result(emitter: KernelEmitter, var: Var, value: Expr) -> None:
    """The result tile of a branch takes the valid region of its type once a branch has produced it."""
    handle = emitter.tiles[var]
    declared = emitter.valid_extents(var.type)
    physical = emitter.physical_extents(var.type)
    if all(isinstance(d, ConstInt) and d.value == p.value for d, p in zip(declared, physical)):
        return
    rows, cols = (index_value(emitter, d, span=value.span) for d in declared)
    emitter.line(f"pto.set_validshape {handle.name}, {rows}, {cols} : {handle.type_text}", value.span)
    handle.valid = declared


def _while(emitter: KernelEmitter, stmt: S.WhileStmt) -> None:
    _bind_carries(emitter, stmt.iter_args)
    positions = _scalar_positions(stmt.iter_args)
    args = [stmt.iter_args[i] for i in positions]
    types = [signless_text(a.type.dtype) for a in args]
    inits = [typed_value(emitter, a.initValue, a.type.dtype, span=stmt.span) for a in args]
    results = [emitter.fresh(stmt.return_vars[i].name_hint) for i in positions]
    before = [emitter.fresh() for _ in args]
    after = [emitter.fresh() for _ in args]
    head = f"{', '.join(results)} = scf.while" if results else "scf.while"
    pairs = f" ({', '.join(f'{b} = {i}' for b, i in zip(before, inits))})" if args else ""
    signature = f"({', '.join(types)}) -> ({', '.join(types)})"
    emitter.line(f"{head}{pairs} : {signature} {{")
    with emitter.region():
        for arg, name in zip(args, before):
            emitter.scalars[arg] = name
        condition = truth_value(emitter, stmt.condition, stmt.span)
        passed = f" {', '.join(before)} : {', '.join(types)}" if args else ""
        emitter.line(f"scf.condition({condition}){passed}", stmt.span)
    emitter.line("} do {")
    if args:
        emitter.line(f"^bb0({', '.join(f'{n} : {t}' for n, t in zip(after, types))}):")
    with emitter.region():
        for arg, name in zip(args, after):
            emitter.scalars[arg] = name
        for child in _body_without_yield(stmt.body):
            emit_stmt(emitter, child)
        values = _yield_values(stmt.body)
        _finish_carries(emitter, stmt.iter_args, values, stmt.span)
        if args:
            _yield_line(emitter, stmt.iter_args, values, positions, stmt.span)
        else:
            emitter.line("scf.yield", stmt.span)
    emitter.line("}")
    for i, name in zip(positions, results):
        emitter.scalars[stmt.return_vars[i]] = name
    for arg, var in zip(stmt.iter_args, stmt.return_vars):
        if not isinstance(var.type, ScalarType):
            _alias(emitter, var, arg)
