"""The table of composite operators and the builder that recipes write statements with."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from pypto.ir.enums import is_incore_type
from pypto.ir.expr import Call, Expr, IterArg, Var, const_index
from pypto.ir.program import Function
from pypto.ir.span import Span
from pypto.ir.stmt import AssignStmt, ForStmt, IfStmt, Stmt, YieldStmt, seq
from pypto.ops.registry import create_op_call
from pypto.passes.lib.naming import temp_name


class Steps:
    """Statements before the final value; temporaries are ``<base>__<step>_tmp_v<n>``."""

    def __init__(self, base: str, count: int, span: Span) -> None:
        self.base, self.count, self.span = base, count, span
        self.stmts: list[Stmt] = []

    def _name(self, step: str) -> str:
        self.count += 1
        return temp_name(self.base, step, self.count - 1)

    def let(self, step: str, value: Expr) -> Var:
        """Bind ``value``."""
        var = Var(self._name(step), value.type, self.span)
        self.stmts.append(AssignStmt(var, value, self.span))
        return var

    def call(self, name: str, args: Iterable[Expr], kwargs: dict[str, Any] | None = None) -> Call:
        return create_op_call(name, args, kwargs, self.span)

    def emit(self, step: str, name: str, args: Iterable[Expr], kwargs: dict[str, Any] | None = None) -> Var:
        """Bind a call."""
        return self.let(step, self.call(name, args, kwargs))

    def loop(self, step: str, stop: Expr, body: Callable[[Var], None], start: int = 0, stride: int = 1) -> None:
        """``for step in range(start, stop, stride): body`` without carried values."""
        index = Var(self._name(step), const_index(0).type, self.span)
        inner = self._collect(lambda: body(index))
        self.stmts.append(ForStmt(index, const_index(start), stop, const_index(stride), (), seq(inner), (), self.span))

    def carry(self, step: str, stop: Expr, init: Expr, body: Callable[[Var, IterArg], Expr]) -> Var:
        """``for step, (carry,) in range(stop): yield body``; the loop's result."""
        index = Var(self._name(step), const_index(0).type, self.span)
        arg = IterArg(self._name(f"{step}_acc"), init.type, init, self.span)
        value: list[Expr] = []
        inner = self._collect(lambda: value.append(body(index, arg)))
        result = Var(self._name(f"{step}_rv"), init.type, self.span)
        inner.append(YieldStmt(tuple(value), self.span))
        self.stmts.append(
            ForStmt(index, const_index(0), stop, const_index(1), (arg,), seq(inner), (result,), self.span)
        )
        return result

    def when(self, condition: Expr, body: Callable[[], None]) -> None:
        """``if condition: body``."""
        self.stmts.append(IfStmt(condition, seq(self._collect(body)), None, (), self.span))

    def choose(self, step: str, condition: Expr, body: Callable[[], Expr], otherwise: Expr | Callable) -> Var:
        """``body()`` when the condition holds, else ``otherwise``: a value, or a function like ``body``."""
        value: list[Expr] = []
        inner = self._collect(lambda: value.append(body()))
        inner.append(YieldStmt(tuple(value), self.span))
        last: list[Expr] = []
        other = self._collect(lambda: last.append(otherwise if isinstance(otherwise, Expr) else otherwise()))
        other.append(YieldStmt(tuple(last), self.span))
        result = Var(self._name(step), last[0].type, self.span)
        self.stmts.append(IfStmt(condition, seq(inner), seq(other), (result,), self.span))
        return result

    def _collect(self, body: Callable[[], Any]) -> list[Stmt]:
        outer, self.stmts = self.stmts, []
        body()
        inner, self.stmts = self.stmts, outer
        return inner


@dataclass(frozen=True)
class Recipe:
    """``build(steps, call)`` writes the statements and returns the final value."""

    build: Callable[[Steps, Call], Expr]

    def applies(self, function: Function) -> bool:
        return is_incore_type(function.func_type)

    def __call__(self, steps: Steps, call: Call) -> Expr:
        return self.build(steps, call)


#: Operator name -> recipe.
RECIPES: dict[str, Recipe] = {}


def recipe(name: str) -> Callable[[Callable[[Steps, Call], Expr]], Callable[[Steps, Call], Expr]]:
    """Decorator: register the recipe of operator ``name``."""

    def register(build: Callable[[Steps, Call], Expr]) -> Callable[[Steps, Call], Expr]:
        RECIPES[name] = Recipe(build)
        return build

    return register
