"""Code of tiled products: K loops, unrolled grids, and nested loops that hold one operand."""

from __future__ import annotations

from pypto.ir.dtype import DataType
from pypto.ir.enums import ForKind, MemorySpace
from pypto.ir.expr import Call, Eq, Expr, IterArg, Var, const_index, const_value
from pypto.ir.node import replace
from pypto.ir.stmt import ForStmt, IfStmt, Stmt, YieldStmt, seq
from pypto.ir.types import TileType, same_dims
from pypto.passes.l0_tile_chooser import Stationarity
from pypto.passes.tile.matmul_tiling.code import Code
from pypto.passes.tile.matmul_tiling.placement import Placement
from pypto.passes.tile.matmul_tiling.problem import Product

_PIPELINE = {"pipeline_stages": 2}
_ONE_ACCUMULATOR = {"pipeline_overlap_stores": False}
_TWO_ACCUMULATORS = {"pipeline_double_buffer_c": True}


def emit_tile(product: Product, seed: Expr | None = None) -> list[Stmt]:
    """The statements of a product that one output tile covers; the variable of the product holds the result.

    Args:
        seed: accumulator whose storage a fresh product takes, instead of a new one.
    """
    code = Code(product.call.span)
    if product.is_whole:
        return [product.stmt]
    _one_tile(code, product, seed)
    return _commented(code, product)


def emit_placed(product: Product, placement: Placement) -> tuple[list[Stmt], Var]:
    """(statements, last version of the destination) of a product whose tiles are placed."""
    code = Code(product.call.span)
    if product.covers_output:
        code.stmts.extend(emit_tile(product))
        return code.stmts, placement.put(code, placement.base, product.result, 0, 0, placement.start(code))
    emit = _nested_grid if product.tile.k >= product.K and product.is_valid else _unrolled_grid
    last = emit(code, product, placement)
    return _commented(code, product), last


def _commented(code: Code, product: Product) -> list[Stmt]:
    """The statements, the first with the comments of the product."""
    if product.stmt.leading_comments:
        code.stmts[0] = replace(code.stmts[0], leading_comments=list(product.stmt.leading_comments))
    return code.stmts


def _one_tile(code: Code, product: Product, init: Expr | None) -> None:
    """The K loop of the only output tile, from the accumulator ``init``."""
    p, name = product, product.result.name_hint
    if init is None and p.is_valid and p.acc is None and p.K // p.tile.k > 1:
        init = _acc_tile(code, p, f"{name}_l0_init", p.M, p.N)
    lhs = _operands(code, p, name)
    _k_blocks(code, p, lhs, name, (0, 0), (p.M, p.N), p.result, init)


def _operands(code: Code, p: Product, name: str) -> Expr:
    """The left operand in Mat; a bias row that no tile narrows moves to the bias table here."""
    if p.bias is not None and p.tile.n >= p.N:
        p.bias.move_whole(code, name)
    return code.to_mat(f"{name}_l0_lmat", p.lhs)


def _acc_tile(code: Code, p: Product, name: str, m: int, n: int) -> Var:
    return code.create(name, (m, n), p.result.type.dtype, MemorySpace.Acc)


def _first_product(code: Code, p: Product, name: str, a: Var, b: Var, col: Expr | int, n: int) -> Call:
    """The product that starts an accumulation."""
    if p.bias is None:
        return code.call("tile.matmul", [a, b])
    return code.call("tile.matmul_bias", [a, b, p.bias.window(code, name, col, n, p.N)])


