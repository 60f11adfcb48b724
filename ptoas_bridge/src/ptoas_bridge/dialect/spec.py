"""What the operation table says about one operation: operands, attributes, pipe, C++ name."""

from __future__ import annotations

from dataclasses import dataclass, field

REGISTRY: dict[str, OpSpec] = {}


@dataclass(frozen=True, slots=True)
class Role:
    """One operand position: `name`, and whether it may be absent or repeated."""

    name: str
    optional: bool = False
    variadic: bool = False


@dataclass(frozen=True, slots=True)
class OpSpec:
    """Declaration of one operation.

    `form` names the assembly format: `dps` for `ins(...) outs(...)`, otherwise a syntax function of the parser.
    `pipe` is the hardware pipe (`V`, `MTE2`, ...), `by_loc` when the tile locations decide, or None when the
    operation occupies no pipe. `dtypes` are the element types A2/A3 accepts and, second, those A5 adds.
    """

    name: str
    ins: tuple[Role, ...] = ()
    outs: tuple[Role, ...] = ()
    form: str = "dps"
    pipe: str | None = None
    call: str = ""
    attrs: dict[str, str] = field(default_factory=dict)
    results: int = 0
    dtypes: tuple[str, str] | None = None
    arch: str | None = None
    ins_range: tuple[int, int] = (0, 0)
    """Least and greatest number of `ins` operands."""
    outs_range: tuple[int, int] = (0, 0)
    """Least and greatest number of `outs` operands."""
    scratch: int = -1
    """Position of the scratch role among `ins`, or -1."""

    def element_types(self, arch: str) -> frozenset[str] | None:
        """Element types the operation accepts on `arch`, or None when it has no such list."""
        if self.dtypes is None:
            return None
        base, extra = self.dtypes
        return frozenset((base + " " + extra if arch == "a5" else base).split())

    def scratch_index(self, count: int) -> int:
        """Position of the scratch operand among `count` given `ins` operands, or -1."""
        if self.scratch < 0 or (count < len(self.ins) and self.ins[self.scratch].optional):
            return -1
        return min(self.scratch, count - 1)


def _range(roles: tuple[Role, ...]) -> tuple[int, int]:
    low = sum(not (r.optional or r.variadic) for r in roles)
    high = 99 if any(r.variadic for r in roles) else len(roles)
    return low, high


def roles(text: str) -> tuple[Role, ...]:
    """Parse `"src tmp?"` / `"srcs*"` into operand positions."""
    return tuple(Role(w.rstrip("?*"), w.endswith("?"), w.endswith("*")) for w in text.split())


def op(
    name: str,
    ins: str = "",
    outs: str = "",
    *,
    form: str = "dps",
    pipe: str | None = None,
    call: str = "",
    attrs: dict[str, str] | None = None,
    results: int = 0,
    dtypes: str | None = None,
    a5: str = "",
    arch: str | None = None,
) -> OpSpec:
    """Declare `pto.<name>` (or a foreign operation when `name` has a dialect prefix) in the table."""
    full = name if name.split(".")[0] in ("arith", "scf", "func", "builtin") else "pto." + name
    inputs, outputs = roles(ins), roles(outs)
    scratch = next((i for i, role in enumerate(inputs) if role.name.startswith("tmp")), -1)
    spec = OpSpec(
        full, inputs, outputs, form, pipe, call or name.upper().replace(".", "_"), attrs or {}, results,
        None if dtypes is None else (dtypes, a5), arch, _range(inputs), _range(outputs), scratch,
    )  # fmt: skip
    REGISTRY[full] = spec
    return spec
