"""Types and the views attached to them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from pypto.ir.dtype import DataType
from pypto.ir.enums import CompactMode, MemorySpace, PadValue, TensorLayout, TileLayout
from pypto.ir.node import Node, NodeTuple, OverloadedMeta, force_setattr, freeze, make


class Type(Node, frozen=True, eq=False, gc=False):
    """Base of types. ``==`` is structural equality without variable mapping, ``hash`` matches it."""

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if type(self) is not type(other):
            return False
        from pypto.ir.structural import structural_equal

        return structural_equal(self, other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        from pypto.ir.structural import structural_hash

        return structural_hash(self)

    def __repr__(self) -> str:
        return str(self)


def _singleton(cls: type) -> type:
    instance = cls()
    cls.get = staticmethod(lambda: instance)
    return cls


@_singleton
class UnknownType(Type, frozen=True, eq=False, gc=False):
    """Not known yet."""


@_singleton
class PtrType(Type, frozen=True, eq=False, gc=False):
    """Identity token of an allocation."""


@_singleton
class MemRefType(Type, frozen=True, eq=False, gc=False):
    """Type of a MemRef variable."""


@_singleton
class WindowBufferType(Type, frozen=True, eq=False, gc=False):
    """Handle of a communication window."""


@_singleton
class CommCtxType(Type, frozen=True, eq=False, gc=False):
    """Communication context of a window."""


@_singleton
class PrefetchAsyncContextType(Type, frozen=True, eq=False, gc=False):
    """Context of asynchronous prefetches."""


@_singleton
class AsyncEventType(Type, frozen=True, eq=False, gc=False):
    """Completion event of an asynchronous prefetch."""


@_singleton
class AsyncSessionType(Type, frozen=True, eq=False, gc=False):
    """Session of asynchronous prefetches."""


@_singleton
class VoidType(Type, frozen=True, eq=False, gc=False):
    """Known absence of a value."""


class ScalarType(Type, frozen=True, eq=False, gc=False):
    """Type of one scalar value."""

    dtype: DataType

    def __eq__(self, other: object) -> bool:
        return type(other) is ScalarType and self.dtype == other.dtype

    def __hash__(self) -> int:
        return hash(("ScalarType", self.dtype))


_SCALAR_TYPES: dict[DataType, ScalarType] = {}


def scalar_type(dtype: DataType) -> ScalarType:
    """The interned ``ScalarType(dtype)``."""
    found = _SCALAR_TYPES.get(dtype)
    if found is None:
        found = _SCALAR_TYPES[dtype] = ScalarType(dtype)
    return found


def dims(values: Sequence[Any]) -> NodeTuple:
    """Shape-like arguments as expressions: an int ``d`` becomes ``ConstInt(d, INDEX)``, DSL scalars are unwrapped."""
    return NodeTuple(map(E.as_dim, values))


def same_dim(a: Any, b: Any) -> bool:
    """Provably the same extent: the same object, equal constants, or structurally equal expressions."""
    if a is b:
        return True
    if isinstance(a, E.ConstInt):
        return isinstance(b, E.ConstInt) and a.value == b.value
    if isinstance(a, E.Var) or isinstance(b, (E.ConstInt, E.Var)):
        return False
    from pypto.ir.structural import structural_equal

    return structural_equal(a, b)


def same_dims(a: Sequence[Any], b: Sequence[Any]) -> bool:
    """:func:`same_dim` over two lists of one length."""
    return len(a) == len(b) and all(same_dim(x, y) for x, y in zip(a, b))


def _view_key(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(_view_key(v) for v in value)
    return ("const", value.value) if isinstance(value, E.ConstInt) else id(value) if isinstance(value, Node) else value


class _View(Node, frozen=True, eq=False, gc=False):
    """Base of views: ``==`` compares constants by value and other expressions by identity."""

    def _key(self) -> tuple:
        return tuple(_view_key(getattr(self, name)) for name in self.__struct_fields__)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self._key() == other._key()

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{n}={getattr(self, n)!r}' for n in self.__struct_fields__)})"

    __str__ = __repr__

    def __post_init__(self) -> None:
        for name in ("stride", "valid_shape"):
            if type(getattr(self, name)) is not NodeTuple:
                freeze(self, name)


class TensorView(_View, frozen=False, eq=False, gc=False, metaclass=OverloadedMeta):
    """Strides (elements), layout tag, valid region and pad policy of a tensor."""

    stride: tuple
    layout: TensorLayout
    valid_shape: tuple
    pad: PadValue

    @staticmethod
    def _normalize(stride=None, layout=None, valid_shape=None, pad=PadValue.null) -> tuple:
        if layout is None and (stride or valid_shape or pad is not PadValue.null):
            raise ValueError("layout is required when a TensorView gives stride, valid_shape or pad")
        return dims(stride or ()), layout or TensorLayout.ND, dims(valid_shape or ()), pad

    def __setattr__(self, name: str, value: Any) -> None:
        """Fields of a view may be set until a type uses it; the only mutable objects besides leading comments."""
        if name not in self.__struct_fields__:
            raise AttributeError(f"TensorView has no field '{name}'")
        force_setattr(self, name, dims(value) if name in ("stride", "valid_shape") else value)


class TileView(_View, frozen=True, eq=False, gc=False, metaclass=OverloadedMeta):
    """Valid region, strides, start offset (elements) and block layout of a tile; ``fractal`` is in bytes."""

    valid_shape: tuple
    stride: tuple
    start_offset: Any
    blayout: TileLayout
    slayout: TileLayout
    fractal: int
    pad: PadValue
    compact: CompactMode

    @staticmethod
    def _normalize(
        valid_shape=None,
        stride=None,
        start_offset=None,
        blayout=TileLayout.row_major,
        slayout=TileLayout.none_box,
        fractal=512,
        pad=PadValue.null,
        compact=CompactMode.null,
    ) -> tuple:
        offset = None if start_offset is None else dims((start_offset,))[0]
        return dims(valid_shape or ()), dims(stride or ()), offset, blayout, slayout, fractal, pad, compact


class ShapedType(Type, frozen=True, eq=False, gc=False):
    """Base of types with an element type and a shape. Abstract."""

    def shares_memref_with(self, other: ShapedType) -> bool:
        """True only when both hold the same MemRef object."""
        memref = getattr(self, "memref", None)
        return memref is not None and memref is getattr(other, "memref", None)


class TensorType(ShapedType, frozen=True, eq=False, gc=False):
    """An array in global memory; ``shape`` is logical, a view adds strides, layout and valid region."""

    shape: tuple
    dtype: DataType
    memref: Any = None
    tensor_view: TensorView | None = None

    def __post_init__(self) -> None:
        force_setattr(self, "shape", dims(self.shape))
        _check_fp4(self.shape, self.dtype)
        view = self.tensor_view
        if view is None:
            return
        # A view can be changed in place, so every type has a view of its own.
        valid = view.valid_shape
        if valid and same_dims(valid, self.shape):
            valid = NodeTuple()
        bare = view.layout is TensorLayout.ND and not view.stride and not valid and view.pad is PadValue.null
        own = None if bare else make(TensorView, view.stride, view.layout, valid, view.pad)
        force_setattr(self, "tensor_view", own)

    @property
    def memory_space(self) -> MemorySpace:
        return MemorySpace.DDR

    @property
    def valid_shape(self) -> tuple:
        """The effective valid region: the view's, else the shape."""
        return self.tensor_view.valid_shape if self.tensor_view and self.tensor_view.valid_shape else self.shape


