"""From a JIT entry and the types of its arguments to a program."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from pypto.ir.dtype import DataType
from pypto.ir.enums import ParamDirection
from pypto.ir.expr import ConstInt, Expr, Var
from pypto.ir.program import Function, Program
from pypto.ir.types import (
    ArrayType,
    DistributedTensorType,
    ScalarType,
    TensorType,
    TensorView,
    Type,
    scalar_type,
)
from pypto.jit.annotations import Parameter
from pypto.jit.jit_parser import JITParser
from pypto.jit.kinds import Kind, options_of
from pypto.jit.tensor_meta import TensorMeta
from pypto.language.parser.context import ProgramContext, Signature
from pypto.language.parser.diagnostics import ParserError, ParserTypeError
from pypto.language.parser.type_resolver import TypeResolver
from pypto.language.typing.dynamic import DynVar

if TYPE_CHECKING:
    from pypto.jit.decorator import JITFunction


class Specialization:
    """One program in the making: its functions, and one symbol per symbol name."""

    def __init__(self, entry: JITFunction):
        self.entry = entry
        self.context = ProgramContext(f"_jit_{entry.__name__}")
        self.functions: dict[str, Function] = {}
        #: names of variables made for rebindings -> the user's names
        self.aliases: dict[str, str] = {}
        self._symbols: dict[str, DynVar] = {}
        self._instances: dict[tuple, Signature] = {}
        self._active: list[JITFunction] = []

    def symbol(self, name: str, known: DynVar | None = None) -> DynVar:
        """The symbol of this name in the program."""
        return self._symbols.setdefault(name, known or DynVar(name))

    def run(self, tensors: dict[str, TensorMeta], constants: dict[str, Any]) -> Program:
        """The program of the entry.

        Args:
            tensors: shape and dtype per tensor parameter.
            constants: scalar parameters that are replaced by their values.

        Raises:
            ParserError: a mistake in a body, located in the user's file.
        """
        entry = self.entry
        resolver = TypeResolver(entry.evaluator())
        params = []
        for parameter in entry.parameters:
            kind = self._entry_type(parameter, tensors.get(parameter.name), resolver)
            params.append((parameter.name, kind, parameter.direction))
        self._parse(entry, entry.__name__, params, constants)
        callables = [*self.functions.values(), *self.context.externals.values()]
        return Program(callables, self.context.name, self.functions[entry.__name__].span)

    def _entry_type(self, parameter: Parameter, meta: TensorMeta | None, resolver: TypeResolver) -> Type:
        if meta is not None:
            dims = self._dims(self.entry, parameter, list(meta.shape))
            if any(isinstance(d, int) and d == 0 for d in dims):
                raise ValueError(
                    f"@pl.jit function '{self.entry.__name__}': parameter '{parameter.name}' got an empty tensor of "
                    f"shape {list(meta.shape)}; only a pl.dynamic dimension may be 0"
                )
            return self._tensor_type(parameter, dims, meta.dtype, parameter.distributed)
        if parameter.annotation is None or parameter.kind is None:
            raise ParserTypeError(
                f"Parameter '{parameter.name}' missing type annotation",
                hint=f"Write {parameter.name}: pl.Scalar[pl.INT32] or pass a tensor",
            )
        if parameter.kind == "scalar":
            return scalar_type(resolver.resolve_dtype(parameter.dtype_node))
        kind, _ = resolver.resolve_param(parameter.annotation)
        return kind

    def _dims(self, function: JITFunction, parameter: Parameter, extents: list[Any]) -> list[Any]:
        """Extents with the symbolic dimensions of the function replaced by their symbols."""
        for (name, axis), symbol in function.dynamic_dims.items():
            if name == parameter.name and axis < len(extents):
                extents[axis] = self.symbol(symbol, function.symbol_object(symbol)).var
        return extents

    @staticmethod
    def _tensor_type(parameter: Parameter, dims: list[Any], dtype: DataType, distributed: bool) -> Type:
        view = None if parameter.layout is None else TensorView(layout=parameter.layout)
        return (DistributedTensorType if distributed else TensorType)(dims, dtype, None, view)

    # -- callees -------------------------------------------------------------------------------------------------

    def instance(
        self, callee: JITFunction, args: list[Expr], constants: dict[str, Any], node: ast.AST, caller: JITParser
    ) -> Signature:
        """The signature of ``callee`` for these arguments; equal types and constants share one function."""
        if callee in self._active:
            raise ParserTypeError(f"Recursive call of '{callee.__name__}'", caller.span(node))
        if len(args) > len(callee.parameters):
            raise ParserTypeError(
                f"Function '{callee.__name__}' expects {len(callee.parameters)} argument(s), got {len(args)}",
                caller.span(node),
            )
        resolver = TypeResolver(callee.evaluator())
        params = []
        for position, parameter in enumerate(callee.parameters):
            arg = args[position] if position < len(args) else None
            kind = self._callee_type(callee, parameter, arg, resolver, node, caller)
            direction = ParamDirection.In if callee.kind is Kind.INLINE else parameter.direction
            params.append((parameter.name, kind, direction))
        constants = {p.name: constants[p.name] for p in callee.parameters if p.kind == "scalar" and p.name in constants}
        key = (id(callee), *(kind for _, kind, _ in params), *constants.items())
        found = self._instances.get(key)
        if found is None:
            name = self._free_name(callee.__name__)
            found = self._instances[key] = self._parse(callee, name, params, constants)
        return found

    def _callee_type(
        self, callee: JITFunction, parameter: Parameter, arg: Expr | None, resolver: TypeResolver, node: ast.AST,
        caller: JITParser,
    ) -> Type:  # fmt: skip
        kind = None if arg is None else arg.type
        if isinstance(kind, TensorType):
            shape = caller.extents_around(arg) or kind.shape
            extents = [self._extent(parameter, axis, d) for axis, d in enumerate(shape)]
            dims = self._dims(callee, parameter, extents)
            return self._tensor_type(parameter, dims, kind.dtype, isinstance(kind, DistributedTensorType))
        if isinstance(kind, ScalarType):
            if parameter.kind == "scalar":
                return scalar_type(resolver.resolve_dtype(parameter.dtype_node))
            return resolver.resolve_type(parameter.annotation) if parameter.annotation is not None else kind
        if isinstance(kind, ArrayType):
            return kind
        if parameter.annotation is not None and parameter.kind in ("scalar", "other"):
            return resolver.resolve_param(parameter.annotation)[0]
        if parameter.kind == "tensor" and parameter.shape_node is not None:
            return resolver.resolve_param(parameter.annotation)[0]
        if kind is not None:
            return kind
        raise ValueError(
            f"@pl.jit: missing inferred tensor metadata for parameter '{parameter.name}' of '{callee.__name__}'. This "
            "usually means the tensor's shape/dtype could not be statically determined. Pass the tensor directly as a "
            "function argument."
        )

    def _extent(self, parameter: Parameter, axis: int, extent: Expr) -> Expr:
        """Constants and symbols pass through; an extent computed at run time becomes a symbol of its own."""
        if isinstance(extent, ConstInt):
            return extent
        if isinstance(extent, Var) and any(s.var is extent for s in self._symbols.values()):
            return extent
        return self.symbol(f"{parameter.name}_dim{axis}").var

    def _free_name(self, name: str) -> str:
        taken = {*self.functions, *self.context.externals, *(f.__name__ for f in self._active)}
        if name not in taken:
            return name
        number = 1
        while f"{name}_{number}" in taken:
            number += 1
        return f"{name}_{number}"

    def _parse(
        self,
        function: JITFunction,
        name: str,
        params: list[tuple[str, Type, ParamDirection]],
        constants: dict[str, Any],
    ) -> Signature:
        if function.kind is Kind.EXTERN:
            from pypto.jit.extern import build_extern

            return build_extern(function, name, params, self)
        node = function.node
        if node.name != name:
            node = _renamed(node, name)
        parser = JITParser(function.source, function.closure_vars(), self.context)
        parser.specialization = self
        parser.comments = function.parsed.comments_of(function.node)
        self._unify_symbols(parser.closure)
        options = options_of(function.kind, function.level, function.auto_scope)
        self._active.append(function)
        try:
            signature = parser.bind_parameters(function, node, options, params, constants)
            self.functions[name] = parser.parse_specialized(node, signature)
        except ParserError as error:
            if error.source_lines is None:
                error.source_lines = function.source.lines
            raise
        finally:
            self._active.pop()
        return signature

    def _unify_symbols(self, closure: dict[str, Any]) -> None:
        """Symbols of one name are one symbol in a program."""
        for name, value in closure.items():
            if isinstance(value, DynVar):
                closure[name] = self.symbol(value.name, value)


def _renamed(node: ast.FunctionDef, name: str) -> ast.FunctionDef:
    copy = ast.FunctionDef(**{f: getattr(node, f) for f in node._fields if hasattr(node, f)})
    copy.name = name
    return ast.copy_location(copy, node)
