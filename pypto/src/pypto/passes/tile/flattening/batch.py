"""Batched products: one 2D product per batch, operands sliced from a whole tile or loaded again per batch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pypto.ir.enums import MemorySpace
from pypto.ir.expr import Call, Expr, MakeTuple, Var, const_index, const_value
from pypto.ir.node import replace
from pypto.ir.stmt import AssignStmt
from pypto.ir.types import TensorType
from pypto.ops.registry import create_op_call
from pypto.passes.context import backend_handler
from pypto.passes.lib import scalars
from pypto.passes.tile.flattening.geometry import collapses

if TYPE_CHECKING:
    from pypto.passes.tile.flatten_tile_nd_to_2d import _Flattener


class BatchLowering:
    """Lowers ``tile.batch_matmul`` and ``tile.batch_matmul_acc`` for one function."""

    def __init__(self, owner: _Flattener) -> None:
        self._owner = owner
        #: N-D variable -> (its load, operands over the rewritten variables).
        self._loads: dict[Var, tuple[Call, list[Expr]]] = {}
        self._views: dict[Var, Var] = {}

    def note_load(self, var: Var, call: Call, operands: list[Expr]) -> None:
        self._loads[var] = (call, operands)

    def lower(self, stmt: AssignStmt, store: AssignStmt | None) -> bool:
        """Emit the products of one statement; True when ``store`` was split per batch as well."""
        call = stmt.value
        accumulates = call.op.name == "tile.batch_matmul_acc"
        acc = call.args[0] if accumulates else None
        lhs, rhs = call.args[1:3] if accumulates else call.args[:2]
        batch = call.type.shape[:-2]
        rows, cols = call.type.shape[-2:]
        pages = scalars.product(batch) or 1
        whole = self._fits(lhs, rhs)
        products: list[Var] = []
        for page in range(pages):
            a = self._page(lhs, page, batch, f"lhs_slice_{page}", whole, stmt)
            b = self._page(rhs, page, batch, f"rhs_slice_{page}", whole, stmt)
            if acc is None:
                value = create_op_call("tile.matmul", [a, b], {}, call.span)
            else:
                flat = self._owner.visit_expr(acc)
                height = const_value(rows)
                start = self._owner.slice(f"acc_slice_{page}", flat, (rows, cols), (page * height, 0), call.span)
                value = create_op_call("tile.matmul_acc", [start, a, b, *call.args[3:]], {}, call.span)
            products.append(self._owner.let(f"matmul_{page}", value, call.span))
            if store is not None:
                self._store_page(store, products[-1], page, batch, last=page == pages - 1)
        if store is None:
            self._merge(stmt, products, acc)
        return store is not None

    # -- operands -----------------------------------------------------------------------------------------------

    def _origin(self, value: Expr) -> tuple[Var | None, bool]:
        """(loaded variable behind an operand, read through a transposed view)."""
        transposed = False
        while isinstance(value, Var):
            if value in self._loads:
                return value, transposed
            source = self._owner.definition(value)
            if isinstance(source, Call) and source.op.name == "tile.transpose_view":
                transposed, value = not transposed, source.args[0]
            elif isinstance(source, Var):
                value = source
            else:
                break
        return None, transposed

    def _fits(self, lhs: Expr, rhs: Expr) -> bool:
        """Whether both whole operands fit Mat together; unknown without a backend."""
        handler = backend_handler()
        if handler is None:
            return True
        total = 0
        for operand in (lhs, rhs):
            count = scalars.product(operand.type.shape)
            total += 0 if count is None else count * operand.type.dtype.get_bit() // 8
        return total <= handler.get_mat_capacity_bytes()

    def _page(self, operand: Expr, page: int, batch, name: str, whole: bool, stmt: AssignStmt) -> Expr:
        """The 2D operand of one batch."""
        flat = self._owner.visit_expr(operand)
        shape = operand.type.shape
        if len(shape) <= 2:
            return flat
        own_pages = scalars.product(shape[:-2]) or 1
        index = _broadcast_index(page, batch, shape[:-2])
        height, width = const_value(shape[-2]), const_value(shape[-1])
        loaded, transposed = self._origin(operand)
        contiguous = loaded is None or self._whole_is_contiguous(loaded)
        if loaded is not None and not (whole and contiguous):
            return self._reload(loaded, operand, index, transposed, name, stmt)
        if own_pages == 1:
            return flat
        offsets = (0, index * width) if transposed else (index * height, 0)
        return self._owner.slice(name, flat, (height, width), offsets, stmt.span)

    def _whole_is_contiguous(self, loaded: Var) -> bool:
        call, operands = self._loads[loaded]
        source = operands[0].type
        return not isinstance(source, TensorType) or collapses(call.args[2].elements, source.shape)

    def _reload(
        self, loaded: Var, operand: Expr, index: int, transposed: bool, name: str, stmt: AssignStmt
    ) -> Expr:  # fmt: skip
        """Load one batch on its own, from the source of the whole load."""
        call, operands = self._loads[loaded]
        source, offsets, shape, valid = operands[:4]
        lead = [const_value(d) for d in shape.elements[:-2]]
        position = _unravel(index, lead)
        new_offsets = [scalars.add(o, p) for o, p in zip(offsets.elements, position)] + list(offsets.elements[-2:])
        ones = [const_index(1) for _ in lead]
        window = MakeTuple((*ones, *shape.elements[-2:]))
        valid_window = MakeTuple((*ones, *valid.elements[-2:]))
        page = self._owner.emit_load(call, [source, MakeTuple(tuple(new_offsets)), window, valid_window], name)
        self._owner.note_reloaded(loaded, operand)
        value = self._owner.let(name, page, stmt.span)
        if transposed:
            view = create_op_call("tile.transpose_view", [value], {}, stmt.span)
            value = self._owner.let(f"{name}_t", view, stmt.span)
        return value

    # -- results ------------------------------------------------------------------------------------------------

    def _store_page(self, store: AssignStmt, value: Var, page: int, batch, *, last: bool) -> None:
        call = store.value
        owner = self._owner
        lead = _unravel(page, [const_value(d) for d in batch])
        offsets = [owner.visit_expr(o) for o in call.args[1].elements]
        extra = len(offsets) - 2 - len(lead)
        new_offsets = [
            scalars.add(o, lead[i - extra]) if extra <= i < extra + len(lead) else o for i, o in enumerate(offsets)
        ]
        target = owner.visit_expr(call.args[2])
        sizes = MakeTuple((*(const_index(1) for _ in range(len(offsets) - 2)), *value.type.shape))
        args: list[Expr] = [value, MakeTuple(tuple(new_offsets)), target, sizes]
        stored = replace(create_op_call("tile.store", args, call.kwargs, call.span), attrs=call.attrs)
        name = owner.let(f"{store.var.name_hint}_{page}", stored, store.span)
        if isinstance(call.args[2], Var):
            # The next page continues in the tensor this one returned.
            self._chain_target(call.args[2], name, last)
        if last:
            owner.var_map[store.var] = name

    def _chain_target(self, target: Var, name: Var, last: bool) -> None:
        saved = self._views.setdefault(target, self._owner.var_map.get(target, target))
        if last:
            self._views.pop(target)
            if saved is target:
                self._owner.var_map.pop(target, None)
            else:
                self._owner.var_map[target] = saved
        else:
            self._owner.var_map[target] = name

    def _merge(self, stmt: AssignStmt, products: list[Var], acc: Expr | None) -> None:
        """One flat tile with the products of all batches."""
        owner = self._owner
        kind = products[0].type
        height = const_value(kind.shape[0])
        if acc is not None:
            result: Expr = owner.visit_expr(acc)
        else:
            shape = (height * len(products), kind.shape[1])
            result = owner.create("batch_out", shape, kind, MemorySpace.Vec, stmt.span)
        for page, product in enumerate(products):
            value: Expr = product
            if acc is None:
                move = create_op_call("tile.move", [product], {"target_memory": MemorySpace.Vec}, stmt.span)
                value = owner.let(f"matmul_{page}_Vec", move, stmt.span)
            offset = MakeTuple((const_index(page * height), const_index(0)))
            call = create_op_call("tile.assemble", [result, value, offset], {}, stmt.span)
            name = stmt.var.name_hint if page == len(products) - 1 else f"{stmt.var.name_hint}_{page}"
            result = owner.let(name, call, stmt.span)
        owner.var_map[stmt.var] = result


def _unravel(index: int, shape: list[int]) -> list[int]:
    position: list[int] = []
    for extent in reversed(shape):
        position.append(index % extent)
        index //= extent
    return position[::-1]


def _broadcast_index(page: int, batch, own) -> int:
    """Page of an operand whose batch axes broadcast to ``batch``."""
    position = _unravel(page, [const_value(d) for d in batch])
    index = 0
    for axis, extent in enumerate(own):
        size = const_value(extent)
        place = position[len(position) - len(own) + axis]
        index = index * size + (0 if size == 1 else place)
    return index
