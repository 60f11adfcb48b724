"""One function: names, statements, and the state the per-family emitters share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..dialect.ir import Function, Module, Operation, Region, Value
from ..errors import UnsupportedFeatureError
from .cpp_types import cpp_type, literal

Emit = Callable[["FunctionEmitter", Operation], None]
EMIT: dict[str, Emit] = {}


def emits(*names: str) -> Callable[[Emit], Emit]:
    """Register the emitter of the operations `names`."""

    def register(function: Emit) -> Emit:
        for name in names:
            EMIT[name] = function
        return function

    return register


class FunctionEmitter:
    """Translates the body of one function; `lines` is its text, `expr` the C++ expression of each value."""

    def __init__(self, module: Module, function: Function, helpers: set[str]):
        self.module = module
        self.arch = module.arch
        self.function = function
        self.helpers = helpers
        self.lines: list[str] = []
        self.constants: list[str] = []
        self.indent = 1
        self.count = 0
        self.expr: dict[Value, str] = {}
        self.uses: dict[Value, int] = {}
        self.address: dict[Value, str] = {}
        self.tensor_type: dict[Value, str] = {}
        self.views: dict[Value, Any] = {}
        self.described: dict[Value, list[Operation]] | None = None
        self.pipes: dict[int, tuple[str, str]] = {}
        self.writes_scalars = False

    # --- text ---------------------------------------------------------------------------------------------------

    def line(self, text: str) -> None:
        """One statement at the current depth."""
        self.lines.append("  " * self.indent + text)

    def fresh(self) -> str:
        """The next variable name."""
        self.count += 1
        return f"v{self.count}"

    def note(self, value: Value) -> None:
        """The comment that names the value the next statement is made from."""
        self.lines.append("  " * self.indent + f"// pto: {value.name}")

    def declare(self, value: Value, text: str, type_: str | None = None) -> str:
        """`T vN = text;` for `value`."""
        name = self.fresh()
        self.note(value)
        self.line(f"{type_ or cpp_type(value.type)} {name} = {text};")
        self.expr[value] = name
        return name

    def pure(self, value: Value, text: str) -> None:
        """A value without side effects: folded into its only use, or a variable when used more often."""
        uses = self.uses.get(value, 0)
        if uses == 1:
            self.expr[value] = f"({text})"
        elif uses > 1:
            self.declare(value, text)

    # --- values -------------------------------------------------------------------------------------------------

    def use(self, value: Value) -> str:
        """The C++ expression of a value; constants are declared at their first use."""
        found = self.expr.get(value)
        if found is not None:
            return found
        owner = value.owner
        if owner is not None and owner.name == "arith.constant":
            name = self.fresh()
            constant = literal(owner.attrs["value"], value.type)
            self.constants.append(f"  const {cpp_type(value.type)} {name} = {constant};")
            self.expr[value] = name
            return name
        raise UnsupportedFeatureError(f"uses {value.name} of type {value.type}, which has no C++ form here")

    def settled(self, value: Value) -> str:
        """Like `use`, but always a name: for expressions evaluated more than once."""
        text = self.use(value)
        if text.startswith("("):
            return self.declare(value, text[1:-1])
        return text

    # --- statements ---------------------------------------------------------------------------------------------

    def region(self, region: Region) -> None:
        """All operations of a region, one level deeper."""
        self.indent += 1
        self.operations(region.ops)
        self.indent -= 1

    def operations(self, ops: list[Operation]) -> None:
        """Statements of `ops` in order."""
        for op in ops:
            emit = EMIT.get(op.name) or EMIT["default"]
            try:
                emit(self, op)
            except UnsupportedFeatureError as problem:
                raise self.located(problem, op) from None

    def located(self, problem: UnsupportedFeatureError, op: Operation) -> UnsupportedFeatureError:
        """The same problem, saying where the operation stands (once: regions nest)."""
        if problem.args[1:]:
            return problem
        line, column, _ = self.module.source.position(op.at)
        text = f"{self.module.source.filename}:{line}:{column}: '{op.name}' {problem}"
        return UnsupportedFeatureError(text, op.name)

    def count_uses(self) -> None:
        """How often each value is read, which decides what is folded."""
        uses = self.uses
        for op in self.function.body.walk():
            for value in op.operands():
                uses[value] = uses.get(value, 0) + 1
