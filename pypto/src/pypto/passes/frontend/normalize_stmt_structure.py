"""NormalizeStmtStructure: flatten nested sequences and unwrap sequences of one statement."""

from __future__ import annotations

from pypto.errors import VerificationError
from pypto.ir.program import Function
from pypto.ir.stmt import ForStmt, IfStmt, ScopeStmt, SeqStmts, Stmt, WhileStmt, YieldStmt
from pypto.passes.lib.rewrite import normalize_body, with_body
from pypto.passes.lib.walk import iter_stmts
from pypto.passes.pass_ import function_pass
from pypto.passes.properties import IRProperty as P


@function_pass("NormalizeStmtStructure", produced=[P.NormalizedStmtStructure])
def normalize_stmt_structure(function: Function) -> Function:
    """Bring every body to its flat form.

    Raises:
        pypto.Error: a yield that is not the last statement of its body.
    """
    if function.body is None:
        return function
    normal = with_body(function, normalize_body(function.body))
    _check_yields(normal.body)
    return normal


def _check_yields(body: Stmt) -> None:
    sequences = [body]
    for stmt in iter_stmts(body):
        if isinstance(stmt, IfStmt):
            sequences += [stmt.then_body, stmt.else_body]
        elif isinstance(stmt, (ForStmt, WhileStmt, ScopeStmt)):
            sequences.append(stmt.body)
    for sequence in sequences:
        if type(sequence) is SeqStmts and any(type(s) is YieldStmt for s in sequence.stmts[:-1]):
            early = next(s for s in sequence.stmts if type(s) is YieldStmt)
            raise VerificationError(f"YieldStmt before the terminating position of its body [{early.span}]")
