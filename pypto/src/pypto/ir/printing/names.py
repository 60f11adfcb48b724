"""Names of variables in printed text: every variable object gets its own identifier."""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterable

from pypto.ir import stmt as S
from pypto.ir.expr import Expr, Var
from pypto.ir.memref import MemRef, WindowBuffer
from pypto.ir.program import Function
from pypto.ir.types import (
    ArrayType,
    DistributedTensorType,
    TensorType,
    TileType,
    TupleType,
    Type,
)  # fmt: skip
from pypto.ir.visitor import IRVisitor, type_exprs

_NOT_IDENTIFIER = re.compile(r"\W")


def identifier(hint: str) -> str:
    """``hint`` as a Python identifier."""
    if hint.isidentifier():
        return f"{hint}_" if keyword.iskeyword(hint) else hint
    text = _NOT_IDENTIFIER.sub("_", hint) or "v"
    return f"_{text}" if text[0].isdigit() else text


class Names:
    """Hands out identifiers; a hint that is taken gets the suffix ``_1``, ``_2``, ..."""

    def __init__(self, reserved: Iterable[str] = ()):
        self.taken: set[str] = set(reserved)
        self.of: dict[Var, str] = {}
        self._next: dict[str, int] = {}

    def define(self, var: Var) -> str:
        """The name of ``var``, a new one when it has none yet."""
        name = self.of.get(var)
        if name is None:
            name = self.of[var] = self.fresh(identifier(var.name_hint))
        return name

    def fresh(self, base: str) -> str:
        """An identifier that nothing has yet."""
        name = base
        number = self._next.get(base, 0)
        while name in self.taken:
            number += 1
            name = f"{base}_{number}"
        self._next[base] = number
        self.taken.add(name)
        return name


def defined_vars(body: S.Stmt | None) -> list[Var]:
    """Variables that a body defines, in the order of the printed text (non-SSA code may repeat one)."""
    found: list[Var] = []
    work: list = [body]
    while work:
        item = work.pop()
        if isinstance(item, S.AssignStmt):
            found.append(item.var)
        elif isinstance(item, S.SeqStmts):
            work.extend(reversed(item.stmts))
        elif isinstance(item, S.ForStmt):
            found.append(item.loop_var)
            found.extend(item.iter_args)
            work.extend((list(item.return_vars), item.body))
        elif isinstance(item, S.WhileStmt):
            found.extend(item.iter_args)
            work.extend((list(item.return_vars), item.body))
        elif isinstance(item, S.IfStmt):
            work.extend((item.else_body, list(item.return_vars), item.then_body))
        elif isinstance(item, S.ScopeStmt):
            task_id = item.attrs.get("task_id_var")
            if isinstance(task_id, Var):
                found.append(task_id)
            if isinstance(item, S.CommDomainScopeStmt):
                found.extend(item.slots)
            work.append(item.body)
        elif isinstance(item, list):
            found.extend(item)
    return found


def printed_types(function: Function, defined: Iterable[Var]) -> Iterable[Type]:
    """Types whose text appears in the text of a function."""
    for var in function.params:
        yield var.type
    yield from function.return_types
    for var in defined:
        yield var.type


class _VarCollector(IRVisitor):
    def __init__(self) -> None:
        self.found: dict[Var, None] = {}

    def visit_var(self, var: Var) -> None:
        self.found[var] = None

    def visit_iter_arg(self, var: Var) -> None:
        self.found[var] = None

    def visit_mem_ref(self, memref: MemRef) -> None:
        self.visit_expr(memref.byte_offset_)
        if memref.slot_index_ is not None:
            self.visit_expr(memref.slot_index_)

    def visit_window_buffer(self, buffer: WindowBuffer) -> None:
        pass


def dimension_vars(types: Iterable[Type]) -> dict[Var, None]:
    """Variables in the printed text of types, in order of appearance."""
    collector = _VarCollector()
    for kind in types:
        if isinstance(kind, (TensorType, TileType, TupleType)) and not isinstance(kind, ArrayType):
            for expr in _printed_exprs(kind):
                collector.visit_expr(expr)
    return collector.found


def _printed_exprs(kind: Type) -> list[Expr]:
    exprs = type_exprs(kind)
    if isinstance(kind, DistributedTensorType) and kind.window_buffer is not None:
        return [e for e in exprs if e is not kind.window_buffer]
    return exprs
