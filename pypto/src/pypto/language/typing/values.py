"""Run-time side of the type names: annotation objects, and values that wrap an IR expression.

``pl.Tensor[[64], pl.FP32]`` evaluated by Python is an inert object that only remembers what was written (the parser
reads the annotation text). ``Tensor(expr=e)`` wraps an expression, so operator functions can be called directly.
"""

from __future__ import annotations

from typing import Any

from pypto.ir.dtype import DataType
from pypto.ir.enums import MemorySpace, TensorLayout
from pypto.ir.expr import Expr
from pypto.ir.memref import MemRef
from pypto.ir.types import TensorView, TileView


class _TypeMeta(type):
    """``Cls[a, b]`` builds the annotation object ``Cls._annotation(a, b)``."""

    def __getitem__(cls, item: Any) -> Any:
        return cls._annotation(*(item if isinstance(item, tuple) else (item,)))


def _bind(owner: str, names: tuple[str, ...], args: tuple, kwargs: dict[str, Any]) -> dict[str, Any]:
    """Arguments by name, with Python's own messages for duplicates and unknown keywords."""
    if len(args) > len(names):
        raise TypeError(f"{owner}() takes at most {len(names)} positional arguments but {len(args)} were given")
    bound = dict(zip(names, args))
    for key, value in kwargs.items():
        if key not in names:
            raise TypeError(f"{owner}() got an unexpected keyword argument '{key}'")
        if key in bound:
            raise TypeError(f"{owner}() got multiple values for argument '{key}'")
        bound[key] = value
    return bound


class _Value(metaclass=_TypeMeta):
    """Base of values: an annotation, or a wrapper around one expression."""

    _expr: Expr | None = None

    @property
    def expr(self) -> Expr | None:
        """The wrapped expression, None for an annotation."""
        return self._expr

    def unwrap(self) -> Expr:
        """The wrapped expression; ``ValueError`` for an annotation."""
        if self._expr is None:
            name = type(self).__name__
            raise ValueError(f"an annotation-only {name} has no value; it can only be used as a type annotation")
        return self._expr

    def __getitem__(self, index: Any) -> Any:
        raise NotImplementedError(
            f"a {type(self).__name__} object cannot be subscripted in Python; subscripts are part of the language "
            "and are parsed inside a decorated function"
        )

    @classmethod
    def _annotation(cls, *items: Any) -> Any:
        return cls(*items)


class _Shaped(_Value):
    _fields: tuple[str, ...] = ("shape", "dtype", "layout", "memref", "expr")

    def __init__(self, *args: Any, **kwargs: Any):
        bound = _bind(type(self).__name__, self._fields, args, kwargs)
        self._expr = bound.get("expr")
        kind = getattr(self._expr, "type", None)
        self.shape = bound.get("shape", getattr(kind, "shape", None))
        self.dtype = bound.get("dtype", getattr(kind, "dtype", None))
        self._store(bound)

    def _store(self, bound: dict[str, Any]) -> None:
        raise NotImplementedError


class Tensor(_Shaped):
    """A tensor in global memory: ``Tensor[shape, dtype, layout | view | memref, memref]``."""

    def bind_dynamic(self, dim: int, symbol: Any) -> None:
        """Marks a dimension of a JIT parameter as symbolic; read from the source, without effect when run."""

    def _store(self, bound: dict[str, Any]) -> None:
        self.layout: TensorLayout | None = None
        self.tensor_view: TensorView | None = None
        self.memref: MemRef | None = bound.get("memref")
        third = bound.get("layout")
        if isinstance(third, TensorLayout):
            self.layout = third
        elif isinstance(third, TensorView):
            self.tensor_view = third
        elif isinstance(third, MemRef):
            self.memref = third


class DistributedTensor(Tensor):
    """The local slice of a communication window; subscript forms as :class:`Tensor`."""


class Tile(_Shaped):
    """An on-chip tile: ``Tile[shape, dtype]`` plus a memref, a memory space and a view in any order."""

    _fields = ("shape", "dtype", "memref", "tile_view", "memory_space", "expr")

    def _store(self, bound: dict[str, Any]) -> None:
        self.memref: MemRef | None = bound.get("memref")
        self.tile_view: TileView | None = bound.get("tile_view")
        self.memory_space: MemorySpace | None = bound.get("memory_space")

    @classmethod
    def _annotation(cls, *items: Any) -> Tile:
        if len(items) < 2:
            raise TypeError("pl.Tile[...] requires [shape, dtype]")
        parts: dict[str, Any] = {}
        for item in items[2:]:
            name = _tile_part(item)
            if name in parts:
                raise TypeError(f"pl.Tile[...] got more than one {name}")
            parts[name] = item
        if "memref" in parts and "memory_space" not in parts:
            raise TypeError("pl.Tile[...] with a pl.MemRef needs an explicit memory space, e.g. pl.Mem.Vec")
        return cls(items[0], items[1], **parts)


def _tile_part(item: Any) -> str:
    if isinstance(item, MemRef):
        return "memref"
    if isinstance(item, MemorySpace):
        return "memory_space"
    if isinstance(item, TileView):
        return "tile_view"
    if isinstance(item, TensorLayout):
        raise TypeError(
            f"pl.Tile does not accept layouts like pl.{item.name}; use pl.TileView(blayout=..., slayout=...)"
        )
    raise TypeError(f"pl.Tile[...] accepts a MemRef, a memory space and a TileView, got {type(item).__name__}")


class Scalar(_Value):
    """One scalar value: ``Scalar[dtype]``."""

    def __init__(self, *args: Any, **kwargs: Any):
        bound = _bind("Scalar", ("dtype", "expr"), args, kwargs)
        self._expr = bound.get("expr")
        self.dtype = bound.get("dtype", getattr(getattr(self._expr, "type", None), "dtype", None))


class Array(_Value):
    """A fixed-size on-core array: ``Array[extent, dtype]``."""

    def __init__(self, *args: Any, **kwargs: Any):
        bound = _bind("Array", ("extent", "dtype", "expr"), args, kwargs)
        self._expr = bound.get("expr")
        kind = getattr(self._expr, "type", None)
        self.extent = bound.get("extent", getattr(kind, "extent", None))
        self.dtype = bound.get("dtype", getattr(kind, "dtype", None))


class Tuple(_Value):
    """Several values: ``Tuple[A, B]``."""

    def __init__(self, types: Any = (), expr: Expr | None = None):
        self.types = tuple(types)
        self._expr = expr

    @classmethod
    def _annotation(cls, *items: Any) -> Tuple:
        return cls(items)


class _Handle(_Value):
    """Base of opaque handles, which have no parameters."""

    def __init__(self, expr: Expr | None = None):
        self._expr = expr

    def unwrap(self) -> Expr:
        if self._expr is None:
            raise RuntimeError(f"an annotation-only {type(self).__name__} has no value")
        return self._expr


class PrefetchAsyncContext(_Handle):
    """Context of asynchronous prefetches."""


class AsyncEvent(_Handle):
    """Completion event of an asynchronous prefetch."""


class AsyncSession(_Handle):
    """Session of asynchronous prefetches."""


class CommCtx(_Handle):
    """Communication context of a window."""


class Ptr(_Handle):
    """Identity of an allocation."""


#: Annotation of one task id.
TaskId = Scalar(DataType.TASK_ID)
