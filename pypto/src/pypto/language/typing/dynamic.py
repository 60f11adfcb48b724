"""Dimensions known only at run time."""

from __future__ import annotations

import keyword
from typing import Any

from pypto.ir import scalar_ops
from pypto.ir.dtype import DataType
from pypto.ir.expr import Expr, Var
from pypto.ir.types import scalar_type


class DynVar:
    """A symbolic dimension. One object is one dimension everywhere it is used; ``var`` is its IR variable."""

    def __init__(self, name: str):
        if not isinstance(name, str) or not name.isidentifier() or keyword.iskeyword(name):
            raise ValueError(f"DynVar name must be a valid identifier, got {name!r}")
        self.name = name
        self.var = Var(name, scalar_type(DataType.INDEX))

    def unwrap(self) -> Var:
        return self.var

    def __repr__(self) -> str:
        return f"DynVar({self.name!r})"


def _install_operators() -> None:
    """Integer arithmetic on a symbol builds the index expression."""
    for name, build in {
        "add": scalar_ops.add, "sub": scalar_ops.sub, "mul": scalar_ops.mul,
        "floordiv": scalar_ops.floordiv, "mod": scalar_ops.mod,
    }.items():  # fmt: skip

        def forward(self: DynVar, other: Any, build=build) -> Expr:
            return build(self.var, getattr(other, "var", other))

        def reflected(self: DynVar, other: Any, build=build) -> Expr:
            return build(getattr(other, "var", other), self.var)

        setattr(DynVar, f"__{name}__", forward)
        setattr(DynVar, f"__r{name}__", reflected)


_install_operators()


def dynamic(name: str) -> DynVar:
    """Declare a symbolic dimension; ``ValueError`` when ``name`` is not an identifier."""
    return DynVar(name)


class _Runtime:
    """Marks a scalar argument of a JIT function that stays a run-time parameter."""

    def __repr__(self) -> str:
        return "pl.RUNTIME"


RUNTIME = _Runtime()
