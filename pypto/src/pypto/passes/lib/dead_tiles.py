"""Removal of tile values that nothing reads any more."""

from __future__ import annotations

from pypto.ir.expr import Var
from pypto.ir.program import Function
from pypto.ir.stmt import AssignStmt, Stmt
from pypto.passes.lib.rewrite import rebuild_lists, with_body
from pypto.passes.lib.uses import count_reads


def drop_unread(function: Function, candidates: set[Var]) -> Stmt:
    """The body without assignments of ``candidates`` (and what only they read among them) that nothing reads."""
    while candidates:
        reads = count_reads(function)

        def drop(stmts: list[Stmt], reads=reads) -> list[Stmt]:
            kept = [s for s in stmts if not (type(s) is AssignStmt and s.var in candidates and not reads[s.var])]
            return kept if len(kept) != len(stmts) else stmts

        new = with_body(function, rebuild_lists(function.body, drop))
        if new is function:
            break
        function = new
    return function.body
