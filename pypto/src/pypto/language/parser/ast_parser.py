"""The parser of one function: signature, prologue, body."""

from __future__ import annotations

import ast
from typing import Any

from pypto.ir.dtype import DataType
from pypto.ir.enums import FunctionType, Level, ParamDirection, Role
from pypto.ir.expr import Var
from pypto.ir.program import PLACEMENT, Function
from pypto.ir.stmt import InlineStmt, Stmt, seq
from pypto.ir.types import ScalarType, Type
from pypto.language.parser.attrs import AttrsMixin
from pypto.language.parser.blocks import BlocksMixin
from pypto.language.parser.branches import BranchesMixin
from pypto.language.parser.calls import CallsMixin
from pypto.language.parser.context import FunctionOptions, Signature
from pypto.language.parser.diagnostics import (
    BUG_CLASS_EXCEPTIONS,
    ErrorCode,
    ParserError,
    ParserSyntaxError,
    ParserTypeError,
    concise_error_message,
)
from pypto.language.parser.directives import DirectivesMixin
from pypto.language.parser.expressions import ExpressionsMixin
from pypto.language.parser.inline_templates import InlineMixin
from pypto.language.parser.loops import LoopsMixin
from pypto.language.parser.op_calls import OpCallsMixin
from pypto.language.parser.predicates import PredicatesMixin
from pypto.language.parser.scopes import ScopesMixin
from pypto.language.parser.spmd import SpmdMixin
from pypto.language.parser.statements import StatementsMixin
from pypto.language.parser.submits import SubmitsMixin
from pypto.language.parser.subscripts import SubscriptsMixin
from pypto.language.parser.windows import WindowsMixin


