"""What the parameters of a JIT function declare: kind, direction, symbolic dimensions."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import Any

from pypto.ir.dtype import DTYPES, DataType
from pypto.ir.enums import ParamDirection, TensorLayout
from pypto.ir.types import TensorView
from pypto.language.parser.expr_evaluator import ExprEvaluator
from pypto.language.parser.type_resolver import leaf_name
from pypto.language.typing.dynamic import DynVar

_DIRECTIONS = {"Out": ParamDirection.Out, "InOut": ParamDirection.InOut}
_TENSORS = ("Tensor", "DistributedTensor")


@dataclass
class Parameter:
    """One declared parameter.

    ``kind`` is ``tensor``, ``scalar`` or ``other`` (arrays, handles); ``None`` when nothing is annotated.
    ``shape_node`` is the written shape of a tensor, None for a bare ``pl.Tensor``.
    """

    name: str
    annotation: ast.expr | None
    kind: str | None = None
    direction: ParamDirection = ParamDirection.In
    distributed: bool = False
    shape_node: ast.expr | None = None
    dtype_node: ast.expr | None = None
    layout: TensorLayout | None = None
    layout_node: ast.expr | None = None
    dtype: DataType | None = None
    default: Any = field(default=None)
    has_default: bool = False

    def dynamic_dims(self, evaluator: ExprEvaluator) -> dict[int, DynVar]:
        """Axes whose written extent is a symbol."""
        if self.shape_node is None:
            return {}
        if isinstance(self.shape_node, (ast.List, ast.Tuple)):
            values = [evaluator.try_eval_expr(e)[1] for e in self.shape_node.elts]
        else:
            values = evaluator.try_eval_expr(self.shape_node)[1] or []
        return {axis: v for axis, v in enumerate(values) if isinstance(v, DynVar)}


def parameters_of(node: ast.FunctionDef, evaluator: ExprEvaluator, owner: str) -> list[Parameter]:
    """The parameters of a definition (``self`` excluded).

    Raises:
        TypeError: a tensor annotated with a full ``pl.TensorView``.
    """
    names = [a for a in node.args.args if a.arg != "self"]
    first_default = len(names) - len(node.args.defaults)
    result = []
    for position, arg in enumerate(names):
        parameter = _parameter(arg, evaluator, owner)
        if position >= first_default:
            parameter.default = evaluator.eval_expr(node.args.defaults[position - first_default])
            parameter.has_default = True
        result.append(parameter)
    return result


def _parameter(arg: ast.arg, evaluator: ExprEvaluator, owner: str) -> Parameter:
    parameter = Parameter(arg.arg, arg.annotation)
    node = arg.annotation
    if node is None:
        return parameter
    if isinstance(node, ast.Subscript) and leaf_name(node.value) in _DIRECTIONS:
        parameter.direction = _DIRECTIONS[leaf_name(node.value) or ""]
        node = node.slice
    name = leaf_name(node.value) if isinstance(node, ast.Subscript) else leaf_name(node)
    if name in _TENSORS:
        parameter.kind, parameter.distributed = "tensor", name == "DistributedTensor"
        if isinstance(node, ast.Subscript):
            _read_tensor(parameter, node, evaluator, owner)
    elif name == "Scalar" or name in DTYPES:
        parameter.kind = "scalar"
        parameter.dtype_node = node.slice if isinstance(node, ast.Subscript) else node
    else:
        found, value = evaluator.try_eval_expr(node)
        if found and isinstance(value, DataType):
            parameter.kind, parameter.dtype_node = "scalar", node
        elif name in ("int", "float", "bool"):
            parameter.kind = None
        else:
            parameter.kind = "other"
    return parameter


def _read_tensor(parameter: Parameter, node: ast.Subscript, evaluator: ExprEvaluator, owner: str) -> None:
    items = list(node.slice.elts) if isinstance(node.slice, ast.Tuple) else [node.slice]
    parameter.shape_node = items[0]
    parameter.dtype_node = items[1] if len(items) > 1 else None
    for item in items[2:]:
        if isinstance(item, ast.Call) and leaf_name(item.func) == "TensorView":
            raise _view_error(parameter.name, owner)
        name = leaf_name(item)
        value = evaluator.try_eval_expr(item)[1]
        if isinstance(value, TensorView):
            raise _view_error(parameter.name, owner)
        if not isinstance(value, TensorLayout):
            value = TensorLayout.__members__.get(name or "")
        if value is not None:
            parameter.layout, parameter.layout_node = value, item


def _view_error(name: str, owner: str) -> TypeError:
    return TypeError(
        f"@pl.jit function '{owner}': parameter '{name}' is annotated with a pl.TensorView, which @pl.jit does not yet "
        "support; use a layout such as pl.NZ, or write the kernel as a @pl.program"
    )
