"""MaterializeValidShapeSymbols: symbols in the valid shape of kernel parameters become leading scalar parameters."""

from __future__ import annotations

from pypto.errors import user_error
from pypto.ir.dtype import DataType
from pypto.ir.enums import ArgDirection, FunctionType, ParamDirection
from pypto.ir.expr import Call, Expr, Submit, Var
from pypto.ir.node import replace
from pypto.ir.program import Function, Program
from pypto.ir.types import ScalarType, TensorType, same_dim
from pypto.ir.visitor import IRMutator
from pypto.passes.lib.op_facts import is_user_call
from pypto.passes.lib.walk import map_functions, used_vars
from pypto.passes.pass_ import program_pass

_KERNELS = (FunctionType.InCore, FunctionType.AIC, FunctionType.AIV, FunctionType.Spmd, FunctionType.Group)

#: Symbol -> the (parameter index, axis) places that give its value.
Bindings = dict[Var, list[tuple[int, int]]]


def _bindings(function: Function) -> Bindings:
    if function.func_type not in _KERNELS:
        return {}
    known: set[Var] = set(function.params)
    symbols: Bindings = {}
    compound: dict[Var, Var] = {}
    tensors = [(i, p) for i, p in enumerate(function.params) if isinstance(p.type, TensorType)]
    if not any(p.type.tensor_view is not None and p.type.tensor_view.valid_shape for _, p in tensors):
        return {}
    for _, param in tensors:
        known.update(d for d in param.type.shape if isinstance(d, Var))
    for index, param in tensors:
        view = param.type.tensor_view
        for axis, extent in enumerate(view.valid_shape if view is not None else ()):
            if isinstance(extent, Var):
                if extent not in known:
                    symbols.setdefault(extent, []).append((index, axis))
                continue
            for var in used_vars(extent):
                if var not in known:
                    compound.setdefault(var, param)
    for var, param in compound.items():
        if var not in symbols:
            raise user_error(
                f"kernel '{function.name}': symbol '{var.name_hint}' occurs only in a compound valid_shape of "
                f"'{param.name_hint}', so its value cannot be read from an argument; use it alone as one extent or "
                "pass it as a scalar parameter",
                span=function.span,
            )
    return symbols


class _Calls(IRMutator):
    """Prepends the symbol values to the calls of changed kernels."""

    def __init__(self, program: Program, bindings: dict[str, Bindings]) -> None:
        super().__init__()
        self._program, self._bindings = program, bindings

    def visit_type(self, kind):
        return kind

    def visit_call(self, call: Call) -> Expr:
        return self._with_symbols(super().visit_call(call))

    def visit_submit(self, submit: Submit) -> Expr:
        return self._with_symbols(super().visit_submit(submit))

    def _with_symbols(self, call: Call | Submit) -> Expr:
        bindings = self._bindings.get(call.op.name) if is_user_call(call) else None
        if not bindings:
            return call
        values = tuple(self._value(call, symbol, places) for symbol, places in bindings.items())
        attrs = call.attrs
        if attrs.get("arg_directions"):
            attrs = {**attrs, "arg_directions": [ArgDirection.Scalar] * len(values) + list(attrs["arg_directions"])}
        return replace(call, args=(*values, *call.args), attrs=attrs)

    def _value(self, call: Call | Submit, symbol: Var, places: list[tuple[int, int]]) -> Expr:
        name = call.op.name
        found: Expr | None = None
        for index, axis in places:
            if index >= len(call.args):
                param = self._program.get_function(name).params[index]
                raise user_error(
                    f"kernel '{name}' needs the value of symbol '{symbol.name_hint}' from its parameter "
                    f"'{param.name_hint}', but this launch does not supply that argument. Pass the argument explicitly",
                    span=call.span,
                )
            value = call.args[index].type.valid_shape[axis]
            if found is not None and not same_dim(found, value):
                raise user_error(
                    f"call of '{name}': symbol '{symbol.name_hint}' gets two different values from its arguments; "
                    "both must have the same valid extent",
                    span=call.span,
                )
            found = value
        return found


def _with_params(function: Function, symbols: Bindings) -> Function:
    if not symbols:
        return function
    names = tuple(symbols)
    for symbol in names:
        kind = symbol.type
        if not (isinstance(kind, ScalarType) and (kind.dtype.is_int() or kind.dtype == DataType.INDEX)):
            raise user_error(f"symbol '{symbol.name_hint}' of a valid_shape must be an integer scalar")
    directions = [ParamDirection.In] * len(names) + list(function.param_directions)
    return replace(function, params=(*names, *function.params), param_directions=directions)


@program_pass("MaterializeValidShapeSymbols")
def materialize_valid_shape_symbols(program: Program) -> Program:
    """Pass the value of every valid-shape symbol of a kernel as a leading INDEX argument."""
    bindings = {f.name: b for f in program.functions.values() if (b := _bindings(f))}
    if not bindings:
        return program
    calls = _Calls(program, bindings)

    def rewrite(function: Function) -> Function:
        if function.body is not None:
            function = calls.visit_function(function)
        return _with_params(function, bindings.get(function.name, {}))

    return map_functions(program, rewrite)
