"""Python expressions over the values around a definition, evaluated while parsing."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any

from pypto.language.parser.diagnostics.exceptions import BUG_CLASS_EXCEPTIONS, ParserTypeError

#: The builtins such expressions may call; all are pure.
SAFE_BUILTINS: dict[str, Any] = {
    f.__name__: f
    for f in (abs, bool, dict, float, int, len, list, max, min, pow, range, round, set, sorted, str, sum, tuple, zip)
} | {"enumerate": enumerate, "True": True, "False": False, "None": None}

_MISSING = object()


class ExprEvaluator:
    """Evaluates expressions over ``closure_vars`` and :data:`SAFE_BUILTINS`, nothing else."""

    def __init__(self, closure_vars: Mapping[str, Any] | None = None, span_tracker: Any = None):
        self.closure_vars = dict(closure_vars or {})
        self.span_tracker = span_tracker

    def eval_expr(self, node: ast.expr) -> Any:
        """The value of ``node``.

        Raises:
            ParserTypeError: a name is unknown, or the evaluation fails.
        """
        value = self._quick(node)
        if value is not _MISSING:
            return value
        try:
            code = compile(ast.Expression(body=node), "<annotation>", "eval")
            return eval(code, {"__builtins__": SAFE_BUILTINS, **self.closure_vars})
        except BUG_CLASS_EXCEPTIONS:
            raise
        except NameError as error:
            raise ParserTypeError(
                f"Cannot resolve expression '{ast.unparse(node)}': {error}",
                self._span(node),
                hint="Only names visible where the function is defined can be used here",
            ) from error
        except Exception as error:
            raise ParserTypeError(
                f"Failed to evaluate expression '{ast.unparse(node)}': {error}", self._span(node)
            ) from error

    def try_eval_expr(self, node: ast.expr) -> tuple[bool, Any]:
        """``(True, value)``, or ``(False, None)`` when the expression cannot be evaluated."""
        try:
            return True, self.eval_expr(node)
        except ParserTypeError:
            return False, None

    def _quick(self, node: ast.expr) -> Any:
        """Names, constants and attributes without compiling; ``_MISSING`` for everything else."""
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, ast.Name):
            return self.closure_vars.get(node.id, _MISSING)
        if isinstance(node, ast.Attribute):
            base = self._quick(node.value)
            if base is not _MISSING:
                try:
                    return getattr(base, node.attr)
                except AttributeError:
                    return _MISSING
        return _MISSING

    def _span(self, node: ast.AST) -> Any:
        return self.span_tracker.get_span(node) if self.span_tracker else None
