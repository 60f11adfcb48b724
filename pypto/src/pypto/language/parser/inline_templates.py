"""``@pl.inline``: statement templates that are expanded where they are called."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Any

from pypto.ir.expr import Expr, MakeTuple, Var
from pypto.ir.stmt import AssignStmt
from pypto.language.parser.base import ParserBase
from pypto.language.parser.context import SourceInfo
from pypto.language.parser.diagnostics import ParserSyntaxError, ParserTypeError


@dataclass
class InlineFunction:
    """A captured template: its AST, its source and the values around its definition."""

    name: str
    func_def: ast.FunctionDef
    param_names: list[str]
    source: SourceInfo
    closure_vars: dict[str, Any]

    @property
    def source_file(self) -> str:
        return self.source.file

    @property
    def source_lines(self) -> list[str]:
        return self.source.lines

    @property
    def line_offset(self) -> int:
        return self.source.line_offset

    @property
    def col_offset(self) -> int:
        return self.source.col_offset

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(f"'{self.name}' is a template; call it inside a @pl.function body")


class InlineMixin(ParserBase):
    """Expands templates."""

    def expand_inline(self, template: InlineFunction, node: ast.Call) -> Expr:
        """Emit the statements of ``template`` and give its returned value.

        Names of the template are its own. Every expansion has variables of its own too, except that one whose value
        is named at once (``y = f(x)``) assigns to the variables of the expansion before it, as a loop body would.
        """
        value = self.expand_inline_statement(template, node)
        if value is None:
            raise self.fail(
                ParserTypeError, f"Inline function '{template.name}' has no return value", node,
                hint="Call it as a statement, or add a return statement to it",
            )  # fmt: skip
        return value

    def expand_inline_statement(self, template: InlineFunction, node: ast.Call) -> Expr | None:
        """Emit the statements of ``template``; its returned value, or None."""
        if node.keywords or len(node.args) != len(template.param_names):
            raise self.fail(
                ParserTypeError,
                f"Inline function '{template.name}' expects {len(template.param_names)} argument(s), "
                f"got {len(node.args) + len(node.keywords)}",
                node,
                hint=f"Parameters: {', '.join(template.param_names)}",
            )
        args = [self.parse_expression(a) for a in node.args]
        inner = self.spawn(template.source, template.closure_vars)
        inner.options, inner.function_name = self.options, self.function_name
        inner.bodies, inner.constructs = self.bodies, self.constructs
        inner.region_splits, inner.dump_tags = self.region_splits, self.dump_tags
        inner.producers, inner.task_generation = self.producers, self.task_generation
        inner.producer_generation = self.producer_generation
        inner.inline_returns, inner.inline_depth = [], len(self.bodies)
        inner.template_locals = self.template_locals
        if node is self.whole_value and not self.strict_ssa:
            block = self.bodies[-1]
            inner.own_locals = self.template_locals.setdefault((id(template), id(block)), (block, {}))[1]
        inner.scopes.enter_scope("inline")
        for name, arg in zip(template.param_names, args):
            inner.scopes.define_var(name, arg)
        assigned = _assigned_names(template.func_def)
        for name, arg in zip(template.param_names, args):
            if name in assigned:
                inner.scopes.define_var(name, inner.fresh_copy(name, arg), allow_redef=True)
        inner.parse_body(template.func_def.body)
        returned = inner.inline_returns
        return returned[-1] if returned else None

    def fresh_copy(self, name: str, value: Expr) -> Var:
        """A variable of its own for a template parameter that the template rebinds."""
        var = Var(name, value.type, value.span)
        self.emit(AssignStmt(var, value, value.span))
        return var

    def emit_return(self, values: list[Expr], node: ast.Return) -> None:
        if self.inline_returns is None:
            super().emit_return(values, node)
            return
        if len(self.bodies) != self.inline_depth:
            raise self.fail(ParserSyntaxError, "A template returns at its end, not inside a block", node)
        if values:
            self.inline_returns.append(values[0] if len(values) == 1 else MakeTuple(tuple(values), self.span(node)))


def _assigned_names(node: ast.FunctionDef) -> set[str]:
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)} | {
        n.value.id
        for n in ast.walk(node)
        if isinstance(n, ast.Subscript) and isinstance(n.ctx, ast.Store) and isinstance(n.value, ast.Name)
    }
