"""Names: which public object an expression spells, what a closure value means, what folds to a number."""

from __future__ import annotations

import ast
import operator
from enum import Enum
from typing import Any

from pypto.ir.dtype import DataType
from pypto.ir.enums import MemorySpace
from pypto.ir.expr import ConstBool, ConstFloat, ConstInt, Expr, MakeTuple
from pypto.ir.types import TensorView, TileView, Type
from pypto.language.parser.base import ParserBase
from pypto.language.parser.diagnostics import ParserTypeError, UndefinedVariableError, did_you_mean
from pypto.language.parser.expr_evaluator import SAFE_BUILTINS
from pypto.language.typing.dynamic import DynVar
from pypto.language.typing.values import _Value

_ROOTS = {"pypto.language": "pl", "pypto.language.distributed": "pld"}
_NAMESPACES = {
    "pypto.language.op.tensor_ops": "pl.tensor",
    "pypto.language.op.tile_ops": "pl.tile",
    "pypto.language.op.system_ops": "pl.system",
    "pypto.language.op.array_ops": "pl.array",
    "pypto.language.op.prefetch_ops": "pl.prefetch",
    "pypto.language.optimizations": "pl.optimizations",
    "pypto.language.distributed.op.tensor_ops": "pld.tensor",
    "pypto.language.distributed.op.tile_ops": "pld.tile",
    "pypto.language.distributed.op.system_ops": "pld.system",
}
_FOLDABLE = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.Pow: operator.pow, ast.LShift: operator.lshift,
    ast.RShift: operator.rshift, ast.BitAnd: operator.and_, ast.BitOr: operator.or_, ast.BitXor: operator.xor,
}  # fmt: skip
#: Values that are arguments of operators but not expressions.
_ARGUMENT_VALUES = (DataType, Enum, MemorySpace, str, TensorView, TileView, Type)

MISSING = object()


