"""AutoTileMatmulL0: matrix products of any static size run in tiles that fit the cube core's L0 buffers."""

from __future__ import annotations

from pypto.ir.enums import ParamDirection, is_incore_type
from pypto.ir.expr import Call, Expr, Var
from pypto.ir.node import replace
from pypto.ir.program import Function
from pypto.ir.stmt import AssignStmt, ForStmt, IfStmt, ScopeStmt, Stmt, WhileStmt, flatten_to_stmts, seq
from pypto.passes.context import MemoryPlanner, active_memory_planner, backend_handler
from pypto.passes.lib.rewrite import Substitution, with_body
from pypto.passes.lib.walk import iter_calls
from pypto.passes.pass_ import function_pass
from pypto.passes.properties import IRProperty as P
from pypto.passes.tile.matmul_tiling.consumers import (
    Consumers,
    accumulators_of_first_products,
    may_wait,
    narrows_like_accumulator,
    reads_only,
)
from pypto.passes.tile.matmul_tiling.emit import emit_placed, emit_tile
from pypto.passes.tile.matmul_tiling.placement import Placement, ScratchPlacement, StorePlacement
from pypto.passes.tile.matmul_tiling.problem import PRODUCTS, Product, analyse, refusal
from pypto.passes.tile.matmul_tiling.split_k import SplitK, emit_split_k, recognise

_FORM = (P.SSAForm, P.SplitIncoreOrch, P.IncoreTileOps, P.TileOps2D, P.NormalizedStmtStructure)


@function_pass("AutoTileMatmulL0", required=_FORM, produced=_FORM)
def auto_tile_matmul_l0(function: Function) -> Function:
    """Tile ``matmul``, ``matmul_acc`` and ``matmul_bias`` over K, and over M and N where the tiles have a place to go.

    Tiles of a result that is stored go straight to the tensor. Tiles of a result that only later products read are
    inserted into one Mat tile; a conversion in between is done by that insertion.

    Raises:
        ValueError: an operand placed in Left or Right by hand that exceeds its buffer.
    """
    handler = backend_handler()
    if handler is None or function.body is None or not is_incore_type(function.func_type):
        return function
    if not any(c.op.name in PRODUCTS for _, c in iter_calls(function.body)):
        return function
    return with_body(function, _Tiler(handler, function).body(function.body))


