"""The in-memory form of a `.pto` module: values, operations, regions, functions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .spec import OpSpec
    from .types import Type


class Value:
    """One SSA value. `owner` is the operation that defines it, or None for arguments of functions and regions."""

    __slots__ = ("name", "owner", "type", "uses")

    def __init__(self, name: str, type_: Type, owner: Operation | None = None):
        self.name = name
        self.type = type_
        self.owner = owner
        self.uses = 0

    def __repr__(self) -> str:
        return f"{self.name} : {self.type}"


class Operation:
    """One operation.

    `ins` and `outs` follow the text (for ops without clauses all plain operands are `ins`); operands introduced
    by a keyword (`addr = %a`, `fp %f`) are in `named`, a list-valued one (`sizes = [...]`) holds a list there.
    `at` is the token index of the operation's name, `loc` the payload of its trailing `loc(...)`.
    """

    __slots__ = ("at", "attrs", "ins", "loc", "name", "named", "outs", "regions", "results", "spec")

    def __init__(self, name: str, spec: OpSpec | None, at: int = -1):
        self.name = name
        self.spec = spec
        self.at = at
        self.ins: list[Value] = []
        self.outs: list[Value] = []
        self.named: dict[str, Any] = {}
        self.attrs: dict[str, Any] = {}
        self.results: list[Value] = []
        self.regions: list[Region] = []
        self.loc: str | None = None

    @property
    def result(self) -> Value:
        return self.results[0]

    def operands(self) -> Iterator[Value]:
        """All operands, clause operands first."""
        yield from self.ins
        yield from self.outs
        for value in self.named.values():
            if isinstance(value, list):
                yield from value
            elif value is not None:
                yield value

    def __repr__(self) -> str:
        return f"<{self.name} at token {self.at}>"


class Region:
    """A single-block region: its arguments and its operations in order."""

    __slots__ = ("args", "ops")

    def __init__(self, args: list[Value] | None = None, ops: list[Operation] | None = None):
        self.args = args or []
        self.ops = ops if ops is not None else []

    def walk(self) -> Iterator[Operation]:
        """Every operation of the region and of nested regions, in program order."""
        for op in self.ops:
            yield op
            for region in op.regions:
                yield from region.walk()


class Function:
    """One `func.func`; `body` is None for a declaration."""

    __slots__ = ("args", "at", "attrs", "body", "loc", "name", "private", "result_types")

    def __init__(self, name: str, at: int):
        self.name = name
        self.at = at
        self.args: list[Value] = []
        self.result_types: list[Type] = []
        self.attrs: dict[str, Any] = {}
        self.private = False
        self.body: Region | None = None
        self.loc: str | None = None

    @property
    def kind(self) -> str | None:
        """`cube`, `vector`, or None."""
        attr = self.attrs.get("pto.kernel_kind")
        return attr.value if attr is not None else None

    @property
    def is_entry(self) -> bool:
        return any(key in self.attrs for key in ("pto.entry", "pto.kernel", "pto.aicore"))


class Module:
    """A parsed module. `arch` is the resolved target (`a3` or `a5`); `source` finds positions for errors."""

    __slots__ = ("arch", "attrs", "functions", "loc_aliases", "source")

    def __init__(self, arch: str, source: Any = None):
        self.arch = arch
        self.attrs: dict[str, Any] = {}
        self.functions: list[Function] = []
        self.loc_aliases: dict[str, str] = {}
        self.source = source

    def location(self, loc: str | None) -> str | None:
        """The payload of a `loc(...)`, with an alias (`#loc1`) replaced by what it stands for."""
        return self.loc_aliases.get(loc, loc) if loc is not None else None

    def function(self, name: str) -> Function | None:
        return next((f for f in self.functions if f.name == name), None)


def constant_of(value: Value) -> int | float | None:
    """The constant a value holds, looking through index casts; None when it is not a constant."""
    owner = value.owner
    while owner is not None and owner.name in ("arith.index_cast", "arith.index_castui") and owner.ins:
        owner = owner.ins[0].owner
    if owner is not None and owner.name == "arith.constant":
        constant = owner.attrs.get("value")
        return constant if isinstance(constant, (int, float)) else None
    return None