class DistributedTensorType(TensorType, frozen=True, eq=False, gc=False, metaclass=OverloadedMeta):
    """Per-rank slice of a communication window. A subclass of TensorType that is never equal to one."""

    window_buffer: Any = None

    @staticmethod
    def _normalize(shape, dtype, memref=None, tensor_view=None, window_buffer=None) -> tuple:
        from pypto.ir.memref import WindowBuffer

        if isinstance(memref, WindowBuffer):
            memref, window_buffer = None, memref
        return shape, dtype, memref, tensor_view, window_buffer


#: Implicit (blayout, slayout, fractal) of the on-chip spaces whose tiles are boxed.
_BOXED_VIEWS = {
    MemorySpace.Mat: (TileLayout.col_major, TileLayout.row_major, 512),
    MemorySpace.Left: (TileLayout.col_major, TileLayout.row_major, 512),
    MemorySpace.Right: (TileLayout.row_major, TileLayout.col_major, 512),
    MemorySpace.Acc: (TileLayout.col_major, TileLayout.row_major, 1024),
    MemorySpace.LeftScale: (TileLayout.row_major, TileLayout.row_major, 32),
    MemorySpace.RightScale: (TileLayout.col_major, TileLayout.col_major, 32),
}


def implicit_layout(shape: Sequence[Any], memory_space: MemorySpace | None) -> tuple[TileLayout, TileLayout, int]:
    """(blayout, slayout, fractal bytes) that a tile of this shape has in this space when it names no view."""
    column = _is_column(shape)
    if memory_space in _BOXED_VIEWS:
        blayout, slayout, fractal = _BOXED_VIEWS[memory_space]
        if memory_space is MemorySpace.Right and column:
            blayout = TileLayout.col_major
        return blayout, slayout, fractal
    return (TileLayout.col_major if column else TileLayout.row_major), TileLayout.none_box, 512


def _is_column(shape: Sequence[Any]) -> bool:
    return (
        len(shape) == 2
        and isinstance(shape[0], E.ConstInt)
        and isinstance(shape[1], E.ConstInt)
        and shape[1].value == 1
        and shape[0].value > 1
    )


