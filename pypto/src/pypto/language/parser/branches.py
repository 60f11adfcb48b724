"""``if``: branches with and without yielded values."""

from __future__ import annotations

import ast

from pypto.ir.expr import Var
from pypto.ir.stmt import IfStmt, Stmt, seq
from pypto.language.parser.base import ParserBase, YieldFrame
from pypto.language.parser.diagnostics import ParserSyntaxError


class BranchesMixin(ParserBase):
    """Parses ``if`` / ``elif`` / ``else``."""

    def parse_if(self, node: ast.If) -> None:
        if not self._names_results(node):
            self.unfold_carries(node)
        condition = self.parse_condition(node.test, "if")
        then_frame, else_frame = YieldFrame("if"), YieldFrame("if")
        then_body = self._arm(node.body, then_frame)
        else_body = self._arm(node.orelse, else_frame) if node.orelse else None
        if node.orelse:
            self._check_yields(then_frame.names, else_frame.names, node)
        frame = then_frame if then_frame.names else else_frame
        returns = tuple(Var(n, t, self.span(node)) for n, t in zip(frame.names, frame.types))
        self.emit(IfStmt(condition, then_body, else_body, returns, self.span(node)))
        for var in returns:
            self.scopes.define_var(var.name_hint, var, allow_redef=True, span=self.span(node))

    def _names_results(self, node: ast.If) -> bool:
        """An arm that ends with ``name = pl.yield_(...)`` makes its other names local."""
        last = node.body[-1]
        value = last.value if isinstance(last, (ast.Assign, ast.AnnAssign)) else None
        return isinstance(value, ast.Call) and self.public_path(value.func) == "pl.yield_"

    def _check_yields(self, then: list[str], other: list[str], node: ast.If) -> None:
        """Two arms that yield as many values must name them alike; the verifier counts them."""
        if len(then) == len(other) and then != other:
            raise self.fail(
                ParserSyntaxError,
                f"The arms of this if yield different names: {', '.join(then)} and {', '.join(other)}",
                node,
                hint="Write the same `name = pl.yield_(...)` at the end of both arms",
            )

    def _arm(self, body: list[ast.stmt], frame: YieldFrame) -> Stmt:
        with self.scope("if") as policy, self.collect() as stmts:
            self.frames.append(frame)
            try:
                self.parse_block(body)
            finally:
                self.frames.pop()
            policy["leak"] = not frame.names
        return seq(stmts)
