"""Run-time side of the language constructs: inert objects, or a clear error for parser-only forms."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import Any

from pypto.ir.dtype import DataType
from pypto.ir.enums import Level, Role, SplitMode
from pypto.language.typing.values import Scalar


class ScopeMode(Enum):
    """How a runtime scope finds dependencies."""

    AUTO = 0
    MANUAL = 1


class LoopRange:
    """What the loop constructors return; iterating it yields one scalar placeholder per level of unpacking."""

    def __init__(self, kind: str, args: tuple, init_values: Any = None, **options: Any):
        self.kind = kind
        self.args = args
        self.init_values = tuple(init_values) if init_values is not None else None
        self.options = options

    def __iter__(self) -> Iterator[Any]:
        index = Scalar(DataType.INDEX)
        yield index if self.init_values is None else (index, self.init_values)


def range(*args: Any, init_values: Any = None, attrs: Any = None) -> LoopRange:
    """Sequential loop over ``(stop)``, ``(start, stop)`` or ``(start, stop, step)``."""
    return LoopRange("range", args, init_values, attrs=attrs)


def parallel(*args: Any, init_values: Any = None, attrs: Any = None) -> LoopRange:
    """Loop whose iterations are independent."""
    return LoopRange("parallel", args, init_values, attrs=attrs)


def unroll(*args: Any, attrs: Any = None) -> LoopRange:
    """Loop with constant bounds that is expanded while compiling."""
    return LoopRange("unroll", args, None, attrs=attrs)


def pipeline(*args: Any, stage: int, init_values: Any = None, attrs: Any = None) -> LoopRange:
    """Loop with ``stage`` iterations in flight."""
    return LoopRange("pipeline", args, init_values, stage=stage, attrs=attrs)


class WhileLoop:
    """What :func:`while_` returns."""

    def __init__(self, init_values: Any):
        self.init_values = tuple(init_values)

    def __iter__(self) -> Iterator[Any]:
        yield self.init_values


def while_(*, init_values: Any) -> WhileLoop:
    """Loop with carried values; the first statement of its body is ``pl.cond(...)``."""
    return WhileLoop(init_values)


def yield_(*values: Any) -> Any:
    """Give the values of one iteration or branch."""
    return values[0] if len(values) == 1 else values


def cond(condition: Any) -> None:
    """Condition of the enclosing :func:`while_` loop."""


def const(value: Any, dtype: DataType) -> Any:
    """A constant of one element type."""
    return value


def static_print(*args: Any) -> None:
    """Print values while parsing."""


def static_assert(condition: Any, msg: str = "") -> None:
    """Check a condition while parsing."""


def func_attr(attrs: dict[str, Any]) -> None:
    """Attributes of the enclosing function; first statement of its body."""


def dump_tag(tensor: Any) -> Any:
    """Mark a tensor for dumping by the calls that use it."""
    return tensor


def no_dep(tensor: Any) -> Any:
    """Leave this argument out of automatic dependency tracking."""
    return tensor


class _Context:
    """An inert context manager that keeps its options as attributes."""

    def __init__(self, **options: Any):
        self.__dict__.update(options)

    def __enter__(self) -> _Context:
        return self

    def __exit__(self, *exc: Any) -> None:
        return None


class AtContext(_Context):
    """What :func:`at` returns."""


class SpmdContext(_Context):
    """What :func:`spmd` returns; the loop form exists in parsed code only."""

    def __iter__(self) -> Iterator[Any]:
        raise RuntimeError(
            "for i in pl.spmd(...) is a DSL parser construct and cannot be iterated in Python; "
            "use it inside a @pl.function body."
        )


def at(
    level: Level,
    role: Role | None = None,
    *,
    optimizations: Any = None,
    deps: Any = None,
    no_dep_args: Any = None,
    dumps: Any = None,
    allow_early_resolve: bool = False,
    name_hint: str = "",
    windowize: bool = False,
) -> AtContext:
    """Place the statements of the block at a level of the machine."""
    return AtContext(
        level=level, role=role, optimizations=optimizations, deps=deps, no_dep_args=no_dep_args, dumps=dumps,
        allow_early_resolve=allow_early_resolve, name_hint=name_hint, windowize=windowize,
    )  # fmt: skip


def cluster(*, name_hint: str = "") -> _Context:
    """Schedule the block's cube and vector kernels together."""
    return _Context(name_hint=name_hint)


def spmd(
    core_num: Any,
    *,
    sync_start: bool = False,
    name_hint: str = "",
    optimizations: Any = None,
    deps: Any = None,
    allow_early_resolve: bool = False,
    predicate: Any = None,
) -> SpmdContext:
    """Run the block as ``core_num`` blocks of one task."""
    return SpmdContext(
        core_num=core_num, sync_start=sync_start, name_hint=name_hint, optimizations=optimizations, deps=deps,
        allow_early_resolve=allow_early_resolve, predicate=predicate,
    )  # fmt: skip


def scope(*, mode: ScopeMode = ScopeMode.AUTO) -> _Context:
    """A scope of the task runtime."""
    return _Context(mode=mode)


def manual_scope() -> _Context:
    """A runtime scope in which only declared dependencies count."""
    return _Context(mode=ScopeMode.MANUAL)


def split_aiv(count: int, *, mode: SplitMode) -> Any:
    """Run the block on both vector lanes."""
    raise RuntimeError(
        "pl.split_aiv is a DSL parser construct and cannot be called directly; "
        "use it as `for aiv_id in pl.split_aiv(2, mode=...)` inside a @pl.function body."
    )


def submit(kernel: Any, *args: Any, **options: Any) -> Any:
    """Launch a kernel and get its results and its task id."""
    raise RuntimeError(
        "pl.submit is a DSL parser construct and cannot be called directly; use it as "
        "`result, task_id = pl.submit(self.kernel, *args, deps=[...])` inside a @pl.function body."
    )


def spmd_submit(kernel: Any, *args: Any, **options: Any) -> Any:
    """Launch a kernel as several blocks and get its results and its task id."""
    raise RuntimeError(
        "pl.spmd_submit is a DSL parser construct and cannot be called directly; use it as "
        "`result, task_id = pl.spmd_submit(self.kernel, *args, core_num=N)` inside a @pl.function body."
    )
