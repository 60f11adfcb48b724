"""State of one function body while it is parsed, shared by the parts of the parser."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from pypto.ir.expr import Expr, Var
from pypto.ir.span import Span
from pypto.ir.stmt import Stmt
from pypto.language.parser.context import FunctionOptions, ProgramContext, SourceInfo
from pypto.language.parser.diagnostics import ParserError, UnsupportedFeatureError
from pypto.language.parser.expr_evaluator import ExprEvaluator
from pypto.language.parser.scope_manager import ScopeManager
from pypto.language.parser.span_tracker import SpanTracker
from pypto.language.parser.type_resolver import TypeResolver


class YieldFrame:
    """Names and types given by the assignment-form yield of a loop body or branch."""

    def __init__(self, kind: str):
        self.kind = kind
        self.names: list[str] = []
        self.types: list[Any] = []
        self.yielded = False


class ParserBase:
    """Names, statements and locations of the function being parsed."""

    def __init__(
        self,
        source: SourceInfo,
        closure_vars: Mapping[str, Any],
        program: ProgramContext | None = None,
        strict_ssa: bool = False,
    ):
        self.source = source
        self.spans = SpanTracker(source.file, source.lines, source.line_offset, source.col_offset, source.source_map)
        self.evaluator = ExprEvaluator(closure_vars, self.spans)
        self.closure = self.evaluator.closure_vars
        self.program = program
        self.strict_ssa = strict_ssa
        self.scopes = ScopeManager(strict_ssa)
        self.types = TypeResolver(
            self.evaluator,
            scope_lookup=self.scopes.lookup_var,
            span_tracker=self.spans,
            parse_expression=self._parse_index,
        )
        self.options = FunctionOptions()
        self.function_name = "<function>"
        self.params: dict[str, Var] = {}
        #: Declared results; empty when the function declares none.
        self.return_types: list[Any] = []
        self.func_attrs: dict[str, Any] = {}
        self.bodies: list[list[Stmt]] = []
        #: Enclosing constructs, innermost last: loops by kind, scopes by name.
        self.constructs: list[str] = []
        self.frames: list[YieldFrame] = []
        #: Tensors marked by ``pl.dump_tag``, in order.
        self.dump_tags: list[Var] = []
        #: Tensor variable -> task id variable of the launch that wrote it, and the binding of that id it belongs to
        #: (a task id name that is bound again is one variable in the IR).
        self.producers: dict[Var, Var] = {}
        self.producer_generation: dict[Var, int] = {}
        self.task_generation: dict[Var, int] = {}
        #: Values returned by the template being expanded, None outside templates.
        self.inline_returns: list[Expr] | None = None
        self.inline_depth = 0
        #: (block, its variables) of the templates expanded so far, by template and block: an expansion whose value is
        #: named at once assigns to the variables of the one before.
        self.template_locals: dict[tuple[int, int], tuple[list[Stmt], dict[str, Var]]] = {}
        #: Inside such an expansion, those variables.
        self.own_locals: dict[str, Var] | None = None
        #: The expression whose value the statement being parsed names.
        self.whole_value: ast.expr | None = None
        #: Comments not attached yet, by line, and the last line that may belong to each open block.
        self.comments: dict[int, list[tuple[int, str]]] = {}
        self.block_limits: list[int] = []
        #: Split modes of the enclosing pl.split_aiv regions.
        self.region_splits: list[Any] = []
        #: Loop variables and dimension symbols: a name bound to one of them is bound anew, not assigned.
        self.loop_vars: set[Var] = set()
        #: Names that an inner block made visible here; they may be bound again with another type.
        self.leaked: set[Var] = set()

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...

    def spawn(self, source: SourceInfo, closure_vars: Mapping[str, Any]) -> ParserBase:
        """A parser for a template expanded inside this body."""
        return type(self)(source, closure_vars, self.program, self.strict_ssa)

    def span(self, node: ast.AST | None) -> Span:
        return self.spans.get_span(node)

    def fail(self, kind: type[ParserError], message: str, node: ast.AST | None, hint: str | None = None) -> ParserError:
        """The error at a node, to be raised by the caller."""
        return kind(message, self.span(node), hint=hint)

    def unsupported(self, message: str, node: ast.AST | None, hint: str | None = None) -> ParserError:
        return self.fail(UnsupportedFeatureError, message, node, hint)

    def emit(self, stmt: Stmt) -> None:
        self.bodies[-1].append(stmt)

    @contextmanager
    def collect(self, construct: str | None = None) -> Iterator[list[Stmt]]:
        """Collect the statements emitted inside; ``construct`` names the surrounding construct meanwhile."""
        stmts: list[Stmt] = []
        self.bodies.append(stmts)
        if construct is not None:
            self.constructs.append(construct)
        try:
            yield stmts
        finally:
            self.bodies.pop()
            if construct is not None:
                self.constructs.pop()

    @contextmanager
    def scope(self, kind: str) -> Iterator[dict[str, Any]]:
        """A block of names; ``["leak"] = True`` in the yielded dict makes them visible afterwards."""
        policy: dict[str, Any] = {"leak": False}
        self.scopes.enter_scope(kind)
        try:
            yield policy
        finally:
            names = self.scopes.exit_scope(leak_vars=policy["leak"])
            if policy["leak"]:
                self.leaked.update(v for v in names.values() if isinstance(v, Var))

    def inside(self, *constructs: str) -> bool:
        """True inside any of these constructs."""
        return any(c in constructs for c in self.constructs)

    def define(self, name: str, value: Expr, node: ast.AST | None = None) -> None:
        self.scopes.define_var(name, value, allow_redef=not self.strict_ssa, span=self.span(node))

    def _parse_index(self, node: ast.expr) -> Expr:
        return self.parse_expression(node)
