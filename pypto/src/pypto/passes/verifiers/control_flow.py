"""Properties of statement structure: nesting of calls, blocks, jumps, and loop kinds."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum

from pypto.ir.enums import ForKind, is_incore_type
from pypto.ir.expr import BinaryExpr, Call, Expr, MakeTuple, Submit, TupleGetItemExpr, UnaryExpr
from pypto.ir.program import Program
from pypto.ir.stmt import (
    AssignStmt,
    BreakStmt,
    ContinueStmt,
    EvalStmt,
    ForStmt,
    IfStmt,
    InCoreScopeStmt,
    ReturnStmt,
    ScopeStmt,
    SeqStmts,
    Stmt,
    WhileStmt,
    YieldStmt,
    flatten_to_stmts,
)
from pypto.passes.diagnostics import Diagnostic
from pypto.passes.lib.walk import iter_stmts
from pypto.passes.properties import IRProperty
from pypto.passes.verification import PropertyVerifierRegistry
from pypto.passes.verifiers.base import defined_functions, error


class NestedCallErrorType(Enum):
    CALL_IN_CALL_ARGS = 201
    CALL_IN_IF_CONDITION = 202
    CALL_IN_FOR_RANGE = 203
    CALL_IN_BINARY_EXPR = 204
    CALL_IN_UNARY_EXPR = 205


@PropertyVerifierRegistry.register(IRProperty.NoNestedCalls)
def verify_no_nested_calls(program: Program) -> list[Diagnostic]:
    """Calls stand alone on the right of an assignment or as a statement."""
    found: list[Diagnostic] = []
    for function in defined_functions(program):
        for stmt in iter_stmts(function.body):
            kind = type(stmt)
            if kind is AssignStmt:
                _check_calls(stmt.value, None, found)
            elif kind is EvalStmt:
                _check_calls(stmt.expr, None, found)
            elif kind is IfStmt or kind is WhileStmt:
                _check_calls(stmt.condition, NestedCallErrorType.CALL_IN_IF_CONDITION, found)
            elif kind is ForStmt:
                for bound in (stmt.start, stmt.stop, stmt.step):
                    _check_calls(bound, NestedCallErrorType.CALL_IN_FOR_RANGE, found)
            elif kind is ReturnStmt or kind is YieldStmt:
                for value in stmt.value:
                    _check_calls(value, None, found)
    return found


def _check_calls(expr: Expr, place: NestedCallErrorType | None, found: list[Diagnostic]) -> None:
    """Report the calls in ``expr``; ``place`` says where ``expr`` stands (None: where a call may stand)."""
    kind = type(expr)
    if kind is Call or kind is Submit:
        if place is not None:
            found.append(error("NoNestedCall", place, f"Call of '{expr.op.name}' nested ({place.name})", expr.span))
        for arg in expr.args:
            _check_calls(arg, NestedCallErrorType.CALL_IN_CALL_ARGS, found)
    elif kind is MakeTuple:
        for element in expr.elements:
            _check_calls(element, place, found)
    elif kind is TupleGetItemExpr:
        _check_calls(expr.tuple, place, found)
    elif isinstance(expr, BinaryExpr):
        inner = place or NestedCallErrorType.CALL_IN_BINARY_EXPR
        _check_calls(expr.left, inner, found)
        _check_calls(expr.right, inner, found)
    elif isinstance(expr, UnaryExpr):
        _check_calls(expr.operand, place or NestedCallErrorType.CALL_IN_UNARY_EXPR, found)


@PropertyVerifierRegistry.register(IRProperty.BreakContinueValid)
def verify_break_continue(program: Program) -> list[Diagnostic]:
    """Jumps belong to a sequential ``for`` or a ``while``."""
    found: list[Diagnostic] = []
    for function in defined_functions(program):
        _check_jumps(function.body, None, found)
    return found


def _check_jumps(body: Stmt | None, loop: Stmt | None, found: list[Diagnostic]) -> None:
    for stmt in flatten_to_stmts(body):
        kind = type(stmt)
        if kind is BreakStmt or kind is ContinueStmt:
            word = "break" if kind is BreakStmt else "continue"
            if loop is None:
                found.append(error("BreakContinueCheck", 301, f"'{word}' outside of a loop", stmt.span))
            elif isinstance(loop, ForStmt) and loop.kind is not ForKind.Sequential:
                name = loop.kind.name.lower()
                message = f"'{word}' inside a {name} loop; use a sequential loop (pl.range) or a while loop"
                found.append(error("BreakContinueCheck", 302, message, stmt.span))
        elif kind is IfStmt:
            _check_jumps(stmt.then_body, loop, found)
            _check_jumps(stmt.else_body, loop, found)
        elif kind is ForStmt or kind is WhileStmt:
            _check_jumps(stmt.body, stmt, found)
        elif isinstance(stmt, ScopeStmt):
            _check_jumps(stmt.body, loop, found)


def _sequences(program: Program) -> Iterable[tuple[str, SeqStmts]]:
    for function in defined_functions(program):
        stack: list[Stmt | None] = [function.body]
        while stack:
            stmt = stack.pop()
            kind = type(stmt)
            if kind is SeqStmts:
                yield function.name, stmt
                stack.extend(stmt.stmts)
            elif kind is IfStmt:
                stack += [stmt.then_body, stmt.else_body]
            elif kind is ForStmt or kind is WhileStmt or isinstance(stmt, ScopeStmt):
                stack.append(stmt.body)


def _redundant_blocks(program: Program, rule: str) -> list[Diagnostic]:
    found: list[Diagnostic] = []
    for name, sequence in _sequences(program):
        if len(sequence.stmts) == 1:
            found.append(error(rule, 1, f"SeqStmts with exactly one child in function '{name}'", sequence.span))
        if any(type(child) is SeqStmts for child in sequence.stmts):
            found.append(error(rule, 2, f"SeqStmts directly inside a SeqStmts in function '{name}'", sequence.span))
    return found


@PropertyVerifierRegistry.register(IRProperty.NormalizedStmtStructure)
def verify_normalized(program: Program) -> list[Diagnostic]:
    """Nested sequences are flattened and single statements unwrapped."""
    return _redundant_blocks(program, "NormalizedStmtStructure")


@PropertyVerifierRegistry.register(IRProperty.NoRedundantBlocks)
def verify_no_redundant_blocks(program: Program) -> list[Diagnostic]:
    """No sequence of one statement, no sequence directly inside another."""
    return _redundant_blocks(program, "NoRedundantBlocks")


@PropertyVerifierRegistry.register(IRProperty.StructuredCtrlFlow)
def verify_structured(program: Program) -> list[Diagnostic]:
    """No break or continue in code that runs on a core."""
    found: list[Diagnostic] = []
    for function in defined_functions(program):
        roots: list[Stmt] = []
        if is_incore_type(function.func_type):
            roots = [function.body]
        else:
            roots = [s.body for s in iter_stmts(function.body) if isinstance(s, InCoreScopeStmt)]
        for root in roots:
            for stmt in iter_stmts(root):
                if isinstance(stmt, (BreakStmt, ContinueStmt)):
                    word = "break" if isinstance(stmt, BreakStmt) else "continue"
                    message = f"'{word}' remains in function '{function.name}'"
                    found.append(error("StructuredCtrlFlow", 1, message, stmt.span))
    return found


def _loops_of_kind(program: Program, kind: ForKind, rule: str) -> list[Diagnostic]:
    return [
        error(rule, 1, f"{kind.name} loop remains in function '{function.name}'", stmt.span)
        for function in defined_functions(program)
        for stmt in iter_stmts(function.body)
        if type(stmt) is ForStmt and stmt.kind is kind
    ]


@PropertyVerifierRegistry.register(IRProperty.UnrollResolved)
def verify_unroll_resolved(program: Program) -> list[Diagnostic]:
    """No unroll loop remains."""
    return _loops_of_kind(program, ForKind.Unroll, "UnrollResolved")


@PropertyVerifierRegistry.register(IRProperty.PipelineResolved)
def verify_pipeline_resolved(program: Program) -> list[Diagnostic]:
    """No pipeline loop remains."""
    return _loops_of_kind(program, ForKind.Pipeline, "PipelineResolved")


@PropertyVerifierRegistry.register(IRProperty.PipelineLoopValid)
def verify_pipeline_loops(program: Program) -> list[Diagnostic]:
    """A loop is of kind Pipeline exactly when it states its stages."""
    found: list[Diagnostic] = []
    for function in defined_functions(program):
        for stmt in iter_stmts(function.body):
            if type(stmt) is not ForStmt:
                continue
            if stmt.kind is ForKind.Pipeline and "pipeline_stages" not in stmt.attrs:
                message = "ForKind.Pipeline loop without the attribute 'pipeline_stages'"
            elif stmt.kind is not ForKind.Pipeline and "pipeline_stages" in stmt.attrs:
                message = f"'pipeline_stages' on a loop of kind {stmt.kind.name} (only Pipeline loops have stages)"
            else:
                continue
            found.append(error("PipelineLoopValid", 1, f"{message} in function '{function.name}'", stmt.span))
    return found


@PropertyVerifierRegistry.register(IRProperty.NoNestedInCore)
def verify_no_nested_incore(program: Program) -> list[Diagnostic]:
    """No InCore scope inside another."""
    found: list[Diagnostic] = []
    for function in defined_functions(program):
        for stmt in iter_stmts(function.body):
            if not isinstance(stmt, InCoreScopeStmt):
                continue
            for inner in iter_stmts(stmt.body):
                if isinstance(inner, InCoreScopeStmt):
                    message = (
                        f"Nested InCore scope in function '{function.name}': a core group runs one scope at a time"
                    )
                    found.append(error("NoNestedInCore", 1, message, inner.span))
    return found
