"""Text of types and of the views and memory descriptors inside them."""

from __future__ import annotations

from typing import Any

from pypto.ir import types as T
from pypto.ir.dtype import DTYPE_CONSTANT, DataType
from pypto.ir.enums import CompactMode, MemorySpace, PadValue
from pypto.ir.expr import ConstInt, Expr
from pypto.ir.memref import MemRef
from pypto.ir.printing.exprs import ExprPrinter, string

_PLAIN = {
    T.PtrType: "{pl}.Ptr",
    T.MemRefType: "{pl}.MemRefType",
    T.WindowBufferType: "pld.WindowBufferType",
    T.CommCtxType: "pld.CommCtxType",
    T.PrefetchAsyncContextType: "{pl}.PrefetchAsyncContext",
    T.AsyncEventType: "{pl}.AsyncEvent",
    T.AsyncSessionType: "{pl}.AsyncSession",
    T.UnknownType: "{pl}.UnknownType",
    T.VoidType: "{pl}.VoidType",
}


class TypePrinter(ExprPrinter):
    """Adds :meth:`type` to the expression printer."""

    explicit_layout: bool

    def type(self, kind: T.Type) -> str:
        """Text of a type as it stands in an annotation."""
        cls = type(kind)
        if cls is T.ScalarType:
            return f"{self.pl}.Scalar[{self.dtype(kind.dtype)}]"
        if cls is T.TensorType or cls is T.DistributedTensorType:
            return self._tensor(kind)
        if cls is T.TileType:
            return self._tile(kind)
        if cls is T.ArrayType:
            return f"{self.pl}.Array[{self.dim(kind.extent)}, {self.dtype(kind.dtype)}]"
        if cls is T.TupleType:
            return f"{self.pl}.Tuple[{', '.join([self.type(t) for t in kind.types]) or '()'}]"
        if cls is T.BufferType:
            valid = "" if kind.valid_shape == kind.shape else f", {list(kind.valid_shape)}"
            return f"{self.pl}.Buffer[{list(kind.shape)}, {self.dtype(kind.dtype)}, {self.space(kind.space)}{valid}]"
        if cls is T.MultiBufferType:
            return f"{self.pl}.MultiBuffer[{self.type(kind.buffer_type)}, {kind.slot_count}]"
        return _PLAIN[cls].format(pl=self.pl)

    def dtype(self, dtype: DataType) -> str:
        return f"{self.pl}.{DTYPE_CONSTANT.get(dtype, dtype.to_string().upper())}"

    def space(self, space: MemorySpace) -> str:
        return f"{self.pl}.Mem.{space.name}"

    def dim(self, dim: Expr) -> str:
        """An extent: a constant prints bare whatever its dtype."""
        if type(dim) is ConstInt:
            return str(dim.value)
        outer, self.in_dimension = self.in_dimension, True
        text = self.expr(dim)
        self.in_dimension = outer
        return text

    def dims(self, dims: Any) -> str:
        return f"[{', '.join([self.dim(d) for d in dims])}]"

    def _tensor(self, kind: T.TensorType) -> str:
        distributed = isinstance(kind, T.DistributedTensorType)
        parts = [self.dims(kind.shape), self.dtype(kind.dtype)]
        if kind.tensor_view is not None:
            parts.append(self._tensor_view(kind.tensor_view))
        if kind.memref is not None:
            parts.append(self.memref(kind.memref))
        if distributed and self.explicit_layout and kind.window_buffer is not None:
            parts.append(string(f"window_buffer={kind.window_buffer.name_hint}"))
        return f"{'pld.DistributedTensor' if distributed else self.pl + '.Tensor'}[{', '.join(parts)}]"

    def _tensor_view(self, view: T.TensorView) -> str:
        parts = [f"valid_shape={self.dims(view.valid_shape)}"] if view.valid_shape else []
        parts += [f"stride={self.dims(view.stride)}", f"layout={self.pl}.TensorLayout.{view.layout.name}"]
        if view.pad is not PadValue.null:
            parts.append(f"pad={self.pl}.PadValue.{view.pad.name}")
        return f"{self.pl}.TensorView({', '.join(parts)})"

    def _tile(self, kind: T.TileType) -> str:
        parts = [self.dims(kind.shape), self.dtype(kind.dtype)]
        if kind.memref is not None:
            parts.append(self.memref(kind.memref))
        if kind.memory_space is not None:
            parts.append(self.space(kind.memory_space))
        view = self._tile_view(kind)
        if view:
            parts.append(f"{self.pl}.TileView({view})")
        return f"{self.pl}.Tile[{', '.join(parts)}]"

    def _tile_view(self, kind: T.TileType) -> str:
        view = kind.tile_view
        if view is None and not self.explicit_layout:
            return ""
        blayout, slayout, fractal = T.implicit_layout(kind.shape, kind.memory_space)
        parts = []
        if view is None:
            view = T.implicit_tile_view(kind.shape, kind.memory_space)
        elif view.valid_shape:
            parts.append(f"valid_shape={self.dims(view.valid_shape)}")
        if view.stride:
            parts.append(f"stride={self.dims(view.stride)}")
        if view.start_offset is not None:
            parts.append(f"start_offset={self.dim(view.start_offset)}")
        if self.explicit_layout or view.blayout is not blayout:
            parts.append(f"blayout={self.pl}.TileLayout.{view.blayout.name}")
        if self.explicit_layout or view.slayout is not slayout:
            parts.append(f"slayout={self.pl}.TileLayout.{view.slayout.name}")
        if self.explicit_layout or view.fractal != fractal:
            parts.append(f"fractal={view.fractal}")
        if view.pad is not PadValue.null:
            parts.append(f"pad={self.pl}.PadValue.{view.pad.name}")
        if view.compact is not CompactMode.null:
            parts.append(f"compact={self.pl}.CompactMode.{view.compact.name}")
        return ", ".join(parts)

    def memref(self, memref: MemRef) -> str:
        """``pl.MemRef(base, offset, size)``; the base is quoted unless its allocation is in the printed body."""
        slots = f", slots={memref.slot_count_}" if memref.slot_count_ != 1 else ""
        index = "" if memref.slot_index_ is None else f"[{self.expr(memref.slot_index_)}]"
        if memref.is_pinned_ and type(memref.byte_offset_) is ConstInt and memref.size_ == 0:
            name = string(memref.base_.name_hint) if memref.base_.name_hint else ""
            return f"{self.pl}.MemRef({name}{slots if name else slots[2:]}){index}"
        base = self.names.of.get(memref.base_)
        if base is None or self.in_signature:  # a signature is read before the body binds the allocation
            base = string(base or memref.base_.name_hint)
        offset = self.expr(memref.byte_offset_)
        pinned = ", is_pinned=True" if memref.is_pinned_ else ""
        return f"{self.pl}.MemRef({base}, {offset}, {memref.size_}{pinned}{slots}){index}"
