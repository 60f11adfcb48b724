"""Statements: assignments, expression statements, returns, branches of the statement dispatch."""

from __future__ import annotations

import ast
import warnings
from typing import Any

from pypto.ir.dtype import DataType
from pypto.ir.expr import Call, ConstInt, Expr, IterArg, MakeTuple, TupleGetItemExpr, Var
from pypto.ir.node import make
from pypto.ir.stmt import AssignStmt, BreakStmt, ContinueStmt, EvalStmt, ReturnStmt, YieldStmt
from pypto.ir.types import ScalarType, TensorType, TileType, TupleType, Type, UnknownType
from pypto.language.parser.base import ParserBase
from pypto.language.parser.diagnostics import (
    InvalidOperationError,
    ParserSyntaxError,
    ParserTypeError,
    SSAViolationError,
)
from pypto.language.parser.directives import VarUses
from pypto.language.parser.inline_templates import InlineFunction
from pypto.language.parser.type_consistency import (
    flat_results,
    is_flattened,
    merge_annotation,
    result_problem,
    same_kind_of_value,
    type_text,
    without_memref,
)

_NO_JUMP = {"parallel": "parallel loops", "unroll": "unrolled loops", "split_aiv": "pl.split_aiv regions"}
_LOOPS = ("range", "parallel", "unroll", "pipeline", "while", "split_aiv")
_SUBMITS = ("pl.submit", "pl.spmd_submit")
_ALLOC_WINDOW = ("pld.alloc_window_buffer", "pld.tensor.alloc_window_buffer")

_YIELD_OUTSIDE = "pl.yield_() is only allowed in a loop with init_values or in an if branch"


