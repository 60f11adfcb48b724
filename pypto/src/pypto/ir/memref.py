"""Memory descriptors: variables that name an allocation or a communication window."""

from __future__ import annotations

from typing import Any, ClassVar

from pypto.ir.dtype import DataType
from pypto.ir.enums import MemorySpace
from pypto.ir.expr import ConstInt, Expr, Var, _next_id
from pypto.ir.node import OverloadedMeta, make
from pypto.ir.span import UNKNOWN_SPAN, Span
from pypto.ir.types import MemRefType, PtrType, WindowBufferType


class MemRef(Var, frozen=True, eq=False, gc=False, metaclass=OverloadedMeta):
    """Names an allocation (``base_``) and a byte range inside it; the memory space lives in the tile type.

    Forms: ``MemRef(span=, slots=)`` and ``MemRef(name, span=, slots=)`` declare an allocation that is placed later;
    ``MemRef(base, byte_offset, size, span=, is_pinned=, slots=, slot=)`` is a region, ``base`` a Ptr Var or a new
    name; ``MemRef(addr, size, id, span=)`` and ``MemRef(space, addr, size, id, span=)`` are legacy.
    """

    IGNORED: ClassVar[tuple[str, ...]] = ("name_hint", "span", "unique_id")

    base_: Any = None
    byte_offset_: Any = None
    size_: int = 0
    is_pinned_: bool = False
    slot_count_: int = 1
    slot_index_: Any = None

    @staticmethod
    def _normalize(*args, span=UNKNOWN_SPAN, is_pinned=False, slots=1, slot=None, **named) -> tuple:
        for position, value in enumerate(args):
            if isinstance(value, Span):
                rest = (*args[position + 1 :], *(is_pinned, slots, slot)[len(args) - position - 1 :])
                args, span, (is_pinned, slots, slot) = args[:position], value, rest
                break
        args = list(args) + [named.pop(k) for k in ("base", "space", "addr", "byte_offset", "size", "id") if k in named]
        if named:
            raise TypeError(f"MemRef got unexpected keyword arguments {sorted(named)}")
        if slots < 1:
            raise ValueError("MemRef slots: an allocation has at least one slot")
        base, offset, size = _region(args, span)
        if len(args) <= 1 and not (args and isinstance(args[0], Var)):
            is_pinned = True
        if isinstance(offset, int):
            offset = ConstInt(offset, DataType.INT64, span)
        slot = ConstInt(slot, DataType.INDEX, span) if isinstance(slot, int) else slot
        return base.name_hint, MemRefType.get(), span, _next_id(), base, offset, size, is_pinned, slots, slot

    def __getitem__(self, index: int) -> MemRef:
        """Slot ``index`` of a declaration (same base)."""
        if not self.is_pinned_:
            raise ValueError("only a declared MemRef has selectable slots")
        if not 0 <= index < self.slot_count_:
            raise ValueError(f"slot {index} is outside [0, {self.slot_count_})")
        slot = ConstInt(index, DataType.INDEX, self.span)
        return make(
            MemRef, self.name_hint, self.type, self.span, _next_id(), self.base_, self.byte_offset_, self.size_,
            True, self.slot_count_, slot,
        )  # fmt: skip

    @staticmethod
    def same_allocation(a: MemRef, b: MemRef) -> bool:
        """Same base object."""
        return a.base_ is b.base_

    @staticmethod
    def may_alias(a: MemRef, b: MemRef) -> bool:
        """Same base and byte ranges that overlap, or may overlap because an offset is not constant."""
        if a.base_ is not b.base_:
            return False
        x, y = a.byte_offset_, b.byte_offset_
        if not (isinstance(x, ConstInt) and isinstance(y, ConstInt)):
            return True
        return x.value < y.value + b.size_ and y.value < x.value + a.size_


def _region(args: list, span: Span) -> tuple[Var, Any, int]:
    """(base, byte offset, size) from the positional arguments of a constructor form."""

    def pointer(name: str) -> Var:
        return Var(name, PtrType.get(), span)

    match args:
        case []:
            return pointer(""), 0, 0
        case [str() as name]:
            return pointer(name), 0, 0
        case [MemorySpace() as space, Expr() as address, int() as size, int() as number]:
            return pointer(f"mem_{space.name.lower()}_{number}"), address, size
        case [int() as address, int() as size, int() as number]:
            return pointer(f"mem_{number}"), address, size
        case [str() as name, offset, int() as size]:
            return pointer(name), offset, size
        case [Var() as base, offset, int() as size]:
            return base, offset, size
    raise TypeError(f"MemRef: unsupported arguments ({', '.join(type(a).__name__ for a in args)})")


class WindowBuffer(Var, frozen=True, eq=False, gc=False, metaclass=OverloadedMeta):
    """A communication window; ``size`` is bytes per rank, the name comes from ``base``."""

    IGNORED: ClassVar[tuple[str, ...]] = ("name_hint", "span", "unique_id")

    base: Any = None
    size: Any = None
    load_from_host: bool = False
    store_to_host: bool = False

    @staticmethod
    def _normalize(base, size, load_from_host=False, store_to_host=False, span=UNKNOWN_SPAN) -> tuple:
        if isinstance(size, int):
            size = ConstInt(size, DataType.INT64, span)
        return base.name_hint, WindowBufferType.get(), span, _next_id(), base, size, load_from_host, store_to_host