def _k_blocks(
    code: Code,
    p: Product,
    lhs: Expr,
    name: str,
    at: tuple[int, int],
    shape: tuple[int, int],
    result: Var,
    init: Expr | None,
) -> Var:
    """One output tile over all K blocks: a pipelined loop over full blocks, then the aligned tail."""
    k = p.tile.k
    blocks, tail = divmod(p.K, k)
    (row, col), (m, n) = at, shape
    start = p.acc if p.acc is not None else init
    main = result if not tail else None
    # A created accumulator has no partial valid region and layout, so the first block of such a product stands alone.
    peeled = start is None and (blocks == 1 or not same_dims(result.type.valid_shape, result.type.shape))
    if peeled or blocks == 1:
        a = code.left(f"{name}_l0_a", lhs, row, 0, m, k)
        b = code.right(f"{name}_l0_b", p.rhs, 0, col, k, n)
        if p.acc is not None:
            value = code.call("tile.matmul_acc", [start, a, b])
        else:
            value = _first_product(code, p, name, a, b, col, n)
        carried = start = code.bind(main if blocks == 1 else None, f"{name}_l0_kmain", value)
    if blocks > 1:
        if start is None:
            start = _acc_tile(code, p, f"{name}_l0_init", m, n)
        ko = Var(f"{name}_l0_ko", const_index(0).type, code.span)
        carry = IterArg(f"{name}_l0_c", start.type, start, code.span)
        body = code.inner()
        a = body.left(f"{name}_l0_a", lhs, row, ko, m, k)
        b = body.right(f"{name}_l0_b", p.rhs, ko, col, k, n)
        if p.acc is not None or peeled:
            value = body.let(f"{name}_l0_c_acc", body.call("tile.matmul_acc", [carry, a, b]))
        else:
            value = _first_or_acc(body, p, name, ko, carry, a, b, col, n)
        body.stmts.append(YieldStmt((value,), code.span))
        carried = main if main is not None else Var(f"{name}_l0_kmain", value.type, code.span)
        first = const_index(k if peeled else 0)
        code.stmts.append(
            ForStmt(ko, first, const_index(blocks * k), const_index(k), (carry,), seq(body.stmts),
                    (carried,), code.span, ForKind.Pipeline, dict(_PIPELINE))
        )  # fmt: skip
    if tail:
        a = code.left(f"{name}_l0_at", lhs, row, blocks * k, m, tail)
        b = code.right(f"{name}_l0_bt", p.rhs, blocks * k, col, tail, n)
        carried = code.bind(result, f"{name}_l0_ct", code.call("tile.matmul_acc", [carried, a, b]))
    return carried


def _first_or_acc(
    body: Code, p: Product, name: str, ko: Var, carry: Expr, a: Var, b: Var, col: Expr | int, n: int
) -> Var:  # fmt: skip
    """A fresh product in block 0, an accumulation afterwards."""
    then_code, else_code = body.inner(), body.inner()
    first = then_code.let(f"{name}_l0_c_first", _first_product(then_code, p, name, a, b, col, n))
    later = else_code.let(f"{name}_l0_c_acc", else_code.call("tile.matmul_acc", [carry, a, b]))
    phi = Var(f"{name}_l0_c_phi", first.type, body.span)
    then_code.stmts.append(YieldStmt((first,), body.span))
    else_code.stmts.append(YieldStmt((later,), body.span))
    condition = Eq(ko, const_index(0), DataType.BOOL, body.span)
    body.stmts.append(IfStmt(condition, seq(then_code.stmts), seq(else_code.stmts), (phi,), body.span))
    return phi


# -- grids ----------------------------------------------------------------------------------------------------------


def _spans(extent: int, step: int) -> list[tuple[int, int]]:
    """(offset, size) of consecutive pieces."""
    return [(offset, min(step, extent - offset)) for offset in range(0, extent, step)]


def _unrolled_grid(code: Code, p: Product, placement: Placement) -> Var:
    """One K loop per output tile, in column-major order."""
    name = p.result.name_hint
    lhs = _operands(code, p, name)
    into = placement.start(code)
    rows, cols = (const_value(d) for d in p.result.type.valid_shape)
    tiles = [
        (r, c, h, w)
        for c, w in _spans(p.N, p.tile.n)
        for r, h in _spans(p.M, p.tile.m)
        if (rows is None or r < rows) and (cols is None or c < cols)
    ]
    for number, (row, col, m, n) in enumerate(tiles):
        result = Var(f"{name}_t{number}", _tile_type(p, lhs, row, col, m, n), code.span)
        value = _k_blocks(code, p, lhs, result.name_hint, (row, col), (m, n), result, None)
        into = placement.put(code, f"{placement.base}_t{number}", value, row, col, into)
    return into