class _Tiler:
    """Rewrites a function from the top; consumers of a result that moved to Mat are seen with their new operand."""

    def __init__(self, handler, function: Function) -> None:
        self._handler = handler
        self._consumers = Consumers(function)
        self._moved = Substitution({})
        self._dropped: set[Var] = set()
        # accumulators that products in one branch may start from, because the other branch continues them
        self._seeds: dict[Var, Expr] = {}
        directions = zip(function.params, function.param_directions)
        self._inputs = {p for p, direction in directions if direction is ParamDirection.In}

    def body(self, body: Stmt) -> Stmt:
        stmts = flatten_to_stmts(body)
        result: list[Stmt] = []
        changed = False
        # what is computed in tiles where the statement stands that stores the result, by that statement's variable
        waiting: dict[Var, Product | SplitK] = {}
        for position, original in enumerate(stmts):
            if type(original) is AssignStmt and original.var in self._dropped:
                changed = True
                continue
            stmt = self._moved.visit_stmt(original) if self._moved.var_map else original
            if type(original) is AssignStmt and original.var in waiting:
                new = self._stored(waiting.pop(original.var), stmt, original.var)
            else:
                new = self._statement(stmt, stmts, position, waiting)
            changed = changed or len(new) != 1 or new[0] is not original
            result.extend(new)
        if self._dropped:  # loads of bias rows that a later product repeats
            kept = [s for s in result if type(s) is not AssignStmt or s.var not in self._dropped]
            changed, result = changed or len(kept) != len(result), kept
        return seq(result, body.span) if changed else body

    def _statement(
        self, stmt: Stmt, stmts: list[Stmt], position: int, waiting: dict[Var, Product | SplitK]
    ) -> list[Stmt]:
        kind = type(stmt)
        if kind is AssignStmt:
            if isinstance(stmt.value, Call) and stmt.value.op.name in PRODUCTS:
                product = analyse(stmt, self._handler, self._bias_load)
                return [stmt] if product is None else self._tile(product, stmts, position, waiting)
            return [stmt]
        if kind is ForStmt and self._split_k(stmt, stmts, position, waiting):
            return []
        if kind is IfStmt:
            self._seeds.update(accumulators_of_first_products(stmt))
            else_body = None if stmt.else_body is None else self.body(stmt.else_body)
            return [_with(stmt, then_body=self.body(stmt.then_body), else_body=else_body)]
        if kind is ForStmt or kind is WhileStmt or isinstance(stmt, ScopeStmt):
            return [_with(stmt, body=self.body(stmt.body))]
        return [stmt]

    def _tile(
        self, product: Product, stmts: list[Stmt], position: int, waiting: dict[Var, Product | SplitK]
    ) -> list[Stmt]:
        chain = self._scratch(product)
        if chain is not None and active_memory_planner() is MemoryPlanner.PYPTO and not product.is_whole:
            product = product.output_stationary()
        if product.is_whole and chain is None:
            return [product.stmt]
        refused = refusal(product)
        if refused is not None:
            if not product.is_whole:
                product.hint(*refused)
            return [product.stmt]
        if chain is not None:
            if not self._bias_is_ready(product, stmts[:position]):
                return [product.stmt]
            placement, value, cast = chain
            if cast is not None:
                self._dropped.add(cast.var)
            return self._place(product, placement, value)
        if product.covers_output:
            return emit_tile(product, self._seeds.get(product.result))
        store = self._consumers.store(product.result)
        if store is None or not may_wait(product, store, stmts[position + 1 :]):
            product.hint("PH-AT-006", "the output exceeds L0C and neither one store nor later products take its tiles")
            return [product.stmt]
        end = next(i for i, s in enumerate(stmts) if type(s) is AssignStmt and s.var is store.var)
        if not self._bias_is_ready(product, stmts[:end]):
            return [product.stmt]
        waiting[store.var] = product
        return []

    def _bias_load(self, bias: Var) -> AssignStmt | None:
        """The load of a bias row that may be repeated, reading the current version of its tensor."""
        load = self._consumers.repeatable_load(bias)
        return load if load is None or not self._moved.var_map else self._moved.visit_stmt(load)

    def _bias_is_ready(self, product: Product, before: list[Stmt]) -> bool:
        """The bias row needs no windows, or its load may be repeated after ``before`` and goes away."""
        bias = product.bias
        if bias is None or product.tile.n >= product.N:
            return True
        start = next((i for i, s in enumerate(before) if type(s) is AssignStmt and s.var is bias.source), None)
        if start is None or not reads_only(before[start:]):
            product.hint("PH-AT-011", "windows of the bias row cannot be loaded where the tiles are computed")
            return False
        self._dropped.add(bias.load.var)
        return True

    def _scratch(self, product: Product) -> tuple[ScratchPlacement, Var, AssignStmt | None] | None:
        """(placement, variable that later products read, conversion it replaces) of a chained product."""
        value, cast = product.result, None
        if not product.is_valid:
            return None
        if not self._consumers.only_products_read(value):
            cast = self._consumers.cast(value)
            if cast is None or not self._consumers.only_products_read(cast.var):
                return None
            if not narrows_like_accumulator(cast):
                product.hint("PH-AT-010", 'the accumulator converts FP32 to BF16 or FP16 with mode="rint" only')
                return None
            value = cast.var
        elif product.covers_output:
            return None
        source, dtype = product.result.type.dtype, value.type.dtype
        if not self._handler.supports_acc_to_mat_window(source, dtype):
            product.hint("PH-AT-009", f"a later product reads it as {dtype}; convert it to BF16 with mode='rint' first")
            return None
        if product.M * product.N * dtype.get_byte() > self._handler.get_mat_capacity_bytes():
            return None
        return ScratchPlacement(product.result, (product.M, product.N), dtype), value, cast

    def _split_k(
        self, loop: ForStmt, stmts: list[Stmt], position: int, waiting: dict[Var, Product | SplitK]
    ) -> bool:  # fmt: skip
        """Whether a loop that accumulates an oversized product is computed where its result is stored."""
        if len(loop.return_vars) != 1:
            return False
        store = self._consumers.store(loop.return_vars[0])
        initial = loop.iter_args[0].initValue
        if store is None or not self._consumers.fresh_accumulator(initial):
            return False
        end = next((i for i, s in enumerate(stmts) if type(s) is AssignStmt and s.var is store.var), None)
        if end is None or end < position or not reads_only(stmts[position + 1 : end]):
            return False
        split = recognise(loop, self._inputs, self._handler)
        if split is None:
            return False
        self._dropped.add(initial)
        waiting[store.var] = split
        return True

    def _stored(self, what: Product | SplitK, store: AssignStmt, value: Var) -> list[Stmt]:
        """``what`` in tiles that are stored one by one instead of by ``store``."""
        placement = StorePlacement(store)
        if isinstance(what, Product):
            return self._place(what, placement, value)
        stmts, last = emit_split_k(what, placement)
        self._moved.var_map[value] = last
        return [_with(s, body=self.body(s.body)) if type(s) is ForStmt else s for s in stmts]

    def _place(self, product: Product, placement: Placement, value: Var) -> list[Stmt]:
        """The product in tiles; later statements read the last version of their destination instead of ``value``."""
        stmts, last = emit_placed(product, placement)
        self._moved.var_map[value] = last
        return stmts


def _with(stmt: Stmt, **bodies) -> Stmt:
    """``stmt`` with other bodies, itself when they are the same."""
    if all(getattr(stmt, name) is body for name, body in bodies.items()):
        return stmt
    return replace(stmt, **bodies)
