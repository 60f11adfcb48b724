"""The parser of JIT bodies: shapes and dtypes are constants, names may change their type, callees are specialised."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pypto.ir.dtype import DataType
from pypto.ir.enums import FunctionType, ParamDirection
from pypto.ir.expr import Call, ConstInt, Expr, IterArg, Var
from pypto.ir.stmt import AssignStmt, Stmt
from pypto.ir.types import DistributedTensorType, ScalarType, TensorType, TileType, Type
from pypto.language.parser.ast_parser import ASTParser
from pypto.language.parser.context import FunctionOptions, ProgramContext, Signature, SourceInfo
from pypto.language.parser.diagnostics import ParserSyntaxError, ParserTypeError
from pypto.language.parser.names import MISSING
from pypto.language.parser.type_consistency import same_kind_of_value

if TYPE_CHECKING:
    from pypto.jit.decorator import JITFunction
    from pypto.jit.specializer import Specialization

_SYMBOLIC = (FunctionType.Orchestration, FunctionType.Graph, FunctionType.Inline)


class JITParser(ASTParser):
    """Parses one JIT function for given parameter types.

    Names that are rebound straight-line get a variable of their own (``x``, ``x_v1``), so a name may change its type;
    names rebound in a loop or branch keep theirs.
    """

    def __init__(
        self,
        source: SourceInfo,
        closure_vars: Mapping[str, Any],
        program: ProgramContext | None = None,
        strict_ssa: bool = False,
    ):
        super().__init__(source, closure_vars, program, strict_ssa)
        self.specialization: Specialization | None = None
        #: Variable -> the statement list it was bound in.
        self.home: dict[Var, list[Stmt] | None] = {}
        self.taken: set[str] = set()
        self.returned: list[tuple[ast.Return, list[Expr]]] = []
        #: Scalar parameters that this specialisation replaces by their values.
        self.constants: dict[str, Any] = {}
        #: Tensor variable -> extents of its windows, run-time widths replaced by the extent they are cut from.
        self.outer_extents: dict[Var, tuple[Expr, ...]] = {}
        self.types.dtype_lookup = self._dtype_of

    def spawn(self, source: SourceInfo, closure_vars: Mapping[str, Any]) -> JITParser:
        inner = type(self)(source, closure_vars, self.program, self.strict_ssa)
        inner.specialization, inner.taken = self.specialization, self.taken
        return inner

    # -- signature and results -----------------------------------------------------------------------------------

    def bind_parameters(
        self,
        function: JITFunction,
        node: ast.FunctionDef,
        options: FunctionOptions,
        params: list[tuple[str, Type, ParamDirection]],
        constants: dict[str, Any],
    ) -> Signature:
        """Signature for these parameter types; ``constants`` are scalar parameters replaced by their values."""
        self.options, self.function_name, self.constants = options, node.name, constants
        self.scopes.enter_scope("function")
        for parameter in function.parameters:
            if parameter.layout_node is not None:
                self.types.views.tensor_slot(parameter.layout_node)
        spans = {a.arg: a for a in node.args.args}
        for name, kind, _ in params:
            var = Var(name, kind, self.span(spans.get(name)))
            self.params[name] = var
            if name in constants:
                self.closure[name] = constants[name]
            else:
                self.define(name, var, spans.get(name))
            self.home[var] = None
            if isinstance(kind, ScalarType) and kind.dtype == DataType.INDEX:
                self.types.param_symbols[name] = var
        self.taken = set(function.names)
        for local, symbol in function.symbols.items():
            self.closure[local] = self.specialization.symbol(symbol)
        return Signature(node.name, tuple(self.params.values()), [d for _, _, d in params], [], options)

    def parse_specialized(self, node: ast.FunctionDef, signature: Signature) -> Any:
        """The function, with result types taken from what it returns."""
        self._signature, self._node = signature, node
        return self.parse_function(node, signature)

    def _body(self, node: ast.FunctionDef, options: FunctionOptions) -> tuple[Stmt, bool]:
        body = super()._body(node, options)
        self._signature.return_types[:] = self._returned_types(node)
        return body

    def emit_return(self, values: list[Expr], node: ast.Return) -> None:
        if self.inline_returns is None:
            self.returned.append((node, values))
        super().emit_return(values, node)

    def _returned_types(self, node: ast.FunctionDef) -> list[Type]:
        if not self.returned:
            if node.returns is not None:
                return self._declared(node.returns, None) or []
            outs = zip(self._signature.params, self._signature.directions)
            return [_plain(p.type) for p, d in outs if d is ParamDirection.Out and isinstance(p.type, TensorType)]
        statement, values = self.returned[-1]
        names = statement.value.elts if isinstance(statement.value, ast.Tuple) else [statement.value]
        known: list[Type | None] = [
            _plain(v.type) if isinstance(n, ast.Name) and isinstance(v.type, (TensorType, ScalarType)) else None
            for n, v in zip(names, values)
        ]
        if all(k is not None for k in known):
            return [k for k in known if k is not None]
        return self._declared(node.returns, known) or []

    def _declared(self, node: ast.expr | None, known: list[Type | None] | None) -> list[Type] | None:
        """Written result types, completed by what is known about the returned values."""
        if node is None or (isinstance(node, ast.Constant) and node.value is None):
            return None
        members = [node]
        if isinstance(node, ast.Subscript) and getattr(node.value, "attr", getattr(node.value, "id", "")) in (
            "tuple", "Tuple",
        ):  # fmt: skip
            members = list(node.slice.elts) if isinstance(node.slice, ast.Tuple) else [node.slice]
        known = known if known is not None and len(known) == len(members) else [None] * len(members)
        bare = [isinstance(m, (ast.Name, ast.Attribute)) and k is None for m, k in zip(members, known)]
        if any(bare) and not any(isinstance(m, ast.Subscript) and k is None for m, k in zip(members, known)):
            return None
        return [k if k is not None else self.types.resolve_type(m) for m, k in zip(members, known)]

    # -- names ---------------------------------------------------------------------------------------------------

    def parse_body(self, body: list[ast.stmt], end_line: int | None = None) -> None:
        if self.inline_returns is None:
            for var in self.params.values():
                self.home[var] = self.bodies[-1]
        super().parse_body(body, end_line)

    def variable_for(self, name: str, kind: Type, annotated: bool, node: ast.stmt, in_place: bool) -> Var:
        old = self.scopes.lookup_var(name)
        fresh = old is None or type(old) is not Var or old in self.loop_vars
        straight = not fresh and not in_place and self.home.get(old) is self.bodies[-1]
        other_type = not fresh and not same_kind_of_value(old.type, kind)
        if straight or other_type or isinstance(old, IterArg):
            var = self.new_alias(name, kind, node)
        else:
            var = super().variable_for(name, kind, annotated, node, in_place)
        self.home.setdefault(var, self.bodies[-1])
        return var

    def new_alias(self, name: str, kind: Type, node: ast.AST) -> Var:
        """A variable for a rebound name, named ``name_v1``, ``name_v2``, ..."""
        number = 1
        while f"{name}_v{number}" in self.taken:
            number += 1
        alias = f"{name}_v{number}"
        self.taken.add(alias)
        self.specialization.aliases[alias] = name
        var = Var(alias, kind, self.span(node))
        self.define(name, var, node)
        return var

    def new_variable(self, name: str, kind: Type, node: ast.AST) -> Var:
        self.closure.pop(name, None) if not self.scopes.is_defined(name) else None
        return super().new_variable(name, kind, node)

    def forget(self, name: str) -> None:
        """Make ``name`` a Python value again."""
        for scope in self.scopes.scopes:
            scope.pop(name, None)

    # -- shapes and dtypes ---------------------------------------------------------------------------------------

    def parse_statement(self, node: ast.stmt) -> None:
        match node:
            case ast.Expr(value=ast.Call(func=ast.Attribute(attr="bind_dynamic"))):
                return
            case ast.Assign(targets=[ast.Name() as target], value=ast.Call(func=func)) if (
                self.public_path(func) == "pl.dynamic"
            ):
                self.forget(target.id)
                return
            case ast.Assign(targets=[target], value=value) if self._is_shape_value(value):
                self._bind_shape(target, value, node)
                return
        super().parse_statement(node)

    def _is_shape_value(self, node: ast.expr) -> bool:
        return self._shape_of(node) is not None or self._dim_of(node) is not None or self._dtype_of(node) is not None

    def _bind_shape(self, target: ast.expr, value: ast.expr, node: ast.Assign) -> None:
        """``M, N = x.shape``, ``m = x.shape[0]``, ``d = x.dtype``: names of constants, no statements."""
        shape = self._shape_of(value)
        if isinstance(target, (ast.Tuple, ast.List)) and shape is not None:
            if len(target.elts) != len(shape):
                message = f"Cannot unpack a shape of {len(shape)} dimensions into {len(target.elts)} names"
                raise self.fail(ParserSyntaxError, message, node)
            for index, element in enumerate(target.elts):
                self._bind_dim(element, shape[index], value.value, index, node)
            return
        if not isinstance(target, ast.Name):
            raise self.fail(ParserSyntaxError, f"Unsupported assignment: {ast.unparse(node)}", node)
        dim = self._dim_of(value)
        if dim is not None:
            tensor, axis, extent = dim
            self._bind_dim(target, extent, tensor, axis, node)
            return
        self.forget(target.id)
        dtype = self._dtype_of(value)
        self.closure[target.id] = dtype if dtype is not None else tuple(_python(d) for d in shape or ())

    def _bind_dim(self, target: ast.expr, extent: Expr, tensor: ast.expr, axis: int, node: ast.stmt) -> None:
        if not isinstance(target, ast.Name):
            raise self.fail(ParserSyntaxError, f"Unsupported assignment: {ast.unparse(node)}", node)
        if isinstance(extent, ConstInt):
            self.forget(target.id)
            self.closure[target.id] = extent.value
        elif self.options.type in _SYMBOLIC and isinstance(extent, Var):
            self.define(target.id, extent, node)
            self.loop_vars.add(extent)
        else:
            value = self.call_public("pl.tensor.dim", [self.parse_expression(tensor), axis], {}, node)
            self.bind_name(target.id, value, None, node)

    def _shaped(self, node: ast.expr) -> Expr | None:
        """The tensor or tile that a name of the body stands for."""
        value = self.scopes.lookup_var(node.id) if isinstance(node, ast.Name) else None
        return value if isinstance(getattr(value, "type", None), (TensorType, TileType)) else None

    def _shape_of(self, node: ast.expr) -> tuple | None:
        if isinstance(node, ast.Attribute) and node.attr == "shape":
            value = self._shaped(node.value)
            return None if value is None else value.type.shape
        return None

    def _dim_of(self, node: ast.expr) -> tuple[ast.expr, int, Expr] | None:
        """(tensor, axis, extent) of ``x.shape[i]``."""
        if not isinstance(node, ast.Subscript) or isinstance(node.slice, ast.Slice):
            return None
        shape = self._shape_of(node.value)
        if shape is None:
            return None
        found, axis = self.evaluator.try_eval_expr(node.slice)
        if not found or not isinstance(axis, int) or not -len(shape) <= axis < len(shape):
            raise self.fail(
                ParserTypeError, f"'{ast.unparse(node)}' needs a constant axis between 0 and {len(shape) - 1}", node
            )
        return node.value.value, axis % len(shape), shape[axis]

    def _dtype_of(self, node: ast.expr) -> DataType | None:
        if isinstance(node, ast.Attribute) and node.attr == "dtype":
            value = self._shaped(node.value)
            return None if value is None else value.type.dtype
        return None

    def fold(self, node: ast.expr) -> Any:
        dim = self._dim_of(node)
        if dim is not None:
            return dim[2].value if isinstance(dim[2], ConstInt) else MISSING
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "len" and node.args:
            shape = self._shape_of(node.args[0])
            if shape is not None:
                return len(shape)
        return super().fold(node)

    def parse_expression(self, node: ast.expr) -> Expr:
        if isinstance(node, (ast.Subscript, ast.Call)):
            value = self.fold(node)
            if value is not MISSING:
                return self.value_to_expr(value, node)
            dim = self._dim_of(node)
            if dim is not None:
                return self._symbolic_dim(dim, node)
        return super().parse_expression(node)

    def _symbolic_dim(self, dim: tuple[ast.expr, int, Expr], node: ast.expr) -> Expr:
        tensor, axis, extent = dim
        if self.options.type in _SYMBOLIC:
            return extent
        return self.call_public("pl.tensor.dim", [self.parse_expression(tensor), axis], {}, node)

    def operator_argument(self, node: ast.expr, keyword: bool = False) -> Any:
        dtype = self._dtype_of(node)
        if dtype is not None:
            return dtype
        shape = self._shape_of(node)
        if shape is not None:
            return [_python(d) for d in shape]
        return super().operator_argument(node, keyword)

    # -- calls ---------------------------------------------------------------------------------------------------

    def jit_callee(self, func: ast.expr) -> JITFunction | None:
        """The JIT function that a call names, aliases followed."""
        from pypto.jit.decorator import JITFunction

        value = self.closure_value(func)
        return value if isinstance(value, JITFunction) else None

    def parse_call(self, node: ast.Call) -> Expr:
        callee = self.jit_callee(node.func)
        if callee is None:
            return super().parse_call(node)
        nodes, options = callee.arrange(node, self)
        args, unordered = self.call_arguments(nodes)
        signature = self._instance(callee, nodes, args, node)
        attrs = self._call_options(signature, options)
        return self.finish_call(signature, args, unordered, attrs, node)

    def submit_callee(self, node: ast.Call, word: str, args: list[Expr]) -> Signature:
        callee = self.jit_callee(node.args[0]) if node.args else None
        if callee is None:
            return super().submit_callee(node, word, args)
        return self._instance(callee, node.args[1:], args, node)

    def _instance(self, callee: JITFunction, nodes: list[ast.expr], args: list[Expr], node: ast.Call) -> Signature:
        """The callee for these arguments; a scalar that is a constant here is one in the callee as well."""
        constants = {
            parameter.name: self.constants[given.id]
            for parameter, given in zip(callee.parameters, nodes)
            if isinstance(given, ast.Name) and given.id in self.constants and self.scopes.lookup_var(given.id) is None
        }
        return self.specialization.instance(callee, args, constants, node, self)

    def emit(self, stmt: Stmt) -> None:
        if isinstance(stmt, AssignStmt) and isinstance(stmt.var.type, TensorType):
            extents = self.extents_around(stmt.value)
            if extents is not None:
                self.outer_extents[stmt.var] = extents
        super().emit(stmt)

    def extents_around(self, value: Expr) -> tuple[Expr, ...] | None:
        """Extents of a window, where a width known at run time only is the one of the tensor it is cut from."""
        if isinstance(value, Var):
            return self.outer_extents.get(value)
        if not isinstance(value, Call) or value.op.name != "tensor.slice":
            return None
        source = value.args[0]
        around = self.extents_around(source) or source.type.shape
        own = value.type.shape
        if len(own) != len(around):
            return None
        return tuple(o if isinstance(o, ConstInt) else a for o, a in zip(own, around))

    def is_kernel(self, value: Any) -> bool:
        from pypto.jit.decorator import JITFunction

        return isinstance(value, JITFunction) or super().is_kernel(value)


def _plain(kind: Type) -> Type:
    """A tensor type without its MemRef, a view surviving only as a layout; other types unchanged."""
    if not isinstance(kind, TensorType):
        return kind
    cls = DistributedTensorType if isinstance(kind, DistributedTensorType) else TensorType
    view = kind.tensor_view
    keep = view if view is not None and not view.stride and not view.valid_shape else None
    return cls(kind.shape, kind.dtype, None, keep)


def _python(extent: Expr) -> Any:
    return extent.value if isinstance(extent, ConstInt) else extent
