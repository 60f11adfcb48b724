"""``pld.alloc_window_buffer``: communication windows named by their variable."""

from __future__ import annotations

import ast

from pypto.ir.enums import Level
from pypto.ir.expr import Expr
from pypto.language.parser.base import ParserBase
from pypto.language.parser.diagnostics import InvalidOperationError, ParserSyntaxError


class WindowsMixin(ParserBase):
    """Parses window allocations."""

    def require_host(self, word: str, node: ast.AST) -> None:
        """Only the body of a HOST orchestrator, outside device scopes, may use ``word``."""
        if self.options.level is not Level.HOST:
            raise self.fail(
                ParserSyntaxError, f"{word}() is only allowed in a HOST-level function", node,
                hint="Declare @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)",
            )  # fmt: skip
        if self.inside("incore", "spmd", "cluster", "split_aiv"):
            raise self.fail(ParserSyntaxError, f"{word}() cannot be used inside an InCore or other device scope", node)

    def parse_window_allocation(self, node: ast.expr, name: str) -> Expr:
        """``name = pld.alloc_window_buffer(...)`` in a HOST function; the name must be new in the program."""
        assert isinstance(node, ast.Call)
        self.require_host("pld.alloc_window_buffer", node)
        if any(k.arg == "name" for k in node.keywords):
            raise self.fail(
                ParserSyntaxError, "'name' kwarg cannot be passed explicitly; it comes from the assigned variable", node
            )
        names = self.program.window_names if self.program else set()
        if name in names:
            raise self.fail(ParserSyntaxError, f"Window buffer '{name}' is already declared", node)
        names.add(name)
        args = [self.operator_argument(a) for a in node.args]
        kwargs = {k.arg: self.operator_argument(k.value, keyword=True) for k in node.keywords if k.arg}
        try:
            return self.call_public("pld.tensor.alloc_window_buffer", args, {**kwargs, "name": name}, node)
        except InvalidOperationError as error:
            message = error.message.partition(": ")[2] or error.message
            raise self.fail(ParserSyntaxError, message, node, hint=error.hint) from error
