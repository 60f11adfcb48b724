"""``predicate=(t[i, j] OP constant)`` of launches and spmd scopes."""

from __future__ import annotations

import ast

from pypto.ir.dtype import DataType
from pypto.ir.expr import Call, Cast, ConstInt, Expr, MakeTuple, Var
from pypto.language.parser.base import ParserBase
from pypto.language.parser.diagnostics import ParserSyntaxError, ParserTypeError

_DTYPES = (DataType.INT8, DataType.INT16, DataType.INT32, DataType.INT64)


class PredicatesMixin(ParserBase):
    """Parses dispatch predicates and proves that their operand is ready."""

    def parse_predicate(self, node: ast.expr, owner: str, deps: list[Expr], form: str) -> Expr:
        """The comparison expression.

        Args:
            node: the predicate.
            owner: kernel or construct name for messages.
            deps: explicit dependencies of the launch.
            form: ``submit``, ``as tid`` or ``plain``, for the hint.
        """
        if not isinstance(node, ast.Compare):
            raise self.fail(
                ParserSyntaxError, f"'{owner}' predicate must be a single comparison `tensor[i, j] OP constant`", node
            )
        comparison = self.parse_expression(node)
        read, constant = _strip(comparison.left), _strip(comparison.right)
        if isinstance(read, ConstInt):
            read, constant = constant, read
        if not (isinstance(read, Call) and read.op.name == "tensor.read" and isinstance(constant, ConstInt)):
            if isinstance(read, Call) and read.op.name == "tensor.read":
                raise self.fail(
                    ParserSyntaxError, f"'{owner}' predicate must compare against an integer literal: the right side "
                    "must be an integer literal", node,
                )  # fmt: skip
            raise self.fail(
                ParserSyntaxError, f"'{owner}' predicate must compare one tensor element with an integer literal", node
            )
        tensor = read.args[0]
        if tensor.type.dtype not in _DTYPES:
            raise self.fail(
                ParserTypeError,
                f"'{owner}' predicate operand must have a signed 8/16/32/64-bit integer dtype, got {tensor.type.dtype}",
                node,
            )
        self._check_indices(read, owner, node)
        self._check_producer(tensor, owner, deps, form, node)
        return comparison

    def _check_indices(self, read: Call, owner: str, node: ast.AST) -> None:
        indices = read.args[1].elements if isinstance(read.args[1], MakeTuple) else read.args[1:]
        for index in indices:
            if isinstance(index, ConstInt) and index.value < 0:
                raise self.fail(ParserTypeError, f"'{owner}' predicate index must be non-negative", node)

    def _check_producer(self, tensor: Expr, owner: str, deps: list[Expr], form: str, node: ast.AST) -> None:
        task = self.producers.get(tensor) if isinstance(tensor, Var) else None
        if task is None or not isinstance(tensor, Var):
            return
        current = self.producer_generation.get(tensor) == self.task_generation.get(task, 0)
        if any(d is task for d in deps) and current:
            return
        if any(not hasattr(d.type, "dtype") or type(d.type).__name__ == "ArrayType" for d in deps):
            return
        name = task.name_hint
        hint = f"Add the task to the launch: deps=[{name}]"
        if form == "plain":
            hint = (
                "This form of pl.spmd does not accept deps=; use `with pl.spmd(n, "
                f"deps=[{name}], predicate=...) as tid:`"
            )
        raise self.fail(
            ParserSyntaxError,
            f"'{owner}' predicate reads '{tensor.name_hint}', which is produced by the task bound to '{name}', "
            f"but '{name}' is not in deps=",
            node,
            hint=hint,
        )


def _strip(value: Expr) -> Expr:
    while isinstance(value, Cast):
        value = value.operand
    return value