class StatementsMixin(ParserBase):
    """Parses one statement and emits its IR."""

    def parse_statement(self, node: ast.stmt) -> None:
        match node:
            case ast.Assign():
                self._assign(node)
            case ast.AnnAssign():
                self._annotated(node)
            case ast.Expr():
                self._expression_statement(node)
            case ast.Return():
                self._return(node)
            case ast.For():
                self.parse_for(node)
            case ast.While():
                self.parse_while(node)
            case ast.If():
                self.parse_if(node)
            case ast.With():
                self.parse_with(node)
            case ast.Pass():
                pass
            case ast.Break():
                self._jump(node, "break", BreakStmt)
            case ast.Continue():
                self._jump(node, "continue", ContinueStmt)
            case _:
                raise self.unsupported(
                    f"Unsupported statement type: {type(node).__name__}", node, hint=_statement_hint(node)
                )

    # -- assignments ---------------------------------------------------------------------------------------------

    def _assign(self, node: ast.Assign) -> None:
        if len(node.targets) != 1:
            raise self._bad_assignment(node)
        target = node.targets[0]
        path = self._call_path(node.value)
        if path == "pl.yield_":
            self.parse_yield_assignment(target, None, node.value, node)
        elif path in _SUBMITS:
            self.parse_submit_assignment(target, None, node.value, node, spmd=path == "pl.spmd_submit")
        elif isinstance(target, ast.Name):
            self._assign_name(target.id, None, node.value, path, node)
        elif isinstance(target, (ast.Tuple, ast.List)):
            self.whole_value = node.value
            self._unpack(target, self.parse_expression(node.value), node)
        elif isinstance(target, ast.Subscript):
            if isinstance(target.value, ast.Subscript):
                raise self.unsupported("Chained subscript targets are not supported", target)
            self.parse_subscript_write(target, self.parse_expression(node.value), node)
        else:
            raise self._bad_assignment(node)

    def _bad_assignment(self, node: ast.stmt) -> Any:
        return self.fail(ParserSyntaxError, f"Unsupported assignment: {ast.unparse(node)}", node)

    def _annotated(self, node: ast.AnnAssign) -> None:
        if node.value is None:
            raise self.unsupported(
                "An annotation without a value is not supported", node, hint="Assign a value in the same statement"
            )
        path = self._call_path(node.value)
        if not isinstance(node.target, ast.Name):
            raise self.fail(ParserSyntaxError, "An annotated target must be a single name", node)
        kind = self.types.resolve_type(node.annotation, nested=True)
        if isinstance(kind, list):
            kind = TupleType(tuple(kind))
        if path == "pl.yield_":
            self.parse_yield_assignment(node.target, kind, node.value, node)
        elif path in _SUBMITS:
            self.parse_submit_assignment(node.target, kind, node.value, node, spmd=path == "pl.spmd_submit")
        else:
            self._assign_name(node.target.id, kind, node.value, path, node)

    def _assign_name(self, name: str, kind: Type | None, value: ast.expr, path: str | None, node: ast.stmt) -> None:
        if path in _ALLOC_WINDOW:
            self.bind_name(name, self.parse_window_allocation(value, name), kind, node)
            return
        if path in ("pl.tensor.dim", "pl.dim") and self.bind_symbol_dim(name, value):
            return
        self.whole_value = value
        expr = self.parse_expression(value)
        if kind is not None:
            expr = self._literal_of(kind, expr, value)
        self.bind_name(name, expr, kind, node)

    def _literal_of(self, kind: Type, expr: Expr, node: ast.expr) -> Expr:
        """A raw int literal takes the integer dtype of its annotation."""
        raw = isinstance(expr, ConstInt) and expr.dtype == DataType.INDEX and not isinstance(node, ast.Call)
        if raw and isinstance(kind, ScalarType) and kind.dtype.is_int():
            return ConstInt(expr.value, kind.dtype, expr.span)
        return expr

    def bind_name(self, name: str, value: Expr, annotation: Type | None, node: ast.stmt, in_place: bool = False) -> Var:
        """Emit ``name = value``: a first binding creates a variable, a later one of the same type reuses it.

        ``in_place`` marks the rebinding of a subscript write, which updates a value instead of naming a new one.
        """
        kind = value.type
        if annotation is not None:
            if is_flattened(annotation, kind):
                kind = annotation
            self.types.validate_annotation_consistency(annotation, kind, name, node)
            kind = merge_annotation(annotation, kind)
            value = self._retyped(value, kind)
        var = self.variable_for(name, kind, annotation is not None, node, in_place)
        self.emit(AssignStmt(var, value, self.span(node)))
        self.producers.pop(var, None)
        if isinstance(kind, ScalarType) and kind.dtype == DataType.TASK_ID:
            self.task_generation[var] = self.task_generation.get(var, 0) + 1
        return var

    @staticmethod
    def _retyped(value: Expr, kind: Type) -> Expr:
        """What an annotation adds to a call's type (memory space, view); the MemRef belongs to the variable only."""
        if type(value) is not Call or not isinstance(kind, (TensorType, TileType)):
            return value
        old, new = value.type, without_memref(kind)
        if isinstance(old, UnknownType) or type(old) is not type(new):
            changed = isinstance(old, UnknownType)
        elif isinstance(new, TileType):
            same_rank = len(old.shape) == len(new.shape)
            changed = not same_rank or old.memory_space is not new.memory_space or old.tile_view != new.tile_view
        else:
            changed = old.tensor_view != new.tensor_view
        if not changed:
            return value
        return make(Call, value.op, value.args, value.kwargs, value.attrs, new, value.span)

    def variable_for(self, name: str, kind: Type, annotated: bool, node: ast.stmt, in_place: bool) -> Var:
        """The variable that an assignment to ``name`` defines."""
        old = self.scopes.lookup_var(name)
        if type(old) is not Var or old in self.loop_vars:
            if isinstance(old, IterArg) and not same_kind_of_value(old.type, kind):
                raise self._cannot_reassign(name, old.type, kind, node)
            return self.new_variable(name, kind, node)
        if self.strict_ssa and self.scopes.is_local(name):
            raise SSAViolationError(
                f"Variable '{name}' is already defined",
                self.span(node),
                previous_span=self.scopes.previous_span(name),
                hint="Use a new name for the new value, or drop strict_ssa=True",
            )
        if not same_kind_of_value(old.type, kind):
            if old in self.leaked:
                return self.new_variable(name, kind, node)
            raise self._cannot_reassign(name, old.type, kind, node)
        if isinstance(old.type, UnknownType) or (annotated and getattr(kind, "memref", None) is not None):
            return self.new_variable(name, kind, node)
        if self.strict_ssa:
            # A nested body may give a name around it a value, once: flags of loops are set like this.
            self.define(name, old, node)
        return old

    def unfold_carries(self, node: ast.stmt) -> None:
        """Copy carried values that a nested block assigns to variables, in which the paths through the block meet.

        A carried value is no variable: without a copy every assignment would make a variable of its block.
        """
        if self.strict_ssa:
            return
        written = (n.value if isinstance(n, ast.Subscript) else n for n in ast.walk(node) if _is_written(n))
        for name in dict.fromkeys(n.id for n in written if isinstance(n, ast.Name)):
            old = self.scopes.lookup_var(name)
            if isinstance(old, IterArg):
                self.emit(AssignStmt(self.new_variable(name, old.type, node), old, self.span(node)))

    def _cannot_reassign(self, name: str, old: Type, new: Type, node: ast.stmt) -> ParserTypeError:
        return ParserTypeError(
            f"Cannot reassign '{name}' with a different type: was {type_text(old)}, got {type_text(new)}",
            self.span(node),
            hint="Use a new name for a value of another type",
        )

    def new_variable(self, name: str, kind: Type, node: ast.AST) -> Var:
        """A fresh variable bound to ``name`` in the innermost scope."""
        var = None
        if self.own_locals is not None and len(self.bodies) == self.inline_depth:
            var = self.own_locals.get(name)
        if var is None or var.type != kind:
            var = Var(name, kind, self.span(node))
            if self.own_locals is not None and len(self.bodies) == self.inline_depth:
                self.own_locals[name] = var
        self.define(name, var, node)
        return var

    def _unpack(self, target: ast.Tuple | ast.List, value: Expr, node: ast.stmt) -> None:
        """``a, b = e``: the elements of a temporary, or of a written-out tuple directly."""
        if isinstance(value, MakeTuple) and len(value.elements) == len(target.elts):
            names = [e.id for e in target.elts if isinstance(e, ast.Name)]
            if len(names) == len(target.elts) and not self._reads_assigned(names, value):
                for name, element in zip(names, value.elements):
                    self.bind_name(name, element, None, node)
                return
        if not isinstance(value.type, TupleType):
            raise self.fail(
                ParserSyntaxError, f"Cannot unpack a value of type {type_text(value.type)}", node,
                hint="Only tuples can be unpacked",
            )  # fmt: skip
        source = value
        if not isinstance(value, Var):
            source = self.new_variable("_tuple_tmp", value.type, node)
            self.emit(AssignStmt(source, value, self.span(node)))
        self._unpack_elements(target, source, node)

    def _reads_assigned(self, names: list[str], value: MakeTuple) -> bool:
        """Does an element read a name that an earlier target of the same statement assigns (``a, b = b, a``)?"""
        assigned: set[int] = set()
        for name, element in zip(names, value.elements):
            if assigned:
                uses = VarUses()
                uses.visit_expr(element)
                if uses.seen & assigned:
                    return True
            assigned.add(id(self.scopes.lookup_var(name)))
        return False

    def _unpack_elements(self, target: ast.Tuple | ast.List, source: Expr, node: ast.stmt) -> None:
        count = len(source.type.types)
        if len(target.elts) > count:
            raise self.fail(
                ParserSyntaxError,
                f"TupleGetItemExpr index {count} out of bounds for tuple with {count} elements",
                node,
                hint=f"Unpack exactly {count} value(s)",
            )
        if len(target.elts) < count:
            raise self.fail(
                ParserSyntaxError, f"Cannot unpack {count} values into {len(target.elts)} target(s)", node,
                hint=f"Unpack exactly {count} value(s)",
            )  # fmt: skip
        for index, element in enumerate(target.elts):
            item = TupleGetItemExpr(source, index, self.span(element))
            if isinstance(element, ast.Name):
                self.bind_name(element.id, item, None, node)
            elif isinstance(element, (ast.Tuple, ast.List)):
                self._unpack_elements(element, item, node)
            else:
                raise self.fail(ParserSyntaxError, "Targets of a tuple assignment must be names", element)

    def bind_symbol_dim(self, name: str, value: ast.expr) -> bool:
        """``n = pl.tensor.dim(x, 0)`` in orchestration is another name of the symbol itself."""
        if not self.is_orchestration() or not isinstance(value, ast.Call) or value.keywords:
            return False
        if len(value.args) != 2 or not isinstance(value.args[1], ast.Constant):
            return False
        tensor = self.parse_expression(value.args[0])
        axis = value.args[1].value
        shape = getattr(tensor.type, "shape", ())
        if not isinstance(axis, int) or not -len(shape) <= axis < len(shape) or type(shape[axis]) is not Var:
            return False
        self.define(name, shape[axis], value)
        self.loop_vars.add(shape[axis])
        return True

    # -- other statements ----------------------------------------------------------------------------------------

    def _expression_statement(self, node: ast.Expr) -> None:
        value = node.value
        path = self._call_path(value)
        if path == "pl.yield_":
            self._bare_yield(value)
        elif path in self.DIRECTIVES:
            self.parse_directive(path, value)
        elif path in _SUBMITS:
            self.emit(EvalStmt(self.parse_submit(value, path == "pl.spmd_submit")[0], self.span(node)))
        elif isinstance(value, ast.Call) and isinstance(self.closure_value(value.func), InlineFunction):
            self.expand_inline_statement(self.closure_value(value.func), value)
        else:
            self.emit(EvalStmt(self.parse_expression(value), self.span(node)))

    def _bare_yield(self, node: ast.Call) -> None:
        if not self.frames:
            raise self.fail(ParserSyntaxError, _YIELD_OUTSIDE, node)
        frame = self.frames[-1]
        if frame.kind == "loop":
            raise self.fail(
                ParserSyntaxError,
                "Loop with init_values requires an assignment-form pl.yield_(...) — the LHS supplies the post-loop "
                "binding name. Bare pl.yield_(...) is rejected here.",
                node,
                hint="Write result = pl.yield_(value)",
            )
        frame.yielded = True
        self.emit(YieldStmt([self.parse_expression(a) for a in node.args], self.span(node)))

    def parse_yield_assignment(self, target: ast.expr, kind: Type | None, value: ast.expr, node: ast.stmt) -> None:
        """``r = pl.yield_(v)``: yields and names the value after the loop or branch."""
        assert isinstance(value, ast.Call)
        if not self.frames:
            raise self.fail(ParserSyntaxError, _YIELD_OUTSIDE, node)
        if value.keywords:
            raise self.fail(ParserSyntaxError, "pl.yield_() takes no keyword arguments", value)
        values = [self.parse_expression(a) for a in value.args]
        names = [target] if isinstance(target, ast.Name) else list(getattr(target, "elts", []))
        if not names or not all(isinstance(n, ast.Name) for n in names):
            raise self.fail(ParserSyntaxError, "The targets of pl.yield_() must be names", target)
        if len(names) != len(values):
            raise self.fail(
                ParserSyntaxError,
                f"pl.yield_() gives {len(values)} value(s) but is assigned to {len(names)} name(s)",
                node,
            )
        kinds = [v.type for v in values]
        if kind is not None:
            self.types.validate_annotation_consistency(kind, kinds[0], names[0].id, node)
            kinds = [merge_annotation(kind, kinds[0])]
        frame = self.frames[-1]
        frame.names = [n.id for n in names]
        frame.types = kinds
        frame.yielded = True
        for name in frame.names:
            self.scopes.mark_yielded(name)
        self.emit(YieldStmt(values, self.span(node)))

    def _return(self, node: ast.Return) -> None:
        if node.value is None:
            values: list[Expr] = []
        elif isinstance(node.value, ast.Tuple):
            values = [self.parse_expression(e) for e in node.value.elts]
        else:
            values = [self.parse_expression(node.value)]
        self.emit_return(values, node)

    def emit_return(self, values: list[Expr], node: ast.Return) -> None:
        if self.return_types:
            self._check_results([v.type for v in values], node)
        self.emit(ReturnStmt(values, self.span(node)))

    def _check_results(self, found: list[Type], node: ast.Return) -> None:
        """As many results as declared; one of another type is legal, but callers trust the declaration."""
        declared, found = flat_results(self.return_types), flat_results(found)
        if len(declared) != len(found):
            raise self.fail(
                ParserTypeError, f"Function '{self.function_name}' declares {len(declared)} result(s), "
                f"but this statement returns {len(found)}", node,
                hint=f"Declared: {', '.join(map(type_text, declared))}",
            )  # fmt: skip
        if self.source.is_text:
            return
        for want, got in zip(declared, found):
            problem = result_problem(want, got)
            if problem:
                warnings.warn(
                    f"{self.span(node)}: the result of '{self.function_name}' is declared with {problem}: "
                    f"{type_text(want)} is declared, {type_text(got)} is returned, and callers use the declaration",
                    UserWarning,
                    stacklevel=2,
                )

    def _jump(self, node: ast.stmt, word: str, cls: type) -> None:
        loop = next((c for c in reversed(self.constructs) if c in _LOOPS), None)
        if loop is None:
            raise self.fail(ParserSyntaxError, f"'{word}' outside loop", node)
        if loop in _NO_JUMP:
            raise self.fail(
                InvalidOperationError, f"'{word}' not supported in {_NO_JUMP[loop]}", node,
                hint="Use pl.range() for a loop with early exit",
            )  # fmt: skip
        self.emit(cls(self.span(node)))

    # -- helpers -------------------------------------------------------------------------------------------------

    def _call_path(self, node: ast.expr | None) -> str | None:
        return self.public_path(node.func) if isinstance(node, ast.Call) else None


def _statement_hint(node: ast.stmt) -> str | None:
    if isinstance(node, ast.AugAssign):
        return "Write the assignment out, e.g. x = x + 1"
    if isinstance(node, ast.FunctionDef):
        return "Define functions at module level or as methods of the @pl.program class"
    return None


def _is_written(node: ast.AST) -> bool:
    return isinstance(node, (ast.Name, ast.Subscript)) and isinstance(node.ctx, ast.Store)
