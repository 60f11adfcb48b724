"""``if``: branches with and without yielded values."""

from __future__ import annotations

import ast

from pypto.ir.expr import Var
from pypto.ir.stmt import IfStmt, Stmt, seq
from pypto.language.parser.base import ParserBase, YieldFrame


class BranchesMixin(ParserBase):
    """Parses ``if`` / ``elif`` / ``else``."""

    def parse_if(self, node: ast.If) -> None:
        condition = self.parse_condition(node.test, "if")
        then_frame, else_frame = YieldFrame("if"), YieldFrame("if")
        then_body = self._arm(node.body, then_frame)
        else_body = self._arm(node.orelse, else_frame) if node.orelse else None
        frame = then_frame if then_frame.names else else_frame
        returns = tuple(Var(n, t, self.span(node)) for n, t in zip(frame.names, frame.types))
        self.emit(IfStmt(condition, then_body, else_body, returns, self.span(node)))
        for var in returns:
            self.scopes.define_var(var.name_hint, var, allow_redef=True, span=self.span(node))

    def _arm(self, body: list[ast.stmt], frame: YieldFrame) -> Stmt:
        with self.scope("if") as policy, self.collect() as stmts:
            self.frames.append(frame)
            try:
                self.parse_block(body)
            finally:
                self.frames.pop()
            policy["leak"] = not frame.names
        return seq(stmts)
