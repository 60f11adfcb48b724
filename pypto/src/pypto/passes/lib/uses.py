"""How often variables are read, reads inside types and attributes included."""

from __future__ import annotations

from collections import Counter

from pypto.ir.expr import Expr, Var
from pypto.ir.memref import MemRef
from pypto.ir.program import Function
from pypto.ir.stmt import (
    AssignStmt,
    EvalStmt,
    ForStmt,
    IfStmt,
    ReturnStmt,
    ScopeStmt,
    SpmdScopeStmt,
    Stmt,
    WhileStmt,
    YieldStmt,
)
from pypto.ir.types import Type
from pypto.ir.visitor import IRVisitor, attr_exprs, type_exprs
from pypto.passes.lib.walk import iter_stmts


class _Reads(IRVisitor):
    def __init__(self) -> None:
        self.counts: Counter[Var] = Counter()

    def visit_var(self, var: Var) -> None:
        self.counts[var] += 1

    def visit_iter_arg(self, var: Var) -> None:
        self.counts[var] += 1

    def visit_mem_ref(self, memref: MemRef) -> None:
        self.counts[memref] += 1
        super().visit_mem_ref(memref)

    def types(self, variables) -> None:
        for var in variables:
            self._exprs(type_exprs(var.type))


def count_reads(function: Function) -> Counter[Var]:
    """Number of reads of every variable in a function."""
    reads = _Reads()
    reads.types(function.params)
    for kind in function.return_types:
        reads._exprs(type_exprs(kind))
    reads._exprs(attr_exprs(function.attrs))
    _count_below(function.body, reads)
    return reads.counts


def count_reads_below(stmt: Stmt) -> Counter[Var]:
    """Number of reads of every variable in ``stmt`` and everything inside it."""
    reads = _Reads()
    _count_below(stmt, reads)
    return reads.counts


def expr_reads(expr: Expr, kind: Type | None = None) -> Counter[Var]:
    """Reads of one expression, and of ``kind`` when given."""
    reads = _Reads()
    reads.visit_expr(expr)
    if kind is not None:
        reads._exprs(type_exprs(kind))
    return reads.counts


def _count_below(body: Stmt, reads: _Reads) -> None:
    for stmt in iter_stmts(body):
        kind = type(stmt)
        if kind is AssignStmt:
            reads.visit_expr(stmt.value)
            reads.types((stmt.var,))
        elif kind is EvalStmt:
            reads.visit_expr(stmt.expr)
        elif kind is YieldStmt or kind is ReturnStmt:
            reads._exprs(stmt.value)
        elif kind is IfStmt:
            reads.visit_expr(stmt.condition)
            reads.types(stmt.return_vars)
        elif kind is ForStmt or kind is WhileStmt:
            if kind is ForStmt:
                reads._exprs((stmt.start, stmt.stop, stmt.step))
                reads._exprs(attr_exprs(stmt.attrs))
            else:
                reads.visit_expr(stmt.condition)
            reads._exprs(a.initValue for a in stmt.iter_args)
            reads.types((*stmt.iter_args, *stmt.return_vars))
        elif isinstance(stmt, ScopeStmt):
            if isinstance(stmt, SpmdScopeStmt):
                reads.visit_expr(stmt.core_num)
            attrs = {k: v for k, v in stmt.attrs.items() if k != "task_id_var"}
            reads._exprs(attr_exprs(attrs))
            reads._exprs(getattr(stmt, "devices", ()))
