"""Values of attribute dictionaries: ``attrs={...}`` of printed IR and ``pl.func_attr({...})``."""

from __future__ import annotations

import ast
from enum import Enum
from typing import Any

from pypto.ir.dtype import DataType
from pypto.ir.enums import ArgDirection
from pypto.ir.expr import Expr, Var
from pypto.language.parser.base import ParserBase
from pypto.language.parser.diagnostics import ParserSyntaxError
from pypto.language.parser.names import MISSING

#: Attributes whose value is a list of integers.
_INT_LIST_KEYS = ("arg_direction_overrides",)
#: Attributes whose value is any expression, not only a variable.
_EXPRESSION_KEYS = ("predicate", "device", "core_num")


class AttrsMixin(ParserBase):
    """Parses attribute dictionaries."""

    def parse_attrs(self, node: ast.expr) -> dict[str, Any]:
        """The dictionary of ``attrs={...}``."""
        if not isinstance(node, ast.Dict):
            raise self.fail(ParserSyntaxError, "attrs= must be a dict literal", node)
        return {key: self.attr_value(key, value) for key, value in self.attr_items(node)}

    def attr_items(self, node: ast.Dict) -> list[tuple[str, ast.expr]]:
        """(key, value expression) pairs; keys are string literals."""
        items = []
        for key, value in zip(node.keys, node.values):
            if not isinstance(key, ast.Constant) or not isinstance(key.value, str):
                raise self.fail(ParserSyntaxError, "An attribute key must be a string literal", key or node)
            items.append((key.value, value))
        return items

    def attr_value(self, key: str, node: ast.expr) -> Any:
        """One attribute value: a plain value, a variable, or a list of them."""
        if key == "core_num":  # an extent like any other: a literal becomes a constant
            return self.parse_expression(node)
        if isinstance(node, (ast.List, ast.Tuple)):
            values = [self.attr_value(key, e) for e in node.elts]
            self._check_list(key, values, node)
            return values
        if isinstance(node, ast.Constant) and isinstance(node.value, (bool, int, float, str)):
            return node.value
        if isinstance(node, ast.Name) and self.scopes.is_defined(node.id):
            return self.scopes.lookup_var(node.id)
        value = self.fold(node)
        if value is MISSING:
            value = self.closure_value(node)
        if value is MISSING and isinstance(node, ast.Attribute) and self.public_path(node):
            value = self._evaluate_attribute(node)
        if value is not MISSING and isinstance(value, (bool, int, float, str, DataType, Enum, Expr)):
            return value
        if key in _EXPRESSION_KEYS or value is MISSING:
            return self.parse_expression(node)
        raise self.fail(
            ParserSyntaxError, f"Unsupported value of type {type(value).__name__} for attribute '{key}'", node
        )

    def _check_list(self, key: str, values: list[Any], node: ast.AST) -> None:
        if all(isinstance(v, (Var, ArgDirection)) for v in values):
            return
        if key in _INT_LIST_KEYS and all(isinstance(v, int) for v in values):
            return
        raise self.fail(
            ParserSyntaxError,
            f"Unsupported list element type for key: {key}. Lists may hold Vars or ArgDirection members, "
            "and ints under arg_direction_overrides",
            node,
        )
