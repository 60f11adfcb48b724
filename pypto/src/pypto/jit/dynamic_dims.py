"""Which dimensions of a JIT function are symbolic, known before any argument is seen."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from pypto.language.typing.dynamic import DynVar

if TYPE_CHECKING:
    from pypto.jit.decorator import JITFunction

#: (parameter, axis) -> name of the symbol.
DynamicDims = dict[tuple[str, int], str]


def dynamic_dims(function: JITFunction) -> DynamicDims:
    """Symbolic dimensions: written in annotations, bound in the body, or symbolic in a function it passes them to."""
    node, evaluator = function.node, function.evaluator()
    dims: DynamicDims = {}
    for parameter in function.parameters:
        for axis, symbol in parameter.dynamic_dims(evaluator).items():
            dims[parameter.name, axis] = symbol.name
    names = {p.name for p in function.parameters}
    symbols = function.symbols
    for child in ast.walk(node):
        if not isinstance(child, ast.Call):
            continue
        bound = _bind_dynamic(child)
        if bound is not None and bound[0] in names:
            tensor, axis, symbol = bound
            value = evaluator.try_eval_expr(symbol)[1]
            fallback = symbols.get(getattr(symbol, "id", ""), ast.unparse(symbol))
            dims.setdefault((tensor, axis), value.name if isinstance(value, DynVar) else fallback)
    for callee, arguments in function.calls:
        if callee is function:
            continue
        inner = callee.dynamic_dims
        for parameter, argument in arguments.items():
            if isinstance(argument, ast.Name) and argument.id in names:
                for (name, axis), symbol in inner.items():
                    if name == parameter:
                        dims.setdefault((argument.id, axis), symbol)
    return dims


def body_symbols(node: ast.FunctionDef) -> dict[str, str]:
    """Local name -> symbol name of ``M = pl.dynamic("M")`` statements."""
    found = {}
    for child in ast.walk(node):
        if isinstance(child, ast.Assign) and isinstance(child.value, ast.Call) and len(child.targets) == 1:
            target, func, args = child.targets[0], child.value.func, child.value.args
            if isinstance(target, ast.Name) and getattr(func, "attr", None) == "dynamic":
                literal = args[0].value if args and isinstance(args[0], ast.Constant) else target.id
                found[target.id] = str(literal)
    return found


def _bind_dynamic(node: ast.Call) -> tuple[str, int, ast.expr] | None:
    func = node.func
    if not isinstance(func, ast.Attribute) or func.attr != "bind_dynamic" or not isinstance(func.value, ast.Name):
        return None
    if len(node.args) != 2 or not isinstance(node.args[0], ast.Constant) or not isinstance(node.args[0].value, int):
        return None
    return func.value.id, node.args[0].value, node.args[1]
