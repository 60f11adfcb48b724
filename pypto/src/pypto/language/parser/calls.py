"""Calls: which callee a call expression names, calls between functions, their arguments and results."""

from __future__ import annotations

import ast
from typing import Any

from pypto.ir.calls import deduce_call_return_type
from pypto.ir.enums import FunctionType, Level, Role
from pypto.ir.expr import Call, ConstInt, Expr, GlobalVar, Var
from pypto.ir.node import make
from pypto.ir.program import Function
from pypto.ir.types import DistributedTensorType, ScalarType, ShapedType, TupleType, Type, UnknownType
from pypto.language.parser.base import ParserBase
from pypto.language.parser.context import Signature, signature_of
from pypto.language.parser.diagnostics import (
    InvalidOperationError,
    ParserSyntaxError,
    ParserTypeError,
    UndefinedVariableError,
    did_you_mean,
)
from pypto.language.parser.inline_templates import InlineFunction
from pypto.language.parser.names import MISSING
from pypto.language.parser.type_consistency import type_text

_REGION_OPS = ("aiv_shard", "aic_gather")
_REGION_PATHS = {f"{root}.{name}" for root in ("pl", "pl.tensor", "pl.tile") for name in _REGION_OPS}


class CallsMixin(ParserBase):
    """Parses call expressions."""

    def parse_call(self, node: ast.Call) -> Expr:
        func = node.func
        if isinstance(func, ast.Attribute) and isinstance(func.value, ast.Name) and func.value.id == "self":
            if self.program is not None and not self.scopes.is_defined("self"):
                return self._method_call(func.attr, node)
        path = self.public_path(func)
        if path is not None:
            return self._public_call(path, node)
        if isinstance(func, ast.Name) and func.id in ("min", "max", "abs") and not self._is_known(func.id):
            return self.scalar_builtin(func.id, node)
        callee = self.closure_value(func)
        if isinstance(callee, Function):
            return self._external_call(callee, node)
        if isinstance(callee, InlineFunction):
            return self.expand_inline(callee, node)
        value = self.closure_value(node)
        if value is not MISSING and isinstance(value, (bool, int, float, list, tuple)):
            return self.value_to_expr(value, node)
        raise self.unsupported(
            f"Unsupported function call: {ast.unparse(node)}",
            node,
            hint="Call pl.* operators, self.<function>, a @pl.function or a @pl.inline template",
        )

    def _is_known(self, name: str) -> bool:
        return self.scopes.is_defined(name) or name in self.closure

    def _public_call(self, path: str, node: ast.Call) -> Expr:
        match path:
            case "pl.const":
                return self.parse_const(node)
            case "pl.no_dep" | "pl.tensor.no_dep":
                return self.parse_expression(self._only_argument(node, path))
            case "pl.system.task_dummy":
                return self.parse_task_dummy(node)
            case "pld.world_size" | "pld.system.world_size":
                self.require_host("pld.world_size", node)
            case "pld.alloc_window_buffer" | "pld.tensor.alloc_window_buffer":
                raise self.fail(
                    ParserSyntaxError,
                    "pld.alloc_window_buffer() must appear as the RHS of a simple assignment",
                    node,
                    hint="Write buf = pld.alloc_window_buffer(...); the name of the variable names the buffer",
                )
            case "pl.submit" | "pl.spmd_submit":
                raise self.fail(
                    ParserSyntaxError, f"{path}(...) must be a statement of its own", node,
                    hint=f"Write result, task_id = {path}(...)",
                )  # fmt: skip
            case "pl.yield_":
                raise self.fail(ParserSyntaxError, "pl.yield_() cannot be used inside an expression", node)
        if path in _REGION_PATHS:
            return self._region_call(path, node)
        if self.public_path(node.func) and self._is_type_method(node):
            value = self.closure_value(node)
            if value is not MISSING:
                return self.value_to_expr(value, node)
        return self.parse_operator_call(path, node)

    def _only_argument(self, node: ast.Call, path: str) -> ast.expr:
        if len(node.args) != 1 or node.keywords:
            raise self.fail(ParserSyntaxError, f"{path}() takes exactly one positional argument", node)
        return node.args[0]

    def _region_call(self, path: str, node: ast.Call) -> Expr:
        """``pl.aiv_shard`` / ``pl.aic_gather``: inside a region the split comes from the region."""
        split = self.region_splits[-1] if self.region_splits else None
        if split is None:
            return self.parse_operator_call(path, node)
        if len(node.args) != 1 or node.keywords:
            raise self.fail(
                InvalidOperationError,
                f"{path}() takes exactly one positional argument inside a pl.split_aiv region",
                node,
                hint="The split comes from the mode of the region",
            )
        value = self.parse_expression(node.args[0])
        if isinstance(value.type, DistributedTensorType):
            raise self.fail(
                ParserSyntaxError, f"{path}() takes a plain value of the kernel, not a distributed tensor",
                node.args[0], hint="Load the window first",
            )  # fmt: skip
        name = path.rsplit(".", 1)[1]
        where = "tile" if type(value.type).__name__ == "TileType" else "tensor"
        return self.call_operator(f"{where}.{name}", [value], {"split": int(split)}, node)

    # -- functions of the program --------------------------------------------------------------------------------

    def signature(self, name: str, node: ast.AST) -> Signature:
        """The signature of a method of the program."""
        signatures = self.program.signatures if self.program else {}
        found = signatures.get(name)
        if found is None:
            raise UndefinedVariableError(
                f"Function '{name}' not defined in program",
                self.span(node),
                hint=did_you_mean(name, signatures) or f"Functions of the program: {', '.join(sorted(signatures))}",
            )
        return found

    def _method_call(self, name: str, node: ast.Call) -> Expr:
        return self._function_call(self.signature(name, node), node)

    def _external_call(self, callee: Function, node: ast.Call) -> Expr:
        if self.program is not None:
            if callee.name in self.program.signatures:
                raise self.fail(
                    ParserSyntaxError,
                    f"External function '{callee.name}' conflicts with program function '{callee.name}'",
                    node,
                    hint="Rename one of them",
                )
            known = self.program.externals.setdefault(callee.name, callee)
            if known is not callee:
                raise self.fail(
                    ParserSyntaxError,
                    f"Conflicting external functions with name '{callee.name}'",
                    node,
                    hint="Two different functions with one name cannot be in one program",
                )
        return self._function_call(signature_of(callee), node)

    def _function_call(self, callee: Signature, node: ast.Call) -> Expr:
        attrs = self._call_options(callee, node.keywords)
        args, unordered = self.call_arguments(node.args)
        return self.finish_call(callee, args, unordered, attrs, node)

    def finish_call(
        self, callee: Signature, args: list[Expr], unordered: list[int], attrs: dict[str, Any], node: ast.Call
    ) -> Expr:
        """The call of a function of the program with parsed arguments."""
        if len(args) != len(callee.params):
            raise self.fail(
                ParserTypeError,
                f"Function '{callee.name}' expects {len(callee.params)} argument(s), got {len(args)}",
                node,
                hint=f"Parameters: {', '.join(p.name_hint for p in callee.params)}",
            )
        self._check_kinds(callee, args, node)
        if unordered:
            attrs.setdefault("arg_direction_overrides", unordered)
        dumps = self.tagged_for_dump(args)
        if dumps:
            attrs.setdefault("dump_vars", dumps)
        self._check_symbols(callee, args, node)
        kind = self.result_type(callee, args)
        return make(Call, GlobalVar(callee.name), tuple(args), {}, attrs, kind, self.span(node))

    def _check_kinds(self, callee: Signature, args: list[Expr], node: ast.Call) -> None:
        """Tensors for tensor parameters, numbers for scalar ones."""
        for position, (param, arg) in enumerate(zip(callee.params, args), 1):
            kinds = (param.type, arg.type)
            if not any(isinstance(k, ScalarType) for k in kinds) or not any(isinstance(k, ShapedType) for k in kinds):
                continue
            remedy = "Pass a tensor" if isinstance(param.type, ShapedType) else "Read one element: pl.read(tensor, [i])"
            raise ParserTypeError(
                f"Argument {position} of '{callee.name}' is {type_text(arg.type)}, but parameter "
                f"'{param.name_hint}' is {type_text(param.type)}",
                arg.span if arg.span.is_valid() else self.span(node),
                hint=remedy,
            )

    def _check_symbols(self, callee: Signature, args: list[Expr], node: ast.Call) -> None:
        """One symbol of the callee may not stand for two different constants."""
        bound: dict[Var, int] = {}
        for param, arg in zip(callee.params, args):
            declared, given = getattr(param.type, "shape", ()), getattr(arg.type, "shape", ())
            for dim, extent in zip(declared, given):
                if type(dim) is not Var or not isinstance(extent, ConstInt):
                    continue
                if bound.setdefault(dim, extent.value) != extent.value:
                    raise self.fail(
                        ParserSyntaxError,
                        f"Call of '{callee.name}' gives conflicting bindings for dimension '{dim.name_hint}': "
                        f"{bound[dim]} and {extent.value}",
                        node,
                    )

    def _call_options(self, callee: Signature, keywords: list[ast.keyword]) -> dict[str, Any]:
        attrs: dict[str, Any] = {}
        for keyword in keywords:
            match keyword.arg:
                case "attrs":
                    attrs.update(self.parse_attrs(keyword.value))
                case "device" if self._may_choose_device(callee):
                    attrs["device"] = self._device(keyword.value)
                case _:
                    raise self.fail(
                        ParserTypeError,
                        f"Function '{callee.name}' does not accept keyword argument '{keyword.arg}'",
                        keyword.value,
                        hint=_keyword_hint(keyword.arg),
                    )
        return attrs

    def _device(self, node: ast.expr) -> Expr:
        device = self.parse_expression(node)
        if not (isinstance(device.type, ScalarType) and device.type.dtype.is_int()):
            raise self.fail(
                ParserTypeError, f"device= must be an integer, got {type_text(device.type)}", node,
                hint="Use a rank, e.g. the variable of for r in pl.range(pld.world_size())",
            )  # fmt: skip
        return device

    def _may_choose_device(self, callee: Signature) -> bool:
        options = self.options
        return options.level is Level.HOST and options.role is Role.Orchestrator and callee.is_chip_orchestrator

    def call_arguments(self, nodes: list[ast.expr]) -> tuple[list[Expr], list[int]]:
        """(arguments, positions wrapped in ``pl.no_dep``)."""
        args: list[Expr] = []
        unordered: list[int] = []
        for index, node in enumerate(nodes):
            if isinstance(node, ast.Starred):
                raise self.unsupported("Argument unpacking (*args) is not supported", node)
            if isinstance(node, ast.Call) and self.public_path(node.func) in ("pl.no_dep", "pl.tensor.no_dep"):
                node = self._only_argument(node, "pl.no_dep")
                unordered.append(index)
            args.append(self.parse_expression(node))
            if index in unordered and isinstance(args[-1].type, ScalarType):
                raise self.fail(ParserTypeError, "pl.no_dep() applies to tensors, not to scalars", node)
        return args, unordered

    def result_type(self, callee: Signature, args: list[Expr]) -> Type:
        """The declared results with the callee's symbols replaced by the extents of the arguments."""
        kinds = deduce_call_return_type(list(callee.params[: len(args)]), args, callee.return_types)
        if not kinds:
            return UnknownType.get()
        return kinds[0] if len(kinds) == 1 else TupleType(tuple(kinds))

    def tagged_for_dump(self, args: list[Expr]) -> list[Var]:
        """Arguments that ``pl.dump_tag`` marked, in argument order."""
        tagged = {id(v) for v in self.dump_tags}
        found: dict[int, Var] = {}
        for arg in args:
            if id(arg) in tagged and isinstance(arg, Var):
                found.setdefault(id(arg), arg)
        return list(found.values())

    def is_orchestration(self) -> bool:
        """True in a body that submits tasks."""
        return self.options.type in (FunctionType.Orchestration, FunctionType.Graph)


def _keyword_hint(name: str | None) -> str:
    if name in ("deps", "dumps", "allow_early_resolve", "predicate"):
        return f"Use pl.submit(self.kernel, ..., {name}=...) for a launch with {name}"
    return "Arguments of functions are positional"
