"""Visitor and copy-on-write mutator over the IR, dispatching through one table per class.

``IRVisitor`` walks everything, expressions inside types included. ``IRMutator`` rebuilds only what changed and
returns the *same* object otherwise; a definition whose type changed becomes a new variable that replaces every use.
Subclasses override ``visit_<node>`` and call ``super()`` to keep the recursion.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from pypto.ir import expr as E
from pypto.ir import stmt as S
from pypto.ir.expr import ConstInt, Expr, Var
from pypto.ir.memref import MemRef, WindowBuffer
from pypto.ir.node import make, replace
from pypto.ir.program import Function, Program
from pypto.ir.stmt import ScopeStmt, SeqStmts, Stmt
from pypto.ir.types import (
    DistributedTensorType,
    TensorType,
    TensorView,
    TileType,
    TileView,
    TupleType,
    Type,
)  # fmt: skip


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


#: Node class -> name of the method that visits it.
METHOD_NAMES: dict[type, str] = {
    cls: f"visit_{_snake(cls.__name__)}"
    for cls in (
        E.Var, E.IterArg, MemRef, WindowBuffer, E.ConstInt, E.ConstFloat, E.ConstBool, E.Call, E.Submit, E.MakeTuple,
        E.TupleGetItemExpr, *E.BINARY_CLASSES, *E.UNARY_CLASSES, S.AssignStmt, S.IfStmt, S.ForStmt, S.WhileStmt,
        S.SeqStmts, S.YieldStmt, S.ReturnStmt, S.EvalStmt, S.BreakStmt, S.ContinueStmt, S.InlineStmt,
        *S.SCOPE_CLASSES,
    )
}  # fmt: skip


class _Dispatching:
    """Builds the node class -> function table once per visitor class."""

    _table: dict[type, Callable]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls._table = {node: getattr(cls, name) for node, name in METHOD_NAMES.items() if hasattr(cls, name)}

    def _dispatch(self, node: Any) -> Any:
        function = self._table.get(type(node))
        if function is None:
            raise TypeError(f"{type(self).__name__} cannot visit {type(node).__name__}")
        return function(self, node)


def _forwarding(target: str) -> Callable:
    return lambda self, node: getattr(self, target)(node)


def _add_operator_methods(cls: type) -> type:
    """``visit_add`` ... default to ``visit_binary_expr``, ``visit_abs`` ... to ``visit_unary_expr``."""
    for nodes, target in ((E.BINARY_CLASSES, "visit_binary_expr"), (E.UNARY_CLASSES, "visit_unary_expr")):
        for node in nodes:
            setattr(cls, METHOD_NAMES[node], _forwarding(target))
    cls._table = {node: getattr(cls, name) for node, name in METHOD_NAMES.items() if hasattr(cls, name)}
    return cls


def attr_exprs(attrs: dict | None) -> list[Expr]:
    """Expressions held by an attribute map, directly or in lists."""
    found: list[Expr] = []
    for value in (attrs or {}).values():
        if isinstance(value, Expr):
            found.append(value)
        elif isinstance(value, (list, tuple)):
            found.extend(v for v in value if isinstance(v, Expr))
    return found


def type_exprs(kind: Type) -> list[Expr]:
    """Expressions inside a type that can refer to variables (constants are left out)."""
    found: list[Expr] = []
    _collect_type_exprs(kind, found)
    return found


def _collect_type_exprs(kind: Type, found: list[Expr]) -> None:
    if isinstance(kind, TupleType):
        for item in kind.types:
            _collect_type_exprs(item, found)
        return
    if not isinstance(kind, (TensorType, TileType)):
        return
    found.extend(d for d in kind.shape if type(d) is not ConstInt)
    view = kind.tensor_view if isinstance(kind, TensorType) else kind.tile_view
    if view is not None:
        found.extend(d for d in view.valid_shape if type(d) is not ConstInt)
        found.extend(d for d in view.stride if type(d) is not ConstInt)
        if isinstance(view, TileView) and view.start_offset is not None and type(view.start_offset) is not ConstInt:
            found.append(view.start_offset)
    if kind.memref is not None:
        found.append(kind.memref)
    if isinstance(kind, DistributedTensorType) and kind.window_buffer is not None:
        found.append(kind.window_buffer)


@_add_operator_methods
class IRVisitor(_Dispatching):
    """Walks a program; override ``visit_*``."""

    def visit_program(self, program: Program) -> None:
        for function in program.functions.values():
            self.visit_function(function)

    def visit_function(self, function: Function) -> None:
        for param in function.params:
            self.visit_expr(param)
        for value in attr_exprs(function.attrs):
            self.visit_expr(value)
        if function.body is not None:
            self.visit_stmt(function.body)

    def visit_expr(self, expr: Expr) -> None:
        self._dispatch(expr)

    def visit_stmt(self, stmt: Stmt) -> None:
        self._dispatch(stmt)

    def _exprs(self, exprs) -> None:
        for expr in exprs:
            self.visit_expr(expr)

    def visit_var_like(self, var: Var) -> None:
        """Work shared by all variables: the expressions of the type."""
        self._exprs(type_exprs(var.type))

    def visit_var(self, var: Var) -> None:
        self.visit_var_like(var)

    def visit_iter_arg(self, var: E.IterArg) -> None:
        self.visit_var_like(var)

    def visit_mem_ref(self, memref: MemRef) -> None:
        self.visit_expr(memref.base_)
        self.visit_expr(memref.byte_offset_)
        if memref.slot_index_ is not None:
            self.visit_expr(memref.slot_index_)

    def visit_window_buffer(self, buffer: WindowBuffer) -> None:
        self.visit_expr(buffer.base)
        self.visit_expr(buffer.size)

    def visit_const_int(self, const: E.ConstInt) -> None:
        pass

    def visit_const_float(self, const: E.ConstFloat) -> None:
        pass

    def visit_const_bool(self, const: E.ConstBool) -> None:
        pass

    def visit_call(self, call: E.Call) -> None:
        self._exprs(call.args)
        self._exprs(attr_exprs(call.attrs))
        self._exprs(type_exprs(call.type))

    def visit_submit(self, submit: E.Submit) -> None:
        self._exprs(submit.args)
        self._exprs(submit.deps)
        if submit.core_num is not None:
            self.visit_expr(submit.core_num)
        if submit.predicate is not None:
            self.visit_expr(submit.predicate)
        self._exprs(attr_exprs(submit.attrs))
        self._exprs(type_exprs(submit.type))

    def visit_make_tuple(self, value: E.MakeTuple) -> None:
        self._exprs(value.elements)

    def visit_tuple_get_item_expr(self, value: E.TupleGetItemExpr) -> None:
        self.visit_expr(value.tuple)

    def visit_binary_expr(self, value: E.BinaryExpr) -> None:
        self.visit_expr(value.left)
        self.visit_expr(value.right)

    def visit_unary_expr(self, value: E.UnaryExpr) -> None:
        self.visit_expr(value.operand)

    def visit_assign_stmt(self, stmt: S.AssignStmt) -> None:
        self.visit_expr(stmt.value)
        self.visit_expr(stmt.var)

    def visit_if_stmt(self, stmt: S.IfStmt) -> None:
        self.visit_expr(stmt.condition)
        self.visit_stmt(stmt.then_body)
        if stmt.else_body is not None:
            self.visit_stmt(stmt.else_body)
        self._exprs(stmt.return_vars)

    def _iter_args(self, iter_args) -> None:
        for arg in iter_args:
            self.visit_expr(arg.initValue)
        self._exprs(iter_args)

    def visit_for_stmt(self, stmt: S.ForStmt) -> None:
        self.visit_expr(stmt.start)
        self.visit_expr(stmt.stop)
        self.visit_expr(stmt.step)
        self.visit_expr(stmt.loop_var)
        self._iter_args(stmt.iter_args)
        self._exprs(attr_exprs(stmt.attrs))
        self.visit_stmt(stmt.body)
        self._exprs(stmt.return_vars)

    def visit_while_stmt(self, stmt: S.WhileStmt) -> None:
        self._iter_args(stmt.iter_args)
        self.visit_expr(stmt.condition)
        self.visit_stmt(stmt.body)
        self._exprs(stmt.return_vars)

    def visit_seq_stmts(self, stmt: SeqStmts) -> None:
        for child in stmt.stmts:
            self.visit_stmt(child)

    def visit_yield_stmt(self, stmt: S.YieldStmt) -> None:
        self._exprs(stmt.value)

    def visit_return_stmt(self, stmt: S.ReturnStmt) -> None:
        self._exprs(stmt.value)

    def visit_eval_stmt(self, stmt: S.EvalStmt) -> None:
        self.visit_expr(stmt.expr)

    def visit_break_stmt(self, stmt: S.BreakStmt) -> None:
        pass

    def visit_continue_stmt(self, stmt: S.ContinueStmt) -> None:
        pass

    def visit_inline_stmt(self, stmt: S.InlineStmt) -> None:
        pass

    def _scope(self, stmt: ScopeStmt) -> None:
        self._exprs(attr_exprs(stmt.attrs))
        self.visit_stmt(stmt.body)

    def visit_in_core_scope_stmt(self, stmt: S.InCoreScopeStmt) -> None:
        self._scope(stmt)

    def visit_cluster_scope_stmt(self, stmt: S.ClusterScopeStmt) -> None:
        self._scope(stmt)

    def visit_hierarchy_scope_stmt(self, stmt: S.HierarchyScopeStmt) -> None:
        self._scope(stmt)

    def visit_spmd_scope_stmt(self, stmt: S.SpmdScopeStmt) -> None:
        self.visit_expr(stmt.core_num)
        self._scope(stmt)

    def visit_split_aiv_scope_stmt(self, stmt: S.SplitAivScopeStmt) -> None:
        self._scope(stmt)

    def visit_runtime_scope_stmt(self, stmt: S.RuntimeScopeStmt) -> None:
        self._scope(stmt)

    def visit_comm_domain_scope_stmt(self, stmt: S.CommDomainScopeStmt) -> None:
        self._exprs(d for d in stmt.devices if isinstance(d, Expr))
        self._exprs(stmt.slots)
        self._scope(stmt)


IRVisitor._table = {node: getattr(IRVisitor, name) for node, name in METHOD_NAMES.items()}


@_add_operator_methods
class IRMutator(_Dispatching):
    """Rewrites a program copy-on-write; ``var_map`` holds the replacements of variables."""

    def __init__(self) -> None:
        self.var_map: dict[Var, Expr] = {}

    # -- entry points -------------------------------------------------------------------------------------------

    def visit_program(self, program: Program) -> Program:
        functions = {key: self.visit_function(function) for key, function in program.functions.items()}
        if all(functions[key] is function for key, function in program.functions.items()):
            return program
        return Program(functions, program.name, program.span)

    def visit_function(self, function: Function) -> Function:
        params = tuple(self.visit_def(p) for p in function.params)
        return_types = [self.visit_type(t) for t in function.return_types]
        attrs = self.visit_attrs(function.attrs)
        body = None if function.body is None else self.visit_stmt(function.body)
        return self._rebuild(function, params=params, return_types=return_types, attrs=attrs, body=body)

    def visit_expr(self, expr: Expr) -> Expr:
        function = self._table.get(type(expr))
        return self._dispatch(expr) if function is None else function(self, expr)

    def visit_stmt(self, stmt: Stmt) -> Stmt:
        return self._dispatch(stmt)

    # -- helpers ------------------------------------------------------------------------------------------------

    @staticmethod
    def _rebuild(node: Any, **fields: Any) -> Any:
        """``node`` when no field changed (by identity, element-wise for sequences), else a copy."""
        changes = {}
        for name, value in fields.items():
            old = getattr(node, name)
            if value is old:
                continue
            if isinstance(old, (tuple, list)) and isinstance(value, (tuple, list)):
                if len(old) == len(value) and all(a is b for a, b in zip(old, value)):
                    continue
            changes[name] = value
        return replace(node, **changes) if changes else node

    def _exprs(self, exprs: tuple) -> tuple:
        """The expressions rewritten; the same tuple when nothing changed."""
        new = [self.visit_expr(e) for e in exprs]
        for before, after in zip(exprs, new):
            if after is not before:
                return tuple(new)
        return exprs

    def visit_attrs(self, attrs: dict | None) -> dict | None:
        """Attributes with their expressions rewritten; the same object when nothing changed."""
        if not attrs:
            return attrs
        changed = {}
        for key, value in attrs.items():
            if isinstance(value, Expr):
                new = self.visit_expr(value)
            elif isinstance(value, (list, tuple)) and any(isinstance(v, Expr) for v in value):
                new = type(value)(self.visit_expr(v) if isinstance(v, Expr) else v for v in value)
                if all(a is b for a, b in zip(new, value)):
                    new = value
            else:
                continue
            if new is not value:
                changed[key] = new
        return {**attrs, **changed} if changed else attrs

    def visit_type(self, kind: Type) -> Type:
        """The type with the expressions inside rewritten; the same object when nothing changed."""
        if isinstance(kind, TupleType):
            types = tuple(self.visit_type(t) for t in kind.types)
            return kind if all(a is b for a, b in zip(types, kind.types)) else TupleType(types)
        if not isinstance(kind, (TensorType, TileType)) or not type_exprs(kind):
            return kind
        view_field = "tensor_view" if isinstance(kind, TensorType) else "tile_view"
        fields = {"shape": self._exprs(kind.shape)}
        view = getattr(kind, view_field)
        if view is not None:
            fields[view_field] = self._view(view)
        if kind.memref is not None:
            fields["memref"] = self.visit_expr(kind.memref)
        if isinstance(kind, DistributedTensorType) and kind.window_buffer is not None:
            fields["window_buffer"] = self.visit_expr(kind.window_buffer)
        return self._rebuild(kind, **fields)

    def _view(self, view: TensorView | TileView) -> TensorView | TileView:
        fields = {"valid_shape": self._exprs(view.valid_shape), "stride": self._exprs(view.stride)}
        if isinstance(view, TileView) and view.start_offset is not None:
            fields["start_offset"] = self.visit_expr(view.start_offset)
        return self._rebuild(view, **fields)

    def visit_def(self, var: Var) -> Var:
        """A variable at its definition: a new one, replacing all uses, when its type changed."""
        if var in self.var_map:
            return self.var_map[var]
        kind = self.visit_type(var.type)
        if kind is var.type:
            return var
        new = self.var_map[var] = replace(var, type=kind)
        return new

    # -- expressions --------------------------------------------------------------------------------------------

    def visit_var_like(self, var: Var) -> Expr:
        return self.var_map.get(var, var)

    def visit_var(self, var: Var) -> Expr:
        return self.visit_var_like(var)

    def visit_iter_arg(self, var: E.IterArg) -> Expr:
        return self.visit_var_like(var)

    def visit_mem_ref(self, memref: MemRef) -> Expr:
        if memref in self.var_map:
            return self.var_map[memref]
        slot = memref.slot_index_
        new = self._rebuild(
            memref,
            base_=self.visit_expr(memref.base_),
            byte_offset_=self.visit_expr(memref.byte_offset_),
            slot_index_=None if slot is None else self.visit_expr(slot),
        )
        if new is not memref:
            self.var_map[memref] = new
        return new

    def visit_window_buffer(self, buffer: WindowBuffer) -> Expr:
        return self.visit_var_like(buffer)

    def visit_const_int(self, const: E.ConstInt) -> Expr:
        return const

    def visit_const_float(self, const: E.ConstFloat) -> Expr:
        return const

    def visit_const_bool(self, const: E.ConstBool) -> Expr:
        return const

    def visit_call(self, call: E.Call) -> Expr:
        args, attrs, kind = self._exprs(call.args), self.visit_attrs(call.attrs), self.visit_type(call.type)
        if args is call.args and attrs is call.attrs and kind is call.type:
            return call
        return replace(call, args=args, attrs=attrs, type=kind)

    def visit_submit(self, submit: E.Submit) -> Expr:
        optional = {
            name: self.visit_expr(value)
            for name in ("core_num", "predicate")
            if (value := getattr(submit, name)) is not None
        }
        return self._rebuild(
            submit,
            args=self._exprs(submit.args),
            deps=self._exprs(submit.deps),
            attrs=self.visit_attrs(submit.attrs),
            type=self.visit_type(submit.type),
            **optional,
        )

    def visit_make_tuple(self, value: E.MakeTuple) -> Expr:
        elements = self._exprs(value.elements)
        return value if elements is value.elements else replace(value, elements=elements)

    def visit_tuple_get_item_expr(self, value: E.TupleGetItemExpr) -> Expr:
        return self._rebuild(value, tuple=self.visit_expr(value.tuple))

    def visit_binary_expr(self, value: E.BinaryExpr) -> Expr:
        left, right = self.visit_expr(value.left), self.visit_expr(value.right)
        if left is value.left and right is value.right:
            return value
        return type(value)(left, right, value.dtype, value.span)

    def visit_unary_expr(self, value: E.UnaryExpr) -> Expr:
        operand = self.visit_expr(value.operand)
        return value if operand is value.operand else type(value)(operand, value.dtype, value.span)

    # -- statements ---------------------------------------------------------------------------------------------

    def visit_assign_stmt(self, stmt: S.AssignStmt) -> Stmt:
        value, var = self.visit_expr(stmt.value), self.visit_def(stmt.var)
        return stmt if value is stmt.value and var is stmt.var else replace(stmt, value=value, var=var)

    def visit_if_stmt(self, stmt: S.IfStmt) -> Stmt:
        return self._rebuild(
            stmt,
            condition=self.visit_expr(stmt.condition),
            then_body=self.visit_stmt(stmt.then_body),
            else_body=None if stmt.else_body is None else self.visit_stmt(stmt.else_body),
            return_vars=tuple(self.visit_def(v) for v in stmt.return_vars),
        )

    def visit_iter_args(self, iter_args) -> tuple:
        """Iteration arguments at their definition: initial values, then types."""
        inits = [self.visit_expr(a.initValue) for a in iter_args]
        result = []
        for arg, init in zip(iter_args, inits):
            if arg in self.var_map:
                result.append(self.var_map[arg])
                continue
            new = self._rebuild(arg, type=self.visit_type(arg.type), initValue=init)
            if new is not arg:
                self.var_map[arg] = new
            result.append(new)
        return tuple(result)

    def visit_for_stmt(self, stmt: S.ForStmt) -> Stmt:
        bounds = {name: self.visit_expr(getattr(stmt, name)) for name in ("start", "stop", "step")}
        return self._rebuild(
            stmt,
            **bounds,
            iter_args=self.visit_iter_args(stmt.iter_args),
            loop_var=self.visit_def(stmt.loop_var),
            attrs=self.visit_attrs(stmt.attrs),
            body=self.visit_stmt(stmt.body),
            return_vars=tuple(self.visit_def(v) for v in stmt.return_vars),
        )

    def visit_while_stmt(self, stmt: S.WhileStmt) -> Stmt:
        return self._rebuild(
            stmt,
            iter_args=self.visit_iter_args(stmt.iter_args),
            condition=self.visit_expr(stmt.condition),
            body=self.visit_stmt(stmt.body),
            return_vars=tuple(self.visit_def(v) for v in stmt.return_vars),
        )

    def visit_seq_stmts(self, stmt: SeqStmts) -> Stmt:
        children = tuple(self.visit_stmt(child) for child in stmt.stmts)
        if all(a is b for a, b in zip(children, stmt.stmts)):
            return stmt
        return make(SeqStmts, children, stmt.span)

    def visit_yield_stmt(self, stmt: S.YieldStmt) -> Stmt:
        return self._rebuild(stmt, value=self._exprs(stmt.value))

    def visit_return_stmt(self, stmt: S.ReturnStmt) -> Stmt:
        return self._rebuild(stmt, value=self._exprs(stmt.value))

    def visit_eval_stmt(self, stmt: S.EvalStmt) -> Stmt:
        return self._rebuild(stmt, expr=self.visit_expr(stmt.expr))

    def visit_break_stmt(self, stmt: S.BreakStmt) -> Stmt:
        return stmt

    def visit_continue_stmt(self, stmt: S.ContinueStmt) -> Stmt:
        return stmt

    def visit_inline_stmt(self, stmt: S.InlineStmt) -> Stmt:
        return stmt

    def _scope(self, stmt: ScopeStmt, **fields: Any) -> Stmt:
        return self._rebuild(stmt, **fields, attrs=self.visit_attrs(stmt.attrs), body=self.visit_stmt(stmt.body))

    def visit_in_core_scope_stmt(self, stmt: S.InCoreScopeStmt) -> Stmt:
        return self._scope(stmt)

    def visit_cluster_scope_stmt(self, stmt: S.ClusterScopeStmt) -> Stmt:
        return self._scope(stmt)

    def visit_hierarchy_scope_stmt(self, stmt: S.HierarchyScopeStmt) -> Stmt:
        return self._scope(stmt)

    def visit_spmd_scope_stmt(self, stmt: S.SpmdScopeStmt) -> Stmt:
        return self._scope(stmt, core_num=self.visit_expr(stmt.core_num))

    def visit_split_aiv_scope_stmt(self, stmt: S.SplitAivScopeStmt) -> Stmt:
        return self._scope(stmt)

    def visit_runtime_scope_stmt(self, stmt: S.RuntimeScopeStmt) -> Stmt:
        return self._scope(stmt)

    def visit_comm_domain_scope_stmt(self, stmt: S.CommDomainScopeStmt) -> Stmt:
        devices = tuple(self.visit_expr(d) if isinstance(d, Expr) else d for d in stmt.devices)
        return self._scope(stmt, devices=devices, slots=tuple(self.visit_def(s) for s in stmt.slots))


IRMutator._table = {node: getattr(IRMutator, name) for node, name in METHOD_NAMES.items()}
