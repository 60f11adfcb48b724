"""Code of tiled products: K loops, unrolled grids, and nested loops that hold one operand."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from pypto.ir.dtype import DataType
from pypto.ir.enums import ForKind, MemorySpace
from pypto.ir.expr import Call, Eq, Expr, IterArg, MakeTuple, Var, const_index
from pypto.ir.node import replace
from pypto.ir.stmt import AssignStmt, ForStmt, IfStmt, Stmt, YieldStmt, seq
from pypto.ops.registry import create_op_call
from pypto.passes.l0_tile_chooser import Stationarity
from pypto.passes.lib import scalars
from pypto.passes.tile.matmul_tiling.problem import Product

_PIPELINE = {"pipeline_stages": 2}
_NESTED = {"pipeline_overlap_stores": False}


class _Code:
    """Statements of one product."""

    def __init__(self, product: Product) -> None:
        self.product = product
        self.span = product.call.span
        self.stmts: list[Stmt] = []

    def inner(self) -> _Code:
        return _Code(self.product)

    def let(self, name: str, value: Expr) -> Var:
        var = Var(name, value.type, self.span)
        self.stmts.append(AssignStmt(var, value, self.span))
        return var

    def call(self, name: str, args: Iterable[Expr], kwargs: dict[str, Any] | None = None) -> Call:
        return create_op_call(name, args, kwargs, self.span)

    def extract(self, name: str, source: Expr, row: Expr | int, col: Expr | int, shape, space: MemorySpace) -> Var:
        args = [source, scalars.index(row), scalars.index(col), MakeTuple(tuple(const_index(d) for d in shape))]
        return self.let(name, self.call("tile.extract", args, {"target_memory": space}))

    def left(self, name: str, lhs: Expr, row, col, m: int, k: int) -> Var:
        return self.extract(name, lhs, row, col, (m, k), MemorySpace.Left)

    def right(self, name: str, rhs: Expr, row, col, k: int, n: int) -> Var:
        return self.extract(name, rhs, row, col, (k, n), MemorySpace.Right)

    def store(
        self,
        name: str,
        store: AssignStmt,
        value: Expr,
        row: Expr | int,
        col: Expr | int,
        target: Expr,
        *,
        last: bool = False,
    ) -> Var:
        """Store one tile at its place; the last store keeps the variable of the original one."""
        call = store.value
        base_row, base_col = call.args[1].elements
        offsets = MakeTuple((scalars.add(base_row, row), scalars.add(base_col, col)))
        return _bind(
            self, store.var if last else None, name, self.call("tile.store", [value, offsets, target], call.kwargs)
        )


def _staged_lhs(code: _Code, name: str) -> Expr:
    """The left operand in Mat."""
    lhs = code.product.lhs
    if lhs.type.memory_space is MemorySpace.Mat:
        return lhs
    return code.let(f"{name}_l0_lmat", code.call("tile.move", [lhs], {"target_memory": MemorySpace.Mat}))


def emit_k_loop(product: Product) -> list[Stmt]:
    """The product of one output tile; the original variable holds the result."""
    code = _Code(product)
    name = product.result.name_hint
    init = None
    if product.acc is None and product.K // product.tile.k > 1:
        init = _acc_tile(code, f"{name}_l0_init", product.M, product.N)
    lhs = _staged_lhs(code, name)
    _k_blocks(code, lhs, name, (0, 0), (product.M, product.N), product.result, init)
    if product.stmt.leading_comments:
        code.stmts[0] = replace(code.stmts[0], leading_comments=list(product.stmt.leading_comments))
    return code.stmts


def _acc_tile(code: _Code, name: str, m: int, n: int) -> Var:
    options = {"dtype": code.product.result.type.dtype, "target_memory": MemorySpace.Acc}
    shape = MakeTuple((const_index(m), const_index(n)))
    return code.let(name, code.call("tile.create", [shape], options))


def _k_blocks(
    code: _Code,
    lhs: Expr,
    name: str,
    at: tuple[int, int],
    shape: tuple[int, int],
    result: Var | None,
    init: Expr | None,
) -> Var:
    """One output tile over all K blocks: a pipelined loop over full blocks, then the aligned tail."""
    p = code.product
    k = p.tile.k
    blocks, tail = divmod(p.K, k)
    (row, col), (m, n) = at, shape
    start = p.acc

    def product_of(inner: _Code, a: Var, b: Var) -> Call:
        if p.bias is not None:
            return inner.call("tile.matmul_bias", [a, b, p.bias])
        return inner.call("tile.matmul", [a, b])

    main = result if not tail else None
    if blocks == 1:
        a = code.left(f"{name}_l0_a", lhs, row, 0, m, k)
        b = code.right(f"{name}_l0_b", p.rhs, 0, col, k, n)
        value = code.call("tile.matmul_acc", [start, a, b]) if start is not None else product_of(code, a, b)
        carried = _bind(code, main, f"{name}_l0_kmain", value)
    else:
        if start is None:
            start = init if init is not None else _acc_tile(code, f"{name}_l0_init", m, n)
        ko = Var(f"{name}_l0_ko", const_index(0).type, code.span)
        carry = IterArg(f"{name}_l0_c", start.type, start, code.span)
        body = code.inner()
        a = body.left(f"{name}_l0_a", lhs, row, ko, m, k)
        b = body.right(f"{name}_l0_b", p.rhs, ko, col, k, n)
        accumulated = body.call("tile.matmul_acc", [carry, a, b])
        if p.acc is not None:
            value = body.let(f"{name}_l0_c_acc", accumulated)
        else:
            value = _first_or_acc(body, name, ko, product_of(body, a, b), accumulated)
        body.stmts.append(YieldStmt((value,), code.span))
        carried = main if main is not None else Var(f"{name}_l0_kmain", value.type, code.span)
        code.stmts.append(
            ForStmt(ko, const_index(0), const_index(blocks * k), const_index(k), (carry,), seq(body.stmts),
                    (carried,), code.span, ForKind.Pipeline, dict(_PIPELINE))
        )  # fmt: skip
    if tail:
        a = code.left(f"{name}_l0_at", lhs, row, blocks * k, m, tail)
        b = code.right(f"{name}_l0_bt", p.rhs, blocks * k, col, tail, n)
        carried = _bind(code, result, f"{name}_l0_ct", code.call("tile.matmul_acc", [carried, a, b]))
    return carried


def _bind(code: _Code, var: Var | None, name: str, value: Call) -> Var:
    if var is None:
        return code.let(name, value)
    code.stmts.append(AssignStmt(var, value, code.span))
    return var


def _first_or_acc(body: _Code, name: str, ko: Var, first: Call, accumulated: Call) -> Var:
    """``first`` in block 0, ``accumulated`` afterwards."""
    then_code, else_code = body.inner(), body.inner()
    a = then_code.let(f"{name}_l0_c_first", first)
    b = else_code.let(f"{name}_l0_c_acc", accumulated)
    phi = Var(f"{name}_l0_c_phi", a.type, body.span)
    then_code.stmts.append(YieldStmt((a,), body.span))
    else_code.stmts.append(YieldStmt((b,), body.span))
    condition = Eq(ko, const_index(0), DataType.BOOL, body.span)
    body.stmts.append(IfStmt(condition, seq(then_code.stmts), seq(else_code.stmts), (phi,), body.span))
    return phi


# -- grids ----------------------------------------------------------------------------------------------------------


def emit_grid(product: Product, store: AssignStmt) -> list[Stmt]:
    """The product in output tiles, each stored at its place; the store's variable is the last version of the tensor."""
    code = _Code(product)
    if product.tile.k >= product.K:
        _nested_grid(code, store)
    else:
        _unrolled_grid(code, store)
    return code.stmts


