"""Where in memory a tensor value of an orchestration function may lie: storage roots with constant boxes."""

from __future__ import annotations

import math
from typing import NamedTuple

from pypto.ir.enums import TensorLayout
from pypto.ir.expr import Call, Expr, MakeTuple, Submit, TupleGetItemExpr, Var, const_value
from pypto.ir.memref import MemRef
from pypto.ir.program import Function
from pypto.ir.stmt import AssignStmt
from pypto.ir.types import TensorType
from pypto.passes.lib.lineage import Lineage
from pypto.passes.lib.op_facts import VIEWS, is_user_call

#: Half-open interval per axis of the root.
Box = tuple[tuple[int, int], ...]
#: More alternatives than this are not followed.
MAX_ALTERNATIVES = 4


class Location(NamedTuple):
    """A region of a root; ``box`` is None for a region that is not known, which may overlap everything on the root."""

    root: Var
    box: Box | None


Locations = frozenset[Location]


def may_overlap(a: Location, b: Location) -> bool:
    """The regions may share an element."""
    if a.root is not b.root:
        return False
    if a.box is None or b.box is None or len(a.box) != len(b.box):
        return True
    return all(x0 < y1 and y0 < x1 for (x0, x1), (y0, y1) in zip(a.box, b.box))


def _whole(kind: TensorType) -> Box | None:
    """The box of a packed row-major tensor with constant extents."""
    extents = [const_value(d) for d in kind.shape]
    if any(e is None for e in extents):
        return None
    view = kind.tensor_view
    if view is not None:
        packed = [math.prod(extents[axis + 1 :]) for axis in range(len(extents))]
        strides = [const_value(s) for s in view.stride]
        if view.valid_shape or view.layout is not TensorLayout.ND or (strides and strides != packed):
            return None
    return tuple((0, e) for e in extents)


class LocationMap:
    """Locations of tensor variables; None means that a value cannot be placed at all."""

    def __init__(self, function: Function, lineage: Lineage) -> None:
        self._lineage = lineage
        self._tuples: dict[Var, Expr] = {}
        self._of: dict[Var, Locations | None] = {}
        shared: list[tuple[Var, MemRef]] = []
        for param in function.params:
            if not isinstance(param.type, TensorType):
                continue
            root, memref = param, param.type.memref
            partner = next((p for p, m in shared if memref is not None and _same_memory(m, memref)), None)
            if partner is not None:
                # Two parameters declared on one allocation: everything on it may overlap.
                root = partner
                self._of[partner] = Locations((Location(partner, None),))
            self._of[param] = Locations((Location(root, None if partner is not None else _whole(param.type)),))
            if memref is not None:
                shared.append((root, memref))

    def of(self, value: Expr) -> Locations | None:
        """Locations of a tensor argument, None when unresolved."""
        return self._of.get(value) if isinstance(value, Var) else None

    def assign(self, stmt: AssignStmt) -> None:
        """Learn the location of an assigned tensor."""
        value, var = stmt.value, stmt.var
        if not isinstance(var.type, TensorType):
            if isinstance(value, (Call, Submit, MakeTuple)):
                self._tuples[var] = value
            return
        self._of[var] = self._located(var, value)

    def _located(self, var: Var, value: Expr) -> Locations | None:
        source = self._lineage.alias_source(value, self._tuples)
        if isinstance(source, Var):
            return self._of.get(source)
        fresh = Locations((Location(var, _whole(var.type)),))
        if isinstance(value, TupleGetItemExpr):
            return fresh
        if isinstance(value, (Call, Submit)) and is_user_call(value):
            return fresh
        if not isinstance(value, Call):
            return None
        if value.op.name in ("tensor.create", "tensor.full"):
            return fresh
        if value.op.name == "tensor.slice":
            return self._sliced(value)
        if value.op.name in VIEWS:
            base = self.of(value.args[0])
            return None if base is None else Locations(Location(b.root, None) for b in base)
        return None

    def _sliced(self, call: Call) -> Locations | None:
        base = self.of(call.args[0])
        if base is None:
            return None
        offsets = [const_value(e) for e in call.args[2].elements]
        extents = [const_value(e) for e in call.args[1].elements]
        result = []
        for location in base:
            known = location.box is not None and None not in offsets and None not in extents
            if not known or len(location.box) != len(offsets):
                result.append(Location(location.root, None))
                continue
            box = tuple((low + o, min(low + o + e, high)) for (low, high), o, e in zip(location.box, offsets, extents))
            result.append(Location(location.root, box))
        return Locations(result)

    def join(self, var: Var, values: tuple[Expr, ...]) -> None:
        """``var`` is one of ``values``."""
        found = [self.of(v) for v in values]
        if any(f is None for f in found):
            self._of[var] = None
            return
        merged = Locations().union(*found)
        self._of[var] = merged if len(merged) <= MAX_ALTERNATIVES else None


def _same_memory(a: MemRef, b: MemRef) -> bool:
    if a.base_ is not b.base_ and a.base_.name_hint != b.base_.name_hint:
        return False
    x, y = const_value(a.byte_offset_), const_value(b.byte_offset_)
    return x is None or y is None or (x < y + b.size_ and y < x + a.size_)
