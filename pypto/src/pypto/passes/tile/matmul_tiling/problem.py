"""Which products AutoTileMatmulL0 tiles, and with what tile."""

from __future__ import annotations

from dataclasses import dataclass

from pypto.errors import user_error
from pypto.ir.enums import MemorySpace
from pypto.ir.expr import Call, Expr, Var, const_value
from pypto.ir.stmt import AssignStmt
from pypto.ir.types import TileType, same_dims
from pypto.passes.diagnostics import perf_hint
from pypto.passes.l0_tile_chooser import L0TileConfig, L0TileResult, choose_l0_tile

#: Operator -> positions of (lhs, rhs, accumulator, bias).
PRODUCTS: dict[str, tuple[int, int, int | None, int | None]] = {
    "tile.matmul": (0, 1, None, None),
    "tile.matmul_acc": (1, 2, 0, None),
    "tile.matmul_bias": (0, 1, None, 2),
}


@dataclass
class Product:
    """One product with its operands, extents and chosen tile."""

    stmt: AssignStmt
    call: Call
    lhs: Var
    rhs: Var
    acc: Expr | None
    bias: Expr | None
    M: int
    N: int
    K: int
    tile: L0TileResult

    @property
    def result(self) -> Var:
        return self.stmt.var

    @property
    def covers_output(self) -> bool:
        """One tile holds the whole output."""
        return self.tile.m >= self.M and self.tile.n >= self.N

    def hint(self, code: str, message: str) -> None:
        _hint(self.call, code, message)


def _hint(call: Call, code: str, message: str) -> None:
    perf_hint(code, f"{call.op.name} is left untiled: {message}", call.span)


def analyse(stmt: AssignStmt, handler) -> Product | None:
    """The product of a statement when it must be tiled, None when it stays as it is."""
    call = stmt.value
    at_lhs, at_rhs, at_acc, at_bias = PRODUCTS[call.op.name]
    lhs, rhs = call.args[at_lhs], call.args[at_rhs]
    if not all(isinstance(v, Var) and _static_matrix(v.type) for v in (lhs, rhs, stmt.var)):
        return None
    if not _reaches_mat(call, lhs, rhs, handler, at_bias is not None) or len(call.args) > 3:
        return None
    m, k = (const_value(d) for d in lhs.type.shape)
    n = const_value(rhs.type.shape[1])
    tile = _choose(call, lhs, rhs, stmt.var.type, (m, n, k), handler, reads_c=at_acc is not None)
    if tile is None or (tile.m, tile.n, tile.k) == (m, n, k):
        return None
    product = Product(
        stmt, call, lhs, rhs, None if at_acc is None else call.args[at_acc],
        None if at_bias is None else call.args[at_bias], m, n, k, tile,
    )  # fmt: skip
    if not all(same_dims(v.type.valid_shape, v.type.shape) for v in (lhs, rhs, stmt.var)):
        product.hint("PH-AT-006", "an operand is only partially valid")
        return None
    if not product.covers_output and (at_acc is not None or at_bias is not None):
        product.hint("PH-AT-006", "only a fresh product without bias is tiled over rows and columns")
        return None
    return product


def _static_matrix(kind) -> bool:
    return isinstance(kind, TileType) and len(kind.shape) == 2 and all(const_value(d) is not None for d in kind.shape)


def _reaches_mat(call: Call, lhs: Var, rhs: Var, handler, biased: bool) -> bool:
    """Operands in Mat (lhs possibly in Vec) are ours; Left and Right are the user's, but they have to fit."""
    for operand, space, capacity in (
        (lhs, MemorySpace.Left, handler.get_l0a_capacity_bytes()),
        (rhs, MemorySpace.Right, handler.get_l0b_capacity_bytes()),
    ):
        kind = operand.type
        if kind.memory_space is not space:
            continue
        rows, cols = (const_value(d) for d in kind.shape)
        need = rows * cols * kind.dtype.get_bit() // 8
        if need > capacity:
            raise user_error(
                f"operand '{operand.name_hint}' [{rows}, {cols}] {kind.dtype} of {call.op.name} needs {need} bytes of "
                f"{space.name}, which has {capacity}. Keep it in Mat and pass it directly so that it is tiled, or "
                "extract a smaller tile with pl.tile.extract",
                span=call.span,
            )
    spaces = (MemorySpace.Mat,) if biased else (MemorySpace.Mat, MemorySpace.Vec, None)
    return lhs.type.memory_space in spaces and rhs.type.memory_space is MemorySpace.Mat


def _choose(
    call: Call, lhs: Var, rhs: Var, out: TileType, shape: tuple[int, int, int], handler, *, reads_c: bool
) -> L0TileResult | None:  # fmt: skip
    m, n, k = shape
    if any(t.dtype.get_bit() < 8 for t in (lhs.type, rhs.type)):
        _hint(call, "PH-AT-003", "operands of less than one byte per element are not tiled")
        return None
    if k % 16:
        _hint(call, "PH-AT-007", f"K={k} is not a multiple of 16")
        return None
    fits = (
        m * k * lhs.type.dtype.get_byte() <= handler.get_l0a_capacity_bytes() // 2
        and k * n * rhs.type.dtype.get_byte() <= handler.get_l0b_capacity_bytes() // 2
        and m * n * out.dtype.get_byte() <= handler.get_l0c_capacity_bytes()
    )
    config = L0TileConfig(
        M=m, N=n, K=k,
        l0a_bytes=handler.get_l0a_capacity_bytes(),
        l0b_bytes=handler.get_l0b_capacity_bytes(),
        l0c_bytes=handler.get_l0c_capacity_bytes(),
        bytes_a=lhs.type.dtype.get_byte(),
        bytes_b=rhs.type.dtype.get_byte(),
        bytes_c=out.dtype.get_byte(),
        l0c_align_m=handler.get_l0c_m_alignment(out.dtype),
        allow_k_boundary=True,
        allow_a_stationary=True,
        allow_b_stationary=True,
        c_read=reads_c,
        **getattr(handler, "matmul_cost", {}),
    )  # fmt: skip
    try:
        return choose_l0_tile(config)
    except ValueError as error:
        if not fits:
            _hint(call, "PH-AT-005", str(error).splitlines()[0])
        return None
