"""Task launches: ``pl.submit``, ``pl.spmd_submit``, dependencies, task barriers."""

from __future__ import annotations

import ast
import copy
from typing import Any

from pypto.ir.dtype import DataType
from pypto.ir.enums import ParamDirection
from pypto.ir.expr import Call, ConstInt, Expr, GlobalVar, Submit, TupleGetItemExpr, Var
from pypto.ir.node import make
from pypto.ir.stmt import AssignStmt
from pypto.ir.types import ArrayType, ScalarType, TensorType, TupleType, Type, UnknownType, scalar_type
from pypto.language.parser.base import ParserBase
from pypto.language.parser.context import Signature
from pypto.language.parser.diagnostics import ParserSyntaxError, ParserTypeError

_OPTIONS = ("deps", "dumps", "allow_early_resolve", "predicate", "attrs")
_SPMD_OPTIONS = (*_OPTIONS, "core_num", "sync_start")


class SubmitsMixin(ParserBase):
    """Parses task launches and everything that names task ids."""

    def parse_submit_assignment(
        self, target: ast.expr, kind: Type | None, value: ast.expr, node: ast.stmt, spmd: bool
    ) -> None:
        """``out, tid = pl.submit(...)``, ``(a, b), tid = ...`` or one name for the flat tuple."""
        assert isinstance(value, ast.Call)
        word = "pl.spmd_submit" if spmd else "pl.submit"
        if isinstance(target, ast.Name):
            submit, _ = self.parse_submit(value, spmd)
            self.bind_name(target.id, submit, kind, node)
            return
        elements = list(getattr(target, "elts", []))
        if len(elements) != 2:
            raise self.fail(
                ParserSyntaxError,
                f"{word}(...) must be unpacked as exactly 2 targets (result, task_id), got {max(len(elements), 1)}",
                node,
                hint="Several results are grouped: (a, b), tid = pl.submit(...)",
            )
        results, tid = elements
        names = list(results.elts) if isinstance(results, (ast.Tuple, ast.List)) else [results]
        if not isinstance(tid, ast.Name) or not all(isinstance(n, ast.Name) for n in names):
            raise self.fail(ParserSyntaxError, f"The targets of {word}(...) must be plain names", target)
        submit, callee = self.parse_submit(value, spmd)
        count = len(submit.type.types) - 1 if isinstance(submit.type, TupleType) else 0
        grouped = isinstance(results, (ast.Tuple, ast.List))
        if (grouped and len(names) != count) or (not grouped and count > 1):
            raise self.fail(
                ParserTypeError,
                f"{word}(...) unpacks {len(names)} result value(s) but kernel '{callee.name}' returns {count}",
                node,
                hint=f"Give {count} name(s) for the results",
            )
        self._bind_results(names if count else [], tid, submit, node)

    def _bind_results(self, results: list[Any], tid: ast.Name, submit: Submit, node: ast.stmt) -> None:
        span = self.span(node)
        if not isinstance(submit.type, TupleType):
            self.bind_name(tid.id, submit, None, node)
            return
        temporary = Var("_submit_tmp", submit.type, span)
        self.emit(AssignStmt(temporary, submit, span))
        bound = []
        for index, name in enumerate(results):
            bound.append(self.bind_name(name.id, TupleGetItemExpr(temporary, index, span), None, node))
        task = self.bind_name(tid.id, TupleGetItemExpr(temporary, len(submit.type.types) - 1, span), None, node)
        for var in bound:
            self.record_producer(var, task)

    def record_producer(self, var: Var, task: Var) -> None:
        """``var`` is written by the launch whose id was just bound to ``task``."""
        self.producers[var] = task
        self.producer_generation[var] = self.task_generation.get(task, 0)

    def parse_submit(self, node: ast.Call, spmd: bool) -> tuple[Submit, Signature]:
        """The launch expression and its callee."""
        word = "pl.spmd_submit" if spmd else "pl.submit"
        options = self._submit_options(node, word, spmd)
        args, unordered = self.call_arguments(node.args[1:])
        callee = self.submit_callee(node, word, args)
        self._check_arguments(callee, args, node)
        deps = self.parse_deps(options["deps"], callee.name) if "deps" in options else []
        attrs = self.parse_attrs(options["attrs"]) if "attrs" in options else {}
        if unordered:
            attrs.setdefault("arg_direction_overrides", unordered)
        self._submit_dumps(callee, options.get("dumps"), args, attrs)
        core_num = self._core_num(options, word, node) if spmd else None
        predicate = None
        if "predicate" in options:
            predicate = self.parse_predicate(options["predicate"], callee.name, deps, "submit")
        kinds = self._result_types(callee, args)
        submit = make(
            Submit, GlobalVar(callee.name), tuple(args), tuple(deps), {}, attrs, kinds, self.span(node), core_num,
            self.bool_literal(options.get("sync_start"), f"{word}() sync_start"),
            self.bool_literal(options.get("allow_early_resolve"), f"{word}() allow_early_resolve"),
            predicate,
        )  # fmt: skip
        return submit, callee

    def _result_types(self, callee: Signature, args: list[Expr]) -> Type:
        task = scalar_type(DataType.TASK_ID)
        kind = self.result_type(callee, args)
        if isinstance(kind, UnknownType):
            return task
        members = kind.types if isinstance(kind, TupleType) else (kind,)
        return TupleType((*members, task))

    def submit_callee(self, node: ast.Call, word: str, args: list[Expr]) -> Signature:
        """The kernel that the first argument names."""
        first = node.args[0] if node.args else None
        if self.program is None:
            raise self.fail(ParserSyntaxError, f"{word} is only supported inside @pl.program methods", node)
        if not (isinstance(first, ast.Attribute) and isinstance(first.value, ast.Name) and first.value.id == "self"):
            raise self.fail(
                ParserSyntaxError, f"The first argument of {word}(...) must be self.<kernel>", first or node,
                hint=f"Write {word}(self.kernel, *args)",
            )  # fmt: skip
        return self.signature(first.attr, first)

    def _submit_options(self, node: ast.Call, word: str, spmd: bool) -> dict[str, ast.expr]:
        options: dict[str, ast.expr] = {}
        for keyword in node.keywords:
            if keyword.arg not in (_SPMD_OPTIONS if spmd else _OPTIONS):
                raise self.fail(
                    ParserTypeError, f"{word} does not accept keyword argument '{keyword.arg}'", keyword.value,
                    hint=f"Keywords: {', '.join(_SPMD_OPTIONS if spmd else _OPTIONS)}",
                )  # fmt: skip
            options[keyword.arg] = keyword.value
        return options

    def _check_arguments(self, callee: Signature, args: list[Expr], node: ast.Call) -> None:
        """Trailing Out parameters may be left to the runtime."""
        most = len(callee.params)
        least = most - sum(1 for d in callee.directions if d is ParamDirection.Out)
        if not least <= len(args) <= most:
            wanted = str(most) if least == most else f"{least}..{most}"
            raise self.fail(
                ParserTypeError, f"Function '{callee.name}' expects {wanted} argument(s), got {len(args)}", node
            )

    def _submit_dumps(self, callee: Signature, node: ast.expr | None, args: list[Expr], attrs: dict[str, Any]) -> None:
        listed = self.tensor_list(node, "dumps", callee.name) if node is not None else []
        for var in listed:
            if not any(a is var for a in args):
                raise self.fail(
                    ParserTypeError, f"dumps= entry '{var.name_hint}' is not an argument of this submit", node
                )
        found = {id(v): v for v in (*listed, *self.tagged_for_dump(args))}
        if found:
            attrs.setdefault("dump_vars", list(found.values()))

    def _core_num(self, options: dict[str, ast.expr], word: str, node: ast.Call) -> Expr:
        if "core_num" not in options:
            raise self.fail(ParserSyntaxError, f"{word}() requires core_num=", node)
        return self.parse_core_num(options["core_num"], word)

    def parse_core_num(self, node: ast.expr, word: str) -> Expr:
        """A positive number of blocks: a constant or an integer expression."""
        value = self.parse_expression(node)
        kind = value.type
        if not (isinstance(kind, ScalarType) and kind.dtype.is_int()):
            raise self.fail(ParserSyntaxError, f"{word}() core_num must be an integer expression", node)
        if isinstance(value, ConstInt) and value.value <= 0:
            raise self.fail(ParserSyntaxError, f"{word}() core_num must be a positive integer, got {value.value}", node)
        return value

    def bool_literal(self, node: ast.expr | None, what: str) -> bool:
        """A ``True``/``False`` literal, False when absent."""
        if node is None:
            return False
        if isinstance(node, ast.Constant) and isinstance(node.value, bool):
            return node.value
        raise self.fail(ParserSyntaxError, f"{what} must be a boolean literal", node)

    # -- dependencies --------------------------------------------------------------------------------------------

    def parse_deps(self, node: ast.expr, owner: str) -> list[Expr]:
        """The task ids of ``deps=[...]``; elements of an array are collected into a fresh array."""
        entries = self._dep_nodes(node, owner)
        deps: list[Expr] = []
        elements: list[Expr] = []
        for entry in entries:
            self._dep(entry, owner, deps, elements)
        if elements:
            if any(isinstance(d.type, ArrayType) for d in deps):
                raise self.fail(
                    ParserTypeError, f"'{owner}' deps= cannot mix a whole TASK_ID array with array elements", node
                )
            deps.append(self._collect_elements(elements, node))
        return deps

    def _dep_nodes(self, node: ast.expr, owner: str) -> list[ast.expr]:
        if isinstance(node, (ast.List, ast.Tuple)):
            return list(node.elts)
        if isinstance(node, (ast.ListComp, ast.GeneratorExp)):
            return self._unrolled(node, owner)
        raise self.fail(
            ParserSyntaxError, f"'{owner}' deps= must be a list or tuple of TaskIds, or a list comprehension", node,
            hint="Write deps=[tid] or deps=[tids[i] for i in range(4)]",
        )  # fmt: skip

    def _unrolled(self, node: ast.ListComp | ast.GeneratorExp, owner: str) -> list[ast.expr]:
        """One entry per value of a comprehension over Python integers."""
        clause = node.generators[0]
        if len(node.generators) != 1 or not isinstance(clause.target, ast.Name):
            raise self.fail(ParserTypeError, f"'{owner}' deps= comprehension takes one 'for' over one name", node)
        if isinstance(clause.iter, ast.Call) and self.public_path(clause.iter.func):
            raise self.fail(
                ParserTypeError, f"'{owner}' deps= comprehension must iterate over a Python range or list", clause.iter
            )
        values = self.evaluator.eval_expr(clause.iter)
        result = []
        for value in values:
            if not isinstance(value, int):
                raise self.fail(ParserTypeError, f"'{owner}' deps= comprehension must iterate over ints", clause.iter)
            names = {clause.target.id: value}
            if all(self._filter(test, names) for test in clause.ifs):
                result.append(_substitute(node.elt, names))
        return result

    def _filter(self, test: ast.expr, names: dict[str, Any]) -> bool:
        return bool(self.evaluator.eval_expr(_substitute(test, names)))

    def _dep(self, node: ast.expr, owner: str, deps: list[Expr], elements: list[Expr]) -> None:
        if isinstance(node, ast.Constant) and node.value is None:
            return
        if isinstance(node, ast.Name):
            value = self.lookup_name(node)
            kind = value.type
            if isinstance(value, Var) and isinstance(kind, (ScalarType, ArrayType)) and kind.dtype == DataType.TASK_ID:
                deps.append(value)
                return
        elif isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name):
            base = self.lookup_name(node.value)
            if isinstance(base.type, ArrayType) and base.type.dtype == DataType.TASK_ID:
                elements.append(self.parse_expression(node))
                return
        raise self.fail(
            ParserTypeError,
            f"'{owner}' deps= entries must be a TaskId variable, a TASK_ID array element (e.g. `arr[i]`), or None — "
            f"got '{ast.unparse(node)}'",
            node,
        )

    def _collect_elements(self, elements: list[Expr], node: ast.AST) -> Expr:
        """A fresh array that holds the listed elements."""
        span = self.span(node)
        created = self.call_public("pl.array.create", [len(elements), DataType.TASK_ID], {}, node)
        array = Var("_deps_tmp", created.type, span)
        self.emit(AssignStmt(array, created, span))
        for index, element in enumerate(elements):
            updated = self.call_public("pl.array.update_element", [array, index, element], {}, node)
            self.emit(AssignStmt(array, updated, span))
        return array

    def parse_task_dummy(self, node: ast.Call) -> Expr:
        """``pl.system.task_dummy(deps=[...])``: a barrier with a task id of its own."""
        options = {k.arg: k.value for k in node.keywords}
        if "deps" not in options:
            raise self.fail(ParserTypeError, "pl.system.task_dummy() requires keyword argument 'deps'", node)
        if node.args or set(options) - {"deps", "attrs"}:
            raise self.fail(ParserTypeError, "pl.system.task_dummy() takes only deps=", node)
        deps = self.parse_deps(options["deps"], "task_dummy")
        attrs: dict[str, Any] = {"dummy_task": True, "manual_dep_edges": deps}
        if "attrs" in options:
            attrs.update(self.parse_attrs(options["attrs"]))
        call = self.call_operator("system.task_dummy", [], {}, node)
        return make(Call, call.op, call.args, call.kwargs, attrs, call.type, self.span(node))

    def tensor_list(self, node: ast.expr, option: str, owner: str) -> list[Var]:
        """The variables of a list literal of tensor names, without duplicates."""
        if not isinstance(node, (ast.List, ast.Tuple)):
            raise self.fail(ParserTypeError, f"'{owner}' {option}= must be a list literal of tensor names", node)
        found: dict[int, Var] = {}
        for entry in node.elts:
            if not isinstance(entry, ast.Name):
                raise self.fail(
                    ParserTypeError,
                    f"'{owner}' {option}= entry '{ast.unparse(entry)}' is not a plain tensor name",
                    entry,
                )
            value = self.lookup_name(entry)
            if not isinstance(value, Var) or not isinstance(value.type, TensorType):
                raise self.fail(ParserTypeError, f"'{owner}' {option}= entry '{entry.id}' is not a tensor", entry)
            found.setdefault(id(value), value)
        return list(found.values())


class _Substituter(ast.NodeTransformer):
    def __init__(self, names: dict[str, Any]):
        self.names = names

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id in self.names:
            return ast.copy_location(ast.Constant(self.names[node.id]), node)
        return node


def _substitute(node: ast.expr, names: dict[str, Any]) -> ast.expr:
    """A copy of ``node`` with names replaced by constants."""
    return ast.fix_missing_locations(_Substituter(names).visit(copy.deepcopy(node)))
