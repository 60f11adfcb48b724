"""Blocks of statements and the comments that belong to them."""

from __future__ import annotations

import ast
import itertools
import warnings

from pypto.ir.stmt import SeqStmts, attach_leading_comments
from pypto.language.parser.base import ParserBase


class BlocksMixin(ParserBase):
    """Parses lists of statements; ``#`` comments and text statements lead the next statement."""

    def parse_body(self, body: list[ast.stmt], end_line: int | None = None) -> None:
        """The whole body of a function."""
        self.block_limits.append(end_line if end_line is not None else _last_line(body))
        self.parse_block(body)
        self.block_limits.pop()

    def parse_block(self, body: list[ast.stmt]) -> None:
        """The statements of one block."""
        limit = self.block_limits[-1] if self.block_limits else _last_line(body)
        texts: list[str] = []
        for position, node in enumerate(body):
            if (
                isinstance(node, ast.Expr)
                and isinstance(node.value, ast.Constant)
                and isinstance(node.value.value, str)
            ):
                texts += self._comments_through(node.end_lineno or node.lineno)
                texts += [line.strip() for line in node.value.value.strip().splitlines()]
                continue
            texts += self._comments_through(_header_end(node))
            next_line = body[position + 1].lineno - 1 if position + 1 < len(body) else limit
            start = len(self.bodies[-1])
            self.block_limits.append(next_line)
            self.parse_statement(node)
            self.block_limits.pop()
            if texts and self._attach(texts, start, node):
                texts = []
        self._warn_about_tail(body, limit)

    def _attach(self, texts: list[str], start: int, node: ast.stmt) -> bool:
        emitted = [s for s in self.bodies[-1][start:] if not isinstance(s, SeqStmts)]
        if not emitted:
            return False
        target = emitted[-1] if isinstance(node, ast.With) else emitted[0]
        attach_leading_comments(target, texts)
        return True

    def _comments_through(self, line: int) -> list[str]:
        """Comments not used yet on lines up to ``line``, in order."""
        found: list[str] = []
        for number in self._comment_lines(line):
            found += [text for _, text in self.comments.pop(number)]
        return found

    def _comment_lines(self, limit: int) -> list[int]:
        """Lines of the remaining comments up to ``limit``; comments are kept in the order of their lines."""
        return list(itertools.takewhile(lambda line: line <= limit, self.comments))

    def _warn_about_tail(self, body: list[ast.stmt], limit: int) -> None:
        """Comments below the last statement of a block have no statement to lead."""
        indent = body[0].col_offset
        tail: list[tuple[int, str]] = []
        for number in self._comment_lines(limit):
            if all(column >= indent for column, _ in self.comments[number]):
                tail += [(number, text) for _, text in self.comments.pop(number)]
        if tail:
            places = ", ".join(f"line {n + self.source.line_offset}: {text!r}" for n, text in tail)
            warnings.warn(
                f"Dropped {len(tail)} tail-of-block comment(s): {places}. Tail-of-block comments are not preserved in "
                "IR; move them above the statement they describe.",
                UserWarning,
                stacklevel=2,
            )


def _header_end(node: ast.stmt) -> int:
    """Last line of a simple statement, or of the header of a compound one."""
    if isinstance(node, ast.For):
        return node.iter.end_lineno or node.lineno
    if isinstance(node, (ast.While, ast.If)):
        return node.test.end_lineno or node.lineno
    if isinstance(node, ast.With):
        last = node.items[-1]
        return (last.optional_vars or last.context_expr).end_lineno or node.lineno
    return node.end_lineno or node.lineno


def _last_line(body: list[ast.stmt]) -> int:
    return body[-1].end_lineno or body[-1].lineno
