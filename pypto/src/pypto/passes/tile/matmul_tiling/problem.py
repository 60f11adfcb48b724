"""Which products AutoTileMatmulL0 tiles, and with what tile."""

from __future__ import annotations

from dataclasses import dataclass, replace

from pypto.ir.enums import MemorySpace
from pypto.ir.expr import Call, Expr, Var, const_value
from pypto.ir.stmt import AssignStmt
from pypto.ir.types import TileType, same_dims
from pypto.passes.context import MemoryPlanner, PassContext, active_memory_planner
from pypto.passes.diagnostics import perf_hint
from pypto.passes.l0_tile_chooser import L0TileConfig, L0TileResult, choose_l0_tile
from pypto.passes.tile.matmul_tiling.bias import Bias

#: Operator -> positions of (lhs, rhs, accumulator, bias).
PRODUCTS: dict[str, tuple[int, int, int | None, int | None]] = {
    "tile.matmul": (0, 1, None, None),
    "tile.matmul_acc": (1, 2, 0, None),
    "tile.matmul_bias": (0, 1, None, 2),
}


@dataclass(frozen=True)
class Product:
    """One product with its operands, extents and chosen tile."""

    stmt: AssignStmt
    call: Call
    lhs: Var
    rhs: Var
    acc: Expr | None
    bias: Bias | None
    M: int
    N: int
    K: int
    config: L0TileConfig
    tile: L0TileResult

    @property
    def result(self) -> Var:
        return self.stmt.var

    @property
    def covers_output(self) -> bool:
        """One tile holds the whole output."""
        return self.tile.m >= self.M and self.tile.n >= self.N

    @property
    def is_whole(self) -> bool:
        """One tile is the whole problem."""
        return self.covers_output and self.tile.k >= self.K

    @property
    def is_valid(self) -> bool:
        """Every element of the result is valid."""
        return same_dims(self.result.type.valid_shape, self.result.type.shape)

    def output_stationary(self) -> Product:
        """The same product with no operand held, for an allocator that cannot split the space of a held panel."""
        config = replace(self.config, allow_a_stationary=False, allow_b_stationary=False)
        return replace(self, config=config, tile=choose_l0_tile(config))

    def hint(self, code: str, message: str) -> None:
        _hint(self.call, code, message)


def _hint(call: Call, code: str, message: str) -> None:
    perf_hint(code, f"{call.op.name} is left untiled: {message}", call.span)


def analyse(stmt: AssignStmt, handler, load_of) -> Product | None:
    """The product of a statement with its tile, None when it is not ours to tile.

    Args:
        load_of: returns the statement that loads a bias row when the load may be repeated in windows, else None.
    """
    call = stmt.value
    at_lhs, at_rhs, at_acc, at_bias = PRODUCTS[call.op.name]
    lhs, rhs = call.args[at_lhs], call.args[at_rhs]
    if not all(isinstance(v, Var) and _static_matrix(v.type) for v in (lhs, rhs, stmt.var)):
        return None
    if not _reaches_mat(call, lhs, rhs, handler, at_bias is not None) or len(call.args) > 3:
        return None
    m, k = (const_value(d) for d in lhs.type.shape)
    n = const_value(rhs.type.shape[1])
    bias = None
    if at_bias is not None:
        source = call.args[at_bias]
        bias = Bias(source, load_of(source)) if isinstance(source, Var) else None
        if bias is None:
            return None
        if not _bias_fits(bias, stmt.var.type, handler) or m % 16 or n % 16:
            return None
    config = _config(lhs, rhs, stmt.var.type, (m, n, k), handler, reads_c=at_acc is not None, bias=bias)
    tile = _choose(call, lhs, rhs, config)
    if tile is None:
        return None
    return Product(stmt, call, lhs, rhs, None if at_acc is None else call.args[at_acc], bias, m, n, k, config, tile)


def refusal(product: Product) -> tuple[str, str] | None:
    """(hint code, reason) why a product that should be tiled is not, else None."""
    lhs, rhs = product.lhs.type, product.rhs.type
    if not same_dims((lhs.valid_shape[1], rhs.valid_shape[0]), (lhs.shape[1], rhs.shape[0])):
        return "PH-AT-006", "the operands are only partially valid along K"
    if not product.covers_output and product.acc is not None:
        return "PH-AT-006", "a product that continues an accumulator is not tiled over rows and columns"
    return None