def _spans(extent: int, step: int) -> list[tuple[int, int]]:
    """(offset, size) of consecutive pieces."""
    return [(offset, min(step, extent - offset)) for offset in range(0, extent, step)]


def _unrolled_grid(code: _Code, store: AssignStmt) -> None:
    """One K loop per output tile, in row-major order."""
    p = code.product
    name = p.result.name_hint
    lhs = _staged_lhs(code, name)
    target: Expr = store.value.args[2]
    base = target.name_hint
    number = 0
    for row, m in _spans(p.M, p.tile.m):
        for col, n in _spans(p.N, p.tile.n):
            value = _k_blocks_named(code, lhs, f"{name}_t{number}", (row, col), (m, n))
            last = row + m >= p.M and col + n >= p.N
            target = code.store(f"{base}_t{number}", store, value, row, col, target, last=last)
            number += 1


def _k_blocks_named(code: _Code, lhs: Expr, name: str, at: tuple[int, int], shape: tuple[int, int]) -> Var:
    """Like :func:`_k_blocks` with the tile's own name for the result."""
    p = code.product
    kind = p.result.type
    result = Var(name, replace(kind, shape=tuple(const_index(d) for d in shape), tile_view=None), code.span)
    return _k_blocks(code, lhs, name, at, shape, result, None)