def _tile_type(p: Product, lhs: Expr, row: int, col: int, m: int, n: int) -> TileType:
    """The type of one output tile: the extents of its place, valid as far as the operands are."""
    if p.is_valid:
        return replace(p.result.type, shape=(const_index(m), const_index(n)), tile_view=None)
    probe = Code(p.call.span)
    a = probe.left("a", lhs, row, 0, m, p.tile.k)
    b = probe.right("b", p.rhs, 0, col, p.tile.k, n)
    return probe.call("tile.matmul", [a, b]).type


def _nested_grid(code: Code, p: Product, placement: Placement) -> Var:
    """Whole-K tiles: an outer loop over the held panel, a pipelined inner loop over the other, and the border."""
    name = p.result.name_hint
    lhs = _operands(code, p, name)
    m, n = p.tile.m, p.tile.n
    full_m, full_n = p.M // m * m, p.N // n * n
    into = placement.start(code)
    border = [(r, c, h, w) for r, h in _spans(p.M, m) for c, w in _spans(p.N, n) if r >= full_m or c >= full_n]
    if full_m and full_n:
        into = _interior(code, p, lhs, placement, into, (full_m, full_n))
    for number, (row, col, height, width) in enumerate(border):
        a = code.left(f"{name}_ta{number}", lhs, row, 0, height, p.K)
        b = code.right(f"{name}_tb{number}", p.rhs, 0, col, p.K, width)
        value = code.let(f"{name}_tc{number}", _first_product(code, p, f"{name}_t{number}", a, b, col, width))
        into = placement.put(code, f"{placement.base}_t{number}", value, row, col, into)
    return into


def _interior(
    code: Code, p: Product, lhs: Expr, placement: Placement, into: Expr, full: tuple[int, int]
) -> Var:  # fmt: skip
    """The tiles of full size."""
    name = p.result.name_hint
    m, n = p.tile.m, p.tile.n
    full_m, full_n = full
    kind = p.tile.stationarity
    hold_a = kind is Stationarity.AStationary or (kind is Stationarity.OutputStationary and p.tile.os_holds_a)
    index = const_index(0).type
    outer_var, inner_var = Var(f"{name}_o", index, code.span), Var(f"{name}_i", index, code.span)
    outer_carry = IterArg(f"{name}_oc", into.type, into, code.span)
    outer = code.inner()
    row, col = (outer_var, inner_var) if hold_a else (inner_var, outer_var)
    if hold_a:
        held = outer.left(f"{name}_a", lhs, row, 0, m, p.K)
    else:
        held = outer.right(f"{name}_b", p.rhs, 0, col, p.K, n)
    inner_carry = IterArg(f"{name}_ic", into.type, outer_carry, code.span)
    inner = code.inner()
    if hold_a:
        a, b = held, inner.right(f"{name}_b", p.rhs, 0, col, p.K, n)
    else:
        a, b = inner.left(f"{name}_a", lhs, row, 0, m, p.K), held
    value = inner.let(f"{name}_c", _first_product(inner, p, name, a, b, col, n))
    placed = placement.put(inner, f"{name}_s", value, row, col, inner_carry)
    inner.stmts.append(YieldStmt((placed,), code.span))
    inner_result = Var(f"{name}_irv", into.type, code.span)
    inner_stop, inner_step = (full_n, n) if hold_a else (full_m, m)
    accumulators = _TWO_ACCUMULATORS if p.tile.double_buffer_c else _ONE_ACCUMULATOR
    outer.stmts.append(
        ForStmt(inner_var, const_index(0), const_index(inner_stop), const_index(inner_step), (inner_carry,),
                seq(inner.stmts), (inner_result,), code.span, ForKind.Pipeline, {**_PIPELINE, **accumulators})
    )  # fmt: skip
    outer.stmts.append(YieldStmt((inner_result,), code.span))
    outer_result = Var(f"{name}_orv", into.type, code.span)
    outer_stop, outer_step = (full_m, m) if hold_a else (full_n, n)
    pipelined = kind is Stationarity.OutputStationary
    attrs = {**_PIPELINE, **_ONE_ACCUMULATOR} if pipelined else {}
    code.stmts.append(
        ForStmt(outer_var, const_index(0), const_index(outer_stop), const_index(outer_step), (outer_carry,),
                seq(outer.stmts), (outer_result,), code.span,
                ForKind.Pipeline if pipelined else ForKind.Sequential, attrs)
    )  # fmt: skip
    return outer_result
