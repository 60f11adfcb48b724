"""AutoTileMatmulL0: matrix products of any static size run in tiles that fit the cube core's L0 buffers."""

from __future__ import annotations

from pypto.ir.enums import is_incore_type
from pypto.ir.expr import Call
from pypto.ir.program import Function
from pypto.ir.stmt import AssignStmt, Stmt, flatten_to_stmts, seq
from pypto.passes.context import backend_handler
from pypto.passes.lib.rewrite import rebuild_lists, with_body
from pypto.passes.lib.uses import count_reads
from pypto.passes.lib.walk import iter_calls
from pypto.passes.pass_ import function_pass
from pypto.passes.properties import IRProperty as P
from pypto.passes.tile.matmul_tiling.emit import emit_grid, emit_k_loop
from pypto.passes.tile.matmul_tiling.problem import PRODUCTS, Product, analyse

_FORM = (P.SSAForm, P.SplitIncoreOrch, P.IncoreTileOps, P.TileOps2D, P.NormalizedStmtStructure)


@function_pass("AutoTileMatmulL0", required=_FORM, produced=_FORM)
def auto_tile_matmul_l0(function: Function) -> Function:
    """Tile ``matmul``, ``matmul_acc`` and ``matmul_bias`` over K, and over M and N where the result is stored.

    Raises:
        ValueError: an operand placed in Left or Right by hand that exceeds its buffer.
    """
    handler = backend_handler()
    if handler is None or function.body is None or not is_incore_type(function.func_type):
        return function
    if not any(c.op.name in PRODUCTS for _, c in iter_calls(function.body)):
        return function
    tiler = _Tiler(handler, function)
    return with_body(function, rebuild_lists(function.body, tiler.rewrite))


class _Tiler:
    """Rewrites statement lists."""

    def __init__(self, handler, function: Function) -> None:
        self._handler = handler
        self._reads = count_reads(function)

    def rewrite(self, stmts: list[Stmt]) -> list[Stmt]:
        result: list[Stmt] = []
        skip: set[int] = set()
        changed = False
        for position, stmt in enumerate(stmts):
            if id(stmt) in skip:
                continue
            product = None
            if type(stmt) is AssignStmt and isinstance(stmt.value, Call) and stmt.value.op.name in PRODUCTS:
                product = analyse(stmt, self._handler)
            if product is None:
                result.append(stmt)
                continue
            new = self._tile(product, stmts, position, skip)
            changed = changed or new is not None
            result.extend([stmt] if new is None else new)
        return result if changed else stmts

    def _tile(self, product: Product, stmts: list[Stmt], position: int, skip: set[int]) -> list[Stmt] | None:
        if product.covers_output:
            return flatten_to_stmts(seq(emit_k_loop(product)))
        store = self._store_after(product, stmts[position + 1 :])
        if store is None:
            product.hint("PH-AT-006", "the output exceeds L0C and is not written by one store right after the product")
            return None
        pieces = emit_grid(product, store)
        between = []
        for stmt in stmts[position + 1 :]:
            skip.add(id(stmt))
            if stmt is store:
                break
            between.append(stmt)
        return [*between, *pieces]

    def _store_after(self, product: Product, rest: list[Stmt]) -> AssignStmt | None:
        """The one store of the result, when only loads stand between the product and it."""
        if self._reads[product.result] != 1:
            return None
        for stmt in rest:
            if type(stmt) is not AssignStmt or not isinstance(stmt.value, Call):
                return None
            call = stmt.value
            if call.op.name == "tile.store" and call.args[0] is product.result:
                plain = len(call.args) == 3 and len(call.args[1].elements) == 2
                return stmt if plain else None
            if call.op.name != "tile.load":
                return None
        return None