def _static_matrix(kind) -> bool:
    return isinstance(kind, TileType) and len(kind.shape) == 2 and all(const_value(d) is not None for d in kind.shape)


def _bias_fits(bias: Bias, out: TileType, handler) -> bool:
    kind = bias.source.type
    if not isinstance(kind, TileType):
        return False
    if kind.memory_space is MemorySpace.Bias:
        return True
    return kind.memory_space is MemorySpace.Mat and handler.supports_mat_to_bias_move(kind.dtype, out.dtype)


def _reaches_mat(call: Call, lhs: Var, rhs: Var, handler, biased: bool) -> bool:
    """Operands in Mat (lhs possibly in Vec) are ours; Left and Right are the user's, but they have to fit."""
    for side, buffer, operand, space, capacity in (
        ("left", "L0A", lhs, MemorySpace.Left, handler.get_l0a_capacity_bytes()),
        ("right", "L0B", rhs, MemorySpace.Right, handler.get_l0b_capacity_bytes()),
    ):
        kind = operand.type
        if kind.memory_space is not space:
            continue
        rows, cols = (const_value(d) for d in kind.shape)
        need = rows * cols * kind.dtype.get_bit() // 8
        if need > capacity:
            name = operand.name_hint.split("__ssa_v")[0]
            error = ValueError(
                f"{call.op.name} {side} operand '{name}' has physical shape [{rows}, {cols}] and dtype {kind.dtype}, "
                f"requiring {need} bytes of {space.name} ({buffer}), which provides {capacity} bytes. AutoTileMatmulL0 "
                f"does not retile operands already placed in Left or Right. Keep this operand in Mat and pass it "
                f"directly, or manually extract a smaller {space.name} tile with pl.tile.extract"
            )
            error.span = call.span  # type: ignore[attr-defined]  # the compile boundary shows the source text
            raise error
    spaces = (MemorySpace.Mat,) if biased else (MemorySpace.Mat, MemorySpace.Vec, None)
    return lhs.type.memory_space in spaces and rhs.type.memory_space is MemorySpace.Mat


def _two_accumulators() -> bool:
    """Whether the memory planner keeps two accumulators apart."""
    if active_memory_planner() is not MemoryPlanner.PYPTO:
        return True
    context = PassContext.current()
    return context is not None and context.get_enable_pypto_l0c_double_buffer()


def _config(
    lhs: Var, rhs: Var, out: TileType, shape: tuple[int, int, int], handler, *, reads_c: bool, bias: Bias | None
) -> L0TileConfig:  # fmt: skip
    m, n, k = shape
    limits = {}
    if bias is not None:
        row = handler.get_bias_capacity_bytes() // out.dtype.get_byte()
        limits["max_n"] = row
        if bias.load is not None:
            # windows in flight: two in a pipelined loop, four in a pipelined loop inside another one
            limits.update(max_n_pipelined=row // 2, max_n_nested_pipelined=row // 4)
        else:
            limits["min_n"] = n
    return L0TileConfig(
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
        allow_double_buffer_c=_two_accumulators(),
        c_read=reads_c,
        **limits,
    )  # fmt: skip


def _choose(call: Call, lhs: Var, rhs: Var, config: L0TileConfig) -> L0TileResult | None:
    if any(t.dtype.get_bit() < 8 for t in (lhs.type, rhs.type)):
        _hint(call, "PH-AT-003", "operands of less than one byte per element are not tiled")
        return None
    m, n, k = config.M, config.N, config.K
    if k % 16:
        _hint(call, "PH-AT-007", f"K={k} is not a multiple of 16")
        return None
    try:
        return choose_l0_tile(config)
    except ValueError as error:
        fits = (
            m * k * config.bytes_a <= config.l0a_bytes // 2
            and k * n * config.bytes_b <= config.l0b_bytes // 2
            and m * n * config.bytes_c <= config.l0c_bytes
        )
        if not fits:
            _hint(call, "PH-AT-005", str(error).splitlines()[0])
        return None