def dotted_name(node: ast.expr) -> list[str] | None:
    """``["a", "b", "c"]`` for ``a.b.c``, None for anything else."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return None
    parts.append(node.id)
    return parts[::-1]


class NamesMixin(ParserBase):
    """Resolution of names outside the body."""

    def public_path(self, node: ast.expr) -> str | None:
        """``"pl.tile.load"`` for any spelling of that object, None when the expression is something else."""
        parts = dotted_name(node)
        if parts is None or self.scopes.is_defined(parts[0]):
            return None
        root = self.closure.get(parts[0], MISSING)
        if root is MISSING:
            return ".".join(parts) if parts[0] in ("pl", "pld") and len(parts) > 1 else None
        prefix = self._public_name(root)
        return ".".join([prefix, *parts[1:]]) if prefix else None

    @staticmethod
    def _public_name(value: Any) -> str | None:
        name = getattr(value, "__name__", None)
        if not isinstance(name, str):
            return None
        if name in _ROOTS:
            return _ROOTS[name]
        if name in _NAMESPACES:
            return _NAMESPACES[name]
        module = getattr(value, "__module__", None)
        if module == "pypto.language.constructs" or (module and module.startswith("pypto.language.op.")):
            leaf = module.rsplit(".", 1)[1]
            return f"pl.{name}" if leaf in ("constructs", "unified_ops") else f"{_NAMESPACES[module]}.{name}"
        return None

    def is_python_name(self, name: str) -> bool:
        """True when ``name`` is a value around the definition and not a name of the body."""
        return not self.scopes.is_defined(name) and name in self.closure

    def _is_pure_builtin(self, name: str) -> bool:
        return name in SAFE_BUILTINS and not self.scopes.is_defined(name)

    def closure_value(self, node: ast.expr) -> Any:
        """The Python value of an expression that names no variable of the body, :data:`MISSING` otherwise."""
        for child in ast.walk(node):
            if isinstance(child, ast.Name) and not (self.is_python_name(child.id) or self._is_pure_builtin(child.id)):
                return MISSING
            if isinstance(child, ast.Call) and self.public_path(child.func) and not self._is_type_method(child):
                return MISSING
        found, value = self.evaluator.try_eval_expr(node)
        return value if found else MISSING

    @staticmethod
    def _is_type_method(node: ast.Call) -> bool:
        return isinstance(node.func, ast.Attribute) and node.func.attr in ("get_byte", "get_bit")

    def fold(self, node: ast.expr) -> Any:
        """The number that an expression of literals and closure names stands for, else :data:`MISSING`."""
        match node:
            case ast.Constant(value=bool() | int() | float() as value):
                return value
            case ast.Name(id=name):
                value = self.closure[name] if self.is_python_name(name) else MISSING
                return value if isinstance(value, (int, float)) and not isinstance(value, Enum) else MISSING
            case ast.UnaryOp(op=ast.USub() | ast.UAdd() as op, operand=operand):
                value = self.fold(operand)
                return value if value is MISSING else -value if isinstance(op, ast.USub) else +value
            case ast.BinOp(left=left, op=op, right=right):
                return self._fold_binary(left, op, right)
            case ast.Attribute() | ast.Subscript():
                value = self.closure_value(node)
                return value if isinstance(value, (int, float)) and not isinstance(value, Enum) else MISSING
            case ast.Call() if self._is_type_method(node):
                return self.closure_value(node)
        return MISSING

    def _fold_binary(self, left: ast.expr, op: ast.operator, right: ast.expr) -> Any:
        function = _FOLDABLE.get(type(op))
        lhs = self.fold(left) if function else MISSING
        rhs = self.fold(right) if lhs is not MISSING else MISSING
        if rhs is MISSING or function is None:
            return MISSING
        try:
            return function(lhs, rhs)
        except (ArithmeticError, TypeError, ValueError):
            return MISSING

    def value_to_expr(self, value: Any, node: ast.AST) -> Expr:
        """The expression that a Python value means inside a body."""
        span = self.span(node)
        if isinstance(value, Expr):
            return value
        if isinstance(value, bool):
            return ConstBool(value, span)
        if isinstance(value, int) and not isinstance(value, Enum):
            return ConstInt(value, DataType.INDEX, span)
        if isinstance(value, float):
            return ConstFloat(value, DataType.FP32, span)
        if isinstance(value, DynVar):
            return value.var
        if isinstance(value, (list, tuple)):
            return MakeTuple(tuple(self.value_to_expr(v, node) for v in value), span)
        if isinstance(value, _Value) and value._expr is not None:
            return value.unwrap()
        raise self.fail(
            ParserTypeError,
            f"Unsupported closure variable type: {type(value).__name__}",
            node,
            hint="Values from outside may be numbers, booleans, lists and tuples of them, pl.dynamic symbols, dtypes "
            "and enum members",
        )

    def argument_value(self, value: Any, node: ast.AST) -> Any:
        """A closure value as an operator argument: plain values stay, the rest becomes expressions."""
        if isinstance(value, DynVar):
            return value.var
        if value is None or isinstance(value, (bool, int, float, Expr, *_ARGUMENT_VALUES)):
            return value
        if isinstance(value, (list, tuple)):
            return [self.argument_value(v, node) for v in value]
        return self.value_to_expr(value, node)

    def lookup_name(self, node: ast.Name) -> Expr:
        """The expression behind a name of the body or a closure name."""
        value = self.scopes.lookup_var(node.id)
        if value is not None:
            return value
        if node.id in self.closure:
            return self.value_to_expr(self.closure[node.id], node)
        raise self.undefined(node)

    def undefined(self, node: ast.Name) -> UndefinedVariableError:
        candidates = self.scopes.visible_names() | {n for n in self.closure if not n.startswith("__")}
        return UndefinedVariableError(
            f"Undefined variable '{node.id}'",
            self.span(node),
            hint=did_you_mean(node.id, candidates) or "Check if the variable is defined before it is used",
        )
