"""The verifier: runs the rules registered for each operation, in program order."""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn

from ..dialect import types as T
from ..dialect.ir import Function, Module, Operation, Value, constant_of
from ..errors import AssemblerError

Rule = Callable[["Checker", Operation], None]
RULES: dict[str, list[Rule]] = {}

ARCH_LABEL = {"a3": "A2/A3", "a5": "A5"}


def rule(*names: str) -> Callable[[Rule], Rule]:
    """Register a rule for the `pto.` operations `names`."""

    def register(function: Rule) -> Rule:
        for name in names:
            RULES.setdefault(name if "." in name and name.split(".")[0] in ("scf", "func", "arith") else "pto." + name,
                             []).append(function)  # fmt: skip
        return function

    return register


class Checker:
    """What rules need to know: the module, the function at hand, and how to report."""

    def __init__(self, module: Module):
        self.module = module
        self.arch = module.arch
        self.function: Function | None = None
        self.section: str | None = None
        self._resized: set[Value] = set()

    def enter(self, function: Function) -> None:
        """Start with `function`: remember the tiles whose valid region changes somewhere in it."""
        self.function = function
        ops = function.body.walk() if function.body is not None else ()
        self._resized = {op.ins[0] for op in ops if op.name == "pto.set_validshape" and op.ins}

    @property
    def label(self) -> str:
        """`A2/A3` or `A5`, as messages print it."""
        return ARCH_LABEL[self.arch]

    @property
    def core(self) -> str | None:
        """`cube` or `vector` where the section or the function says so."""
        return self.section or (self.function.kind if self.function is not None else None)

    def error(self, op: Operation, text: str, hint: str = "", *, bare: bool = False) -> AssemblerError:
        """An error at `op`; `bare` leaves out the `'pto.x' op` prefix."""
        message = text if bare else f"'{op.name}' op {text}"
        return self.module.source.error(op.at, message, hint=hint, source_loc=self.module.location(op.loc))

    def fail(self, op: Operation, text: str, hint: str = "") -> NoReturn:
        """Stop with an error at `op`."""
        raise self.error(op, text, hint)

    def require(self, condition: bool, op: Operation, text: str, hint: str = "") -> None:
        """Fail with `text` unless `condition` holds."""
        if not condition:
            self.fail(op, text, hint)

    def tile(self, op: Operation, value: Value, role: str) -> T.TileType:
        """The tile type of an operand."""
        if not isinstance(value.type, T.TileType):
            self.fail(op, f"expects {role} to be a tile_buf, got '{value.type}'")
        return value.type

    def required_valid(self, value: Value) -> tuple[int, int]:
        """Valid extents: the static ones of the type, else constants of the allocation, else -1.

        A tile that `pto.set_validshape` changes has the extents of its allocation only for a while: -1.
        """
        rows, cols = value.type.v_row, value.type.v_col
        owner = value.owner
        if owner is None or owner.name != "pto.alloc_tile" or value in self._resized:
            return rows, cols
        extents = []
        for extent, name in ((rows, "valid_row"), (cols, "valid_col")):
            given = owner.named.get(name)
            found = constant_of(given) if extent == T.DYNAMIC and given is not None else extent
            extents.append(T.DYNAMIC if found is None else int(found))
        return extents[0], extents[1]


def verify_module(module: Module) -> None:
    """Check everything that does not depend on the level. Raises AssemblerError."""
    from . import (  # noqa: F401  (each registers its rules)
        allocation,
        data_movement,
        elementwise,
        functions,
        matrix,
        pipes,
        rearrangement,
        reductions,
        views,
    )

    checker = Checker(module)
    for fn in module.functions:
        checker.enter(fn)
        functions.check_function(checker, fn)
        if fn.body is not None:
            _walk(checker, fn.body.ops)
            pipes.check_function_pipes(checker, fn)
    functions.check_calls(checker)
    pipes.check_peers(checker)


def _walk(checker: Checker, ops: list[Operation]) -> None:
    rules = RULES
    arch = checker.arch
    for op in ops:
        spec = op.spec
        if spec is not None and spec.arch is not None and spec.arch != arch:
            name = op.name.removeprefix("pto.")
            target = "A5" if spec.arch == "a5" else "A2/A3"
            if name == "trandom" or spec.arch == "a3":
                checker.fail(op, f"{name} is only supported for A5 targets" if spec.arch == "a5"
                             else f"{name} is only supported on {target} targets")  # fmt: skip
            checker.fail(op, f"{name} is only supported on {target}")
        if spec is not None and spec.form == "dps":
            _check_kinds(checker, op)
        for check in rules.get(op.name, ()):
            check(checker, op)
        if op.regions:
            outer = checker.section
            if op.name.startswith("pto.section."):
                checker.section = "cube" if op.name.endswith("cube") else "vector"
            for region in op.regions:
                _walk(checker, region.ops)
            checker.section = outer


_SCALAR_ROLES = frozenset(
    ("scalar", "row", "col", "start", "diagonal", "key0", "key1", "counter0", "counter1", "counter2", "counter3")
)
_FREE_ROLES = frozenset(("first", "second", "srcs", "executed", "offset", "value", "events", "fp", "pre_quant"))


def _check_kinds(checker: Checker, op: Operation) -> None:
    """Tiles (or views of memory) and scalars stand where the operation has them."""
    spec = op.spec
    for roles, values in ((spec.ins, op.ins), (spec.outs, op.outs)):
        short = len(values) < len(roles)
        for position, value in enumerate(values):
            role = roles[min(position, len(roles) - 1)]
            if role.name in _FREE_ROLES or (short and role.optional) or value.type is None:
                continue
            type_ = value.type
            if role.name in _SCALAR_ROLES:
                if not isinstance(type_, T.ScalarType) and not short:
                    checker.fail(op, f"expects {role.name} to be a scalar, got '{type_}'")
            elif not isinstance(type_, (T.TileType, T.ViewType)) and not (short or role.name == "idx"):
                checker.fail(op, f"expects {role.name} to be a tile_buf, got '{type_}'")