def implicit_tile_view(shape: Sequence[Any], memory_space: MemorySpace | None) -> TileView:
    """The view a tile has when its type names none, with ``valid_shape`` equal to ``shape``."""
    blayout, slayout, fractal = implicit_layout(shape, memory_space)
    pad, compact = PadValue.null, CompactMode.null
    return make(TileView, NodeTuple(shape), NodeTuple(), None, blayout, slayout, fractal, pad, compact)


class TileType(ShapedType, frozen=True, eq=False, gc=False):
    """An on-chip tile. ``tile_view`` is None when it equals the implicit view of the memory space."""

    shape: tuple
    dtype: DataType
    memref: Any = None
    tile_view: TileView | None = None
    memory_space: MemorySpace | None = None

    def __post_init__(self) -> None:
        force_setattr(self, "shape", dims(self.shape))
        _check_fp4(self.shape, self.dtype)
        if self.memref is not None and self.memory_space is None:
            raise ValueError("TileType with MemRef must have explicit memory_space")
        view = self.tile_view
        if view is None:
            return
        if view.valid_shape and same_dims(view.valid_shape, self.shape):
            view = _with_valid_shape(view, NodeTuple())
            force_setattr(self, "tile_view", view)
        if (
            not view.valid_shape
            and not view.stride
            and view.start_offset is None
            and view.pad is PadValue.null
            and view.compact is CompactMode.null
            and (view.blayout, view.slayout, view.fractal) == implicit_layout(self.shape, self.memory_space)
        ):
            force_setattr(self, "tile_view", None)

    def get_effective_tile_view(self) -> TileView:
        """The explicit view with an unset valid region filled by the shape, or the implicit view."""
        if self.tile_view is None:
            return implicit_tile_view(self.shape, self.memory_space)
        return self.tile_view if self.tile_view.valid_shape else _with_valid_shape(self.tile_view, self.shape)

    @property
    def valid_shape(self) -> tuple:
        """The effective valid region: the view's, else the shape."""
        return self.tile_view.valid_shape if self.tile_view and self.tile_view.valid_shape else self.shape


def _with_valid_shape(view: TileView, valid_shape: tuple) -> TileView:
    fields = {name: getattr(view, name) for name in view.__struct_fields__}
    fields["valid_shape"] = valid_shape
    return make(TileView, *fields.values())


class ArrayType(ShapedType, frozen=True, eq=False, gc=False):
    """Fixed-size on-core array of integers, booleans or task ids; ``extent`` is a positive constant."""

    dtype: DataType
    extent: Any

    def __post_init__(self) -> None:
        if not (self.dtype.is_int() or self.dtype in (DataType.BOOL, DataType.TASK_ID)):
            raise ValueError(f"ArrayType dtype must be an integer, BOOL or TASK_ID, got {self.dtype}")
        force_setattr(self, "extent", dims((self.extent,))[0])
        if not isinstance(self.extent, E.ConstInt) or self.extent.value <= 0:
            raise ValueError("ArrayType extent must be a positive compile-time constant")

    memref: ClassVar[None] = None

    @property
    def shape(self) -> tuple:
        return NodeTuple((self.extent,))

    @property
    def memory_space(self) -> MemorySpace:
        return MemorySpace.ScalarLocal


class TupleType(Type, frozen=True, eq=False, gc=False):
    """Heterogeneous tuple."""

    types: tuple

    def __post_init__(self) -> None:
        force_setattr(self, "types", NodeTuple(self.types))


class BufferType(Type, frozen=True, eq=False, gc=False):
    """Buffer of the optional buffer-level lowering: static extents in one memory space."""

    shape: tuple
    dtype: DataType
    space: MemorySpace
    valid_shape: tuple = ()

    def __post_init__(self) -> None:
        shape = NodeTuple(self.shape)
        valid = NodeTuple(self.valid_shape) or shape
        if any(not isinstance(d, int) or d <= 0 for d in shape):
            raise ValueError("BufferType extents must be static and positive")
        if len(valid) != len(shape) or any(not -1 <= v <= d for v, d in zip(valid, shape)):
            raise ValueError("BufferType valid_shape entries must lie between 0 and the extent, or be -1")
        force_setattr(self, "shape", shape)
        force_setattr(self, "valid_shape", valid)


class MultiBufferType(Type, frozen=True, eq=False, gc=False):
    """Several equal slots of one buffer type."""

    buffer_type: BufferType
    slot_count: int

    def __post_init__(self) -> None:
        if self.slot_count < 1:
            raise ValueError("MultiBufferType needs at least one slot")


def _check_fp4(shape: tuple, dtype: DataType) -> None:
    if dtype != DataType.FP4:
        return
    if not shape:
        raise ValueError("a packed FP4 type needs rank >= 1")
    last = shape[-1]
    if isinstance(last, E.ConstInt) and (last.value <= 0 or last.value % 2):
        raise ValueError(f"a packed FP4 type needs a positive even logical last dimension, got {last.value}")


# Extents are expressions and expressions have types: the module is bound last, when either may be imported first.
import pypto.ir.expr as E  # noqa: E402
