"""Questions several rules ask about tile types."""

from __future__ import annotations

from ..dialect import types as T
from ..dialect.ir import Operation, Value
from .checker import Checker


def key(dtype: T.ScalarType) -> str:
    """Name of an element type in dtype lists: signedness of integers does not matter."""
    text = dtype.key
    return text[1:] if text.startswith("ui") else text


def listed(names: str | frozenset[str]) -> str:
    """`i32/f16/f32` in a fixed order."""
    order = ["i8", "i16", "i32", "i64", "f16", "bf16", "f32"]
    words = set(names.split() if isinstance(names, str) else names)
    words = {w for w in words if not w.startswith("ui")}
    known = [w for w in order if w in words]
    return "/".join(known + sorted(words - set(known)))


def tiles_of(op: Operation) -> list[tuple[str, Value]]:
    """The tile operands with their role names, scratch left out."""
    found = []
    count = len(op.ins)
    scratch = op.spec.scratch_index(count)
    roles = op.spec.ins
    shift = 0
    for position, value in enumerate(op.ins):
        if position == scratch:
            continue
        if scratch < 0 and count < len(roles) and position < len(roles) and roles[position].name.startswith("tmp"):
            shift = 1
        role = roles[min(position + shift, len(roles) - 1)].name
        if isinstance(value.type, T.TileType):
            found.append((role, value))
    for role, value in zip(op.spec.outs, op.outs):
        if isinstance(value.type, T.TileType):
            found.append((role.name, value))
    return found


def names(tiles: list[tuple[str, Value]]) -> str:
    """`src0, src1, and dst` / `src and dst` / `dst`."""
    words = [role for role, _ in tiles]
    if len(words) < 3:
        return " and ".join(words)
    return ", ".join(words[:-1]) + f", and {words[-1]}"


def scratch_of(op: Operation) -> Value | None:
    """The scratch operand, when given."""
    at = op.spec.scratch_index(len(op.ins))
    return op.ins[at] if at >= 0 else None


def check_vec(c: Checker, op: Operation, tiles: list[tuple[str, Value]]) -> None:
    """All tiles live in the unified buffer."""
    for role, value in tiles:
        c.require(value.type.loc == "vec", op, f"expects {role} to use loc=vec, got loc={value.type.loc}")


def check_same_dtype(c: Checker, op: Operation, tiles: list[tuple[str, Value]]) -> None:
    """All tiles hold the same element type."""
    first = tiles[0][1].type.dtype
    for _, value in tiles[1:]:
        if value.type.dtype is not first:
            types = ", ".join(str(v.type.dtype) for _, v in tiles)
            c.fail(op, f"expects {names(tiles)} to have the same element type, got {types}")


def check_dtypes(c: Checker, op: Operation, tiles: list[tuple[str, Value]], allowed: frozenset[str]) -> None:
    """Element types come from the list of the operation."""
    for _, value in tiles:
        if key(value.type.dtype) not in allowed and value.type.dtype.key not in allowed:
            short = op.name.removeprefix("pto.")
            c.fail(
                op, f"expects {c.label} {short} {names(tiles)} element type to be {listed(allowed)}",
                f"got {value.type.dtype}",
            )  # fmt: skip


def same_extent(first: int, second: int) -> bool:
    """Whether two extents agree as far as the types tell."""
    return first == second or T.DYNAMIC in (first, second)


def check_same_valid(c: Checker, op: Operation, first: tuple[str, Value], second: tuple[str, Value]) -> None:
    """Static valid extents agree."""
    a, b = first[1].type, second[1].type
    if not (same_extent(a.v_row, b.v_row) and same_extent(a.v_col, b.v_col)):
        c.fail(
            op,
            f"expects {first[0]} and {second[0]} to have the same valid_shape, got {valid_text(a)} and {valid_text(b)}",
        )


def valid_text(t: T.TileType) -> str:
    """`[16, ?]`."""
    return "[" + ", ".join("?" if v == T.DYNAMIC else str(v) for v in (t.v_row, t.v_col)) + "]"


def check_plain_rows(c: Checker, op: Operation, tiles: list[tuple[str, Value]]) -> None:
    """Row-major tiles without boxes."""
    for role, value in tiles:
        t = value.type
        if t.boxed or t.blayout != "row_major":
            c.fail(op, f"expects {role} to use row_major layout (blayout=row_major, slayout=none_box)")