def _nested_grid(code: _Code, store: AssignStmt) -> None:
    """Whole-K tiles: an outer loop over the held panel, a pipelined inner loop over the other, and the border."""
    p = code.product
    name = p.result.name_hint
    lhs = _staged_lhs(code, name)
    m, n = p.tile.m, p.tile.n
    full_m, full_n = p.M // m * m, p.N // n * n
    kind = p.tile.stationarity
    hold_a = kind is Stationarity.AStationary or (kind is Stationarity.OutputStationary and p.tile.os_holds_a)
    target: Expr = store.value.args[2]
    border = [(r, c, h, w) for r, h in _spans(p.M, m) for c, w in _spans(p.N, n) if r >= full_m or c >= full_n]
    if full_m and full_n:
        target = _interior(code, store, lhs, target, hold_a, full_m, full_n, None if border else store.var)
    base = store.value.args[2].name_hint
    for number, (row, col, height, width) in enumerate(border):
        a = code.left(f"{name}_ta{number}", lhs, row, 0, height, p.K)
        b = code.right(f"{name}_tb{number}", p.rhs, 0, col, p.K, width)
        value = code.let(f"{name}_tc{number}", code.call("tile.matmul", [a, b]))
        last = number == len(border) - 1
        target = code.store(f"{base}_t{number}", store, value, row, col, target, last=last)


def _interior(
    code: _Code,
    store: AssignStmt,
    lhs: Expr,
    target: Expr,
    hold_a: bool,
    full_m: int,
    full_n: int,
    result: Var | None,
) -> Var:
    p = code.product
    name = p.result.name_hint
    m, n = p.tile.m, p.tile.n
    index = const_index(0).type
    outer_var, inner_var = Var(f"{name}_o", index, code.span), Var(f"{name}_i", index, code.span)
    outer_carry = IterArg(f"{name}_oc", target.type, target, code.span)
    outer = code.inner()
    row, col = (outer_var, inner_var) if hold_a else (inner_var, outer_var)
    hold: Callable[[_Code], Var] = (
        (lambda at: at.left(f"{name}_a", lhs, row, 0, m, p.K))
        if hold_a
        else (lambda at: at.right(f"{name}_b", p.rhs, 0, col, p.K, n))
    )
    held = hold(outer)
    inner_carry = IterArg(f"{name}_ic", target.type, outer_carry, code.span)
    inner = code.inner()
    if hold_a:
        a, b = held, inner.right(f"{name}_b", p.rhs, 0, col, p.K, n)
    else:
        a, b = inner.left(f"{name}_a", lhs, row, 0, m, p.K), held
    value = inner.let(f"{name}_c", inner.call("tile.matmul", [a, b]))
    stored = inner.store(f"{name}_s", store, value, row, col, inner_carry)
    inner.stmts.append(YieldStmt((stored,), code.span))
    inner_result = Var(f"{name}_irv", target.type, code.span)
    inner_stop, inner_step = (full_n, n) if hold_a else (full_m, m)
    outer.stmts.append(
        ForStmt(inner_var, const_index(0), const_index(inner_stop), const_index(inner_step), (inner_carry,),
                seq(inner.stmts), (inner_result,), code.span, ForKind.Pipeline, {**_PIPELINE, **_NESTED})
    )  # fmt: skip
    outer.stmts.append(YieldStmt((inner_result,), code.span))
    outer_result = result if result is not None else Var(f"{name}_orv", target.type, code.span)
    outer_stop, outer_step = (full_m, m) if hold_a else (full_n, n)
    pipelined = p.tile.stationarity is Stationarity.OutputStationary
    attrs = {**_PIPELINE, **_NESTED} if pipelined else dict(_NESTED)
    code.stmts.append(
        ForStmt(outer_var, const_index(0), const_index(outer_stop), const_index(outer_step), (outer_carry,),
                seq(outer.stmts), (outer_result,), code.span,
                ForKind.Pipeline if pipelined else ForKind.Sequential, attrs)
    )  # fmt: skip
    return outer_result
