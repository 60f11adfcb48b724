"""Cheap traversals of statements and expressions that passes share."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from pypto.ir.expr import (
    BinaryExpr,
    Call,
    ConstBool,
    ConstFloat,
    ConstInt,
    Expr,
    IterArg,
    MakeTuple,
    Submit,
    TupleGetItemExpr,
    UnaryExpr,
    Var,
)
from pypto.ir.memref import MemRef, WindowBuffer
from pypto.ir.program import Function, Program
from pypto.ir.stmt import (
    AssignStmt,
    EvalStmt,
    ForStmt,
    IfStmt,
    ReturnStmt,
    ScopeStmt,
    SeqStmts,
    SpmdScopeStmt,
    Stmt,
    WhileStmt,
    YieldStmt,
    flatten_to_stmts,
)
from pypto.ir.visitor import attr_exprs

_CONSTANTS = (ConstInt, ConstFloat, ConstBool)
_VARIABLES = (Var, IterArg, MemRef, WindowBuffer)


def iter_stmts(stmt: Stmt | None) -> Iterator[Stmt]:
    """Every statement below ``stmt`` in program order, parents first; sequences themselves are not produced."""
    stack = [] if stmt is None else [stmt]
    while stack:
        node = stack.pop()
        kind = type(node)
        if kind is SeqStmts:
            stack.extend(reversed(node.stmts))
            continue
        yield node
        if kind is AssignStmt or kind is EvalStmt:
            continue
        if kind is IfStmt:
            if node.else_body is not None:
                stack.append(node.else_body)
            stack.append(node.then_body)
        elif kind is ForStmt or kind is WhileStmt or isinstance(node, ScopeStmt):
            stack.append(node.body)


def bodies(stmt: Stmt) -> list[Stmt]:
    """The bodies directly inside a compound statement."""
    if isinstance(stmt, IfStmt):
        return [stmt.then_body] if stmt.else_body is None else [stmt.then_body, stmt.else_body]
    if isinstance(stmt, (ForStmt, WhileStmt, ScopeStmt)):
        return [stmt.body]
    return []


def stmt_call(stmt: Stmt) -> Call | Submit | None:
    """The call that an assignment or an expression statement makes, else None."""
    kind = type(stmt)
    value = stmt.value if kind is AssignStmt else stmt.expr if kind is EvalStmt else None
    return value if isinstance(value, (Call, Submit)) else None


def iter_calls(stmt: Stmt | None) -> Iterator[tuple[Stmt, Call | Submit]]:
    """(statement, call) of every statement-level call and submit below ``stmt`` in program order.

    Calls that a return statement returns directly are included.
    """
    for node in iter_stmts(stmt):
        call = stmt_call(node)
        if call is not None:
            yield node, call
        elif type(node) is ReturnStmt:
            for value in node.value:
                if isinstance(value, (Call, Submit)):
                    yield node, value


def op_name(stmt: Stmt) -> str:
    """Operator or function name of the call of a statement, empty without one."""
    call = stmt_call(stmt)
    return call.op.name if call is not None else ""


def used_vars(expr: Expr, found: list[Var] | None = None) -> list[Var]:
    """Variables that an expression reads, in order; variables inside types are not included."""
    found = [] if found is None else found
    stack = [expr]
    while stack:
        node = stack.pop()
        kind = type(node)
        if kind in _VARIABLES:
            found.append(node)
        elif kind in _CONSTANTS:
            continue
        elif kind is Call:
            stack.extend(reversed(node.args))
            if node.attrs:
                stack.extend(attr_exprs(node.attrs))
        elif kind is MakeTuple:
            stack.extend(reversed(node.elements))
        elif kind is TupleGetItemExpr:
            stack.append(node.tuple)
        elif kind is Submit:
            stack.extend(node.args)
            stack.extend(node.deps)
            stack.extend(e for e in (node.core_num, node.predicate) if e is not None)
            stack.extend(attr_exprs(node.attrs))
        elif isinstance(node, BinaryExpr):
            stack.append(node.right)
            stack.append(node.left)
        elif isinstance(node, UnaryExpr):
            stack.append(node.operand)
        else:
            raise TypeError(f"used_vars cannot read {kind.__name__}")
    return found


def direct_uses(stmt: Stmt) -> list[Var]:
    """Variables that a statement itself reads: operands, conditions, bounds and initial values, not its bodies."""
    kind = type(stmt)
    found: list[Var] = []
    if kind is AssignStmt:
        used_vars(stmt.value, found)
    elif kind is EvalStmt:
        used_vars(stmt.expr, found)
    elif kind is YieldStmt or kind is ReturnStmt:
        for value in stmt.value:
            used_vars(value, found)
    elif kind is IfStmt:
        used_vars(stmt.condition, found)
    elif kind is ForStmt:
        for bound in (stmt.start, stmt.stop, stmt.step):
            used_vars(bound, found)
        for arg in stmt.iter_args:
            used_vars(arg.initValue, found)
        for value in attr_exprs(stmt.attrs):
            used_vars(value, found)
    elif kind is WhileStmt:
        for arg in stmt.iter_args:
            used_vars(arg.initValue, found)
        used_vars(stmt.condition, found)
    elif isinstance(stmt, ScopeStmt):
        if kind is SpmdScopeStmt:
            used_vars(stmt.core_num, found)
        task_id = stmt.attrs.get("task_id_var")  # defined by the scope
        for value in attr_exprs(stmt.attrs):
            if value is not task_id:
                used_vars(value, found)
    return found


def all_uses(stmt: Stmt) -> set[Var]:
    """Every variable read by ``stmt`` or anything inside it."""
    found: set[Var] = set()
    for node in iter_stmts(stmt):
        found.update(direct_uses(node))
    return found


def defined_vars(stmt: Stmt) -> list[Var]:
    """Variables that one statement binds: target, loop variable, carries, results (not those of its bodies)."""
    kind = type(stmt)
    if kind is AssignStmt:
        return [stmt.var]
    if kind is ForStmt:
        return [stmt.loop_var, *stmt.iter_args, *stmt.return_vars]
    if kind is WhileStmt:
        return [*stmt.iter_args, *stmt.return_vars]
    if kind is IfStmt:
        return list(stmt.return_vars)
    return []


def yielded(body: Stmt | None) -> tuple:
    """Values of the yield that ends a body, ``()`` without one."""
    while type(body) is SeqStmts and body.stmts:
        body = body.stmts[-1]
    if type(body) is YieldStmt:
        return body.value
    if isinstance(body, ScopeStmt):
        return yielded(body.body)
    return ()


def body_stmts(function: Function) -> list[Stmt]:
    """The statements of a function body."""
    return flatten_to_stmts(function.body)


def map_functions(program: Program, transform: Callable[[Function], Function]) -> Program:
    """The program with every function transformed; the same object when no function changed."""
    changed = False
    functions = {}
    for key, function in program.functions.items():
        new = transform(function)
        changed = changed or new is not function
        functions[key] = new
    return Program(functions, program.name, program.span) if changed else program