class ASTParser(
    InlineMixin, StatementsMixin, BlocksMixin, LoopsMixin, BranchesMixin, ScopesMixin, SpmdMixin, SubmitsMixin,
    PredicatesMixin, DirectivesMixin, WindowsMixin, AttrsMixin, SubscriptsMixin, CallsMixin, OpCallsMixin,
    ExpressionsMixin,
):  # fmt: skip
    """Parses one function definition into an :class:`~pypto.ir.Function`."""

    def parse_signature(self, node: ast.FunctionDef, options: FunctionOptions) -> Signature:
        """Parameters and results, bound in the scope of the function."""
        self.options, self.function_name = options, node.name
        args = node.args
        if args.vararg or args.kwarg or args.kwonlyargs or args.posonlyargs or args.defaults:
            raise self.unsupported(f"Function '{node.name}' may only have plain parameters without defaults", node)
        self.scopes.enter_scope("function")
        directions: list[ParamDirection] = []
        for position, arg in enumerate(args.args):
            if position == 0 and arg.arg == "self" and arg.annotation is None:
                continue
            directions.append(self._parameter(arg))
        returns: list[Type] = [] if node.returns is None else self.types.resolve_return(node.returns)
        return Signature(node.name, tuple(self.params.values()), directions, returns, options)

    def _parameter(self, arg: ast.arg) -> ParamDirection:
        if arg.annotation is None:
            raise ParserTypeError(
                f"Parameter '{arg.arg}' missing type annotation",
                self.span(arg),
                hint=f"Write {arg.arg}: pl.Tensor[[...], dtype] or {arg.arg}: pl.Scalar[dtype]",
                code=ErrorCode.MISSING_ANNOTATION,
            )
        kind, direction = self.types.resolve_param(arg.annotation)
        var = Var(arg.arg, kind, self.span(arg))
        self.params[arg.arg] = var
        self.define(arg.arg, var, arg)
        if isinstance(kind, ScalarType) and kind.dtype == DataType.INDEX:
            if arg.arg in self.types.read_symbols:
                raise ParserTypeError(
                    f"Scalar parameter '{arg.arg}' has the name of a symbol that the annotation of an earlier "
                    "parameter already reads",
                    self.span(arg),
                    hint=f"Declare {arg.arg} before the parameters whose annotations use it",
                )
            self.types.param_symbols[arg.arg] = var
        return direction

    def parse_function(self, node: ast.FunctionDef, signature: Signature) -> Function:
        """The function; :meth:`parse_signature` must have been called on this parser.

        Raises:
            ParserError: always with a location; other exceptions than bugs of the compiler are wrapped.
        """
        options = signature.options
        try:
            self.func_attrs.update(options.attrs)
            self.return_types = signature.return_types
            self._check_return(node, signature)
            body, bound_at_run_time = self._body(node, options)
            attrs = self.normalized_attrs()
            if not options.auto_scope:
                attrs["auto_scope"] = False
            if options.external_source is not None:
                attrs["external_source"] = options.external_source
            return Function(
                node.name,
                list(zip(signature.params, signature.directions)),
                signature.return_types,
                body,
                self.spans.get_multiline_span(node, node.body[-1]),
                type=options.type,
                level=options.level,
                role=options.role,
                attrs=attrs,
                requires_runtime_binding=bound_at_run_time,
            )
        except ParserError:
            raise
        except BUG_CLASS_EXCEPTIONS:
            raise
        except Exception as error:
            message = concise_error_message(error, strip_trailing_span=True)
            raise ParserSyntaxError(f"Failed to parse function '{node.name}': {message}") from error

    def _check_return(self, node: ast.FunctionDef, signature: Signature) -> None:
        """Results that are declared must be returned, except where the body is a declaration or a host program."""
        options = signature.options
        if not signature.return_types or options.level is Level.HOST or options.external_source is not None:
            return
        if any(isinstance(n, ast.Return) for n in ast.walk(node)):
            return
        if all(_is_text(s) or _is_ellipsis(s) or isinstance(s, ast.Pass) for s in node.body):
            return
        raise self.fail(
            ParserSyntaxError, f"Function '{node.name}' declares a result but has no return statement", node.returns,
            hint="End it with `return <value>`, or leave out the annotation after `->`",
        )  # fmt: skip

    def _body(self, node: ast.FunctionDef, options: FunctionOptions) -> tuple[Stmt, bool]:
        """(body, must be bound at run time)."""
        body = self._prologue(node)
        abstract = len(body) == 1 and _is_ellipsis(body[0])
        if options.external_source is not None:
            if not abstract:
                raise self.fail(
                    ParserSyntaxError, f"The body of the external function '{node.name}' must be exactly `...`",
                    body[0] if body else node,
                )  # fmt: skip
            return seq([]), False
        if options.level is Level.HOST and options.role is Role.SubWorker:
            if abstract:
                return seq([]), True
            return self._verbatim(body), False
        with self.collect() as stmts:
            if body:
                self.parse_body(body, max(node.end_lineno or node.lineno, next(reversed(self.comments), 0)))
        return seq(stmts), False

    def _prologue(self, node: ast.FunctionDef) -> list[ast.stmt]:
        """The statements after ``pl.func_attr``; a docstring before it stays a comment of the body."""
        rest = list(node.body)
        docstring: list[ast.stmt] = []
        while rest:
            first = rest[0]
            if _is_text(first):
                docstring.append(rest.pop(0))
            elif isinstance(first, ast.Expr) and self._call_path(first.value) == "pl.func_attr":
                self._comments_through(first.end_lineno or first.lineno)
                self.parse_func_attr(first.value)
                rest.pop(0)
            else:
                break
        if len(rest) == 1 and _is_ellipsis(rest[0]):
            return rest
        return docstring + rest

    def _verbatim(self, body: list[ast.stmt]) -> Stmt:
        """The text of a host callback, dedented."""
        if all(isinstance(s, ast.Pass) or _is_text(s) for s in body):
            return seq([])
        lines = self.source.lines[body[0].lineno - 1 : body[-1].end_lineno]
        indent = body[0].col_offset
        text = "\n".join(line[indent:] if line[:indent].strip() == "" else line for line in lines)
        return InlineStmt(text.rstrip(), span=self.span(body[0]))


def check_options(options: FunctionOptions, name: str, fail: Any) -> None:
    """Level, role and kind must agree; ``fail(message)`` builds the error."""
    implied_level, implied_role = PLACEMENT[options.type]
    for what, given, implied in (("level", options.level, implied_level), ("role", options.role, implied_role)):
        if implied is not None and given is not None and given is not implied:
            raise fail(
                f"Function '{name}' of type {options.type.name} has {what} {implied.name}, but {given.name} was given"
            )
    if options.external_source is not None and options.type not in (FunctionType.AIC, FunctionType.AIV):
        raise fail(f"external_source= of '{name}' needs type=pl.FunctionType.AIC or AIV")


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _is_ellipsis(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and node.value.value is Ellipsis
