"""Accumulations over K that a program spells as a loop: tiled over rows and columns outside that loop."""

from __future__ import annotations

from dataclasses import dataclass

from pypto.ir.enums import MemorySpace
from pypto.ir.expr import Call, Expr, IterArg, MakeTuple, Var, const_index, const_value
from pypto.ir.node import replace
from pypto.ir.stmt import AssignStmt, ForStmt, IfStmt, Stmt, YieldStmt, flatten_to_stmts, seq
from pypto.ir.types import ScalarType, TileType, same_dims
from pypto.ops.registry import create_op_call
from pypto.passes.l0_tile_chooser import L0TileConfig, choose_l0_tile
from pypto.passes.lib import scalars
from pypto.passes.lib.rewrite import Substitution
from pypto.passes.lib.walk import iter_calls, yielded
from pypto.passes.tile.matmul_tiling.code import Code, extents
from pypto.passes.tile.matmul_tiling.placement import StorePlacement
from pypto.passes.tile.matmul_tiling.problem import PRODUCTS

#: Columns of a Mat tile come in blocks of this many bytes.
_BLOCK_BYTES = 32


@dataclass(frozen=True)
class SplitK:
    """One loop that accumulates a product too large for L0C from panels it loads."""

    loop: ForStmt
    #: Variables of the loads of left and right panels.
    lefts: frozenset[Var]
    rights: frozenset[Var]
    M: int
    N: int
    m: int
    n: int
    block: int

    @property
    def tiles(self) -> list[tuple[int, int, int, int]]:
        """(row, column, rows, columns) of the output tiles, in column-major order."""
        return [
            (row, col, min(self.m, self.M - row), min(self.n, self.N - col))
            for col in range(0, self.N, self.n)
            for row in range(0, self.M, self.m)
        ]


def recognise(loop: ForStmt, params: set[Var], handler) -> SplitK | None:
    """The accumulation of a loop whose only effect is its accumulator, when that exceeds L0C.

    The body loads panels of parameters, and every product in it multiplies one left and one right panel; whether a
    product starts the accumulation or continues it may depend on anything.
    """
    if len(loop.iter_args) != 1 or not isinstance(loop.iter_args[0].type, TileType):
        return None
    products = [s for s, c in iter_calls(loop.body) if c.op.name in PRODUCTS and type(s) is AssignStmt]
    if not products or any(s.value.op.name == "tile.matmul_bias" for s in products):
        return None
    loads = {s.var: s for s, c in iter_calls(loop.body) if type(s) is AssignStmt and c.op.name == "tile.load"}
    sides: tuple[set[Var], set[Var]] = (set(), set())
    for stmt in products:
        for side, position in zip(sides, PRODUCTS[stmt.value.op.name]):
            side.add(stmt.value.args[position])
    lefts, rights = sides
    if lefts & rights or lefts | rights != set(loads) or not all(_panel(s, params) for s in loads.values()):
        return None
    if not _only_accumulates(loop.body, loop.iter_args[0], set(loads), {s.var for s in products}):
        return None
    shapes = {tuple(const_value(d) for d in s.var.type.shape) for s in products}
    depths = {const_value(v.type.shape[1]) for v in lefts}
    if len(shapes) != 1 or len(depths) != 1:
        return None
    (rows, cols), (depth,) = shapes.pop(), depths
    return _tiled(loop, frozenset(lefts), frozenset(rights), (rows, cols, depth), products[0], handler)


def _panel(load: AssignStmt, params: set[Var]) -> bool:
    """A whole Mat tile of a parameter."""
    call, kind = load.value, load.var.type
    return (
        len(call.args) in (3, 4)
        and call.args[0] in params
        and len(kind.shape) == 2
        and all(const_value(d) is not None for d in kind.shape)
        and same_dims(kind.valid_shape, kind.shape)
        and kind.memory_space is MemorySpace.Mat
        and not call.kwargs.get("transpose")
    )


def _only_accumulates(body: Stmt, carry: IterArg, panels: set[Var], products: set[Var]) -> bool:
    """Every statement computes a scalar, loads a panel, multiplies, or hands the accumulator on."""
    accumulators = {carry, *products}
    for stmt in flatten_to_stmts(body):
        kind = type(stmt)
        if kind is AssignStmt:
            if not (isinstance(stmt.var.type, ScalarType) or stmt.var in panels or stmt.var in products):
                return False
        elif kind is IfStmt:
            if len(stmt.return_vars) != 1 or stmt.else_body is None:
                return False
            for branch in (stmt.then_body, stmt.else_body):
                if not _only_accumulates(branch, carry, panels, products):
                    return False
            accumulators.add(stmt.return_vars[0])
        elif kind is not YieldStmt:
            return False
    values = yielded(body)
    return len(values) == 1 and values[0] in accumulators


def _tiled(
    loop: ForStmt, lefts: frozenset, rights: frozenset, shape: tuple[int, int, int], product: AssignStmt, handler
) -> SplitK | None:  # fmt: skip
    rows, cols, depth = shape
    left, right = next(iter(lefts)).type.dtype, next(iter(rights)).type.dtype
    out = product.var.type.dtype
    if min(left.get_bit(), right.get_bit()) < 8 or depth % 16:
        return None
    align_m = handler.get_l0c_m_alignment(out)
    block = max(16, _BLOCK_BYTES // right.get_byte())
    need = scalars.align(rows, align_m) * scalars.align(cols, block) * out.get_byte()
    if need <= handler.get_l0c_capacity_bytes():
        return None
    config = L0TileConfig(
        M=rows, N=cols, K=depth,
        l0a_bytes=handler.get_l0a_capacity_bytes(),
        l0b_bytes=handler.get_l0b_capacity_bytes(),
        l0c_bytes=handler.get_l0c_capacity_bytes(),
        bytes_a=left.get_byte(), bytes_b=right.get_byte(), bytes_c=out.get_byte(),
        l0c_align_m=align_m, min_n=block, align_n=block, box_align_n=block,
        allow_k_boundary=True, c_read=True,
    )  # fmt: skip
    try:
        tile = choose_l0_tile(config)
    except ValueError:
        return None
    return SplitK(loop, lefts, rights, rows, cols, tile.m, tile.n, block)


def emit_split_k(split: SplitK, placement: StorePlacement) -> tuple[list[Stmt], Var]:
    """(statements, last version of the tensor): per output tile an accumulator, the loop on narrow panels, a store."""
    code = Code(split.loop.span)
    into: Expr = placement.start(code)
    for number, (row, col, m, n) in enumerate(split.tiles):
        value = _Window(split, code, number, row, col, m, n).emit()
        into = placement.put(code, f"{placement.base}_t{number}", value, row, col, into)
    return code.stmts, into


class _Window:
    """The loop of one output tile."""

    def __init__(self, split: SplitK, code: Code, number: int, row: int, col: int, m: int, n: int) -> None:
        self._split, self._code, self._suffix = split, code, f"_mn{number}"
        self._row, self._col, self._m, self._n = row, col, m, n
        self._map: dict[Var, Expr] = {}
        self._subst = Substitution(self._map)

    def emit(self) -> Var:
        """Append the accumulator and the loop; the loop's result."""
        loop, code = self._split.loop, self._code
        carry = loop.iter_args[0]
        dtype = next(s.var.type.dtype for s, c in iter_calls(loop.body) if c.op.name in PRODUCTS)
        width = scalars.align(self._n, self._split.block)
        init = code.create(f"{carry.name_hint}{self._suffix}_init", (self._m, width), dtype, MemorySpace.Acc)
        if width != self._n:
            valid = [init, const_index(self._m), const_index(self._n)]
            init = code.let(f"{init.name_hint}_v", code.call("tile.set_validshape", valid))
        arg = IterArg(carry.name_hint + self._suffix, init.type, init, carry.span)
        index = self._fresh(loop.loop_var, loop.loop_var.type)
        self._map[carry] = arg
        body = self._stmts(loop.body)
        result = self._fresh(loop.return_vars[0], body[-1].value[0].type)
        code.stmts.append(
            replace(loop, loop_var=index, iter_args=(arg,), body=seq(body), return_vars=(result,))
        )  # fmt: skip
        return result

    def _fresh(self, var: Var, kind) -> Var:
        new = self._map[var] = Var(var.name_hint + self._suffix, kind, var.span)
        return new

    def _stmts(self, body: Stmt) -> list[Stmt]:
        return [self._stmt(s) for s in flatten_to_stmts(body)]

    def _stmt(self, stmt: Stmt) -> Stmt:
        if type(stmt) is YieldStmt:
            return replace(stmt, value=tuple(self._subst.visit_expr(v) for v in stmt.value))
        if type(stmt) is IfStmt:
            condition = self._subst.visit_expr(stmt.condition)
            then_body, else_body = self._stmts(stmt.then_body), self._stmts(stmt.else_body)
            phi = self._fresh(stmt.return_vars[0], then_body[-1].value[0].type)
            return replace(
                stmt, condition=condition, then_body=seq(then_body), else_body=seq(else_body), return_vars=(phi,)
            )  # fmt: skip
        value = self._value(stmt)
        return replace(stmt, var=self._fresh(stmt.var, value.type), value=value)

    def _value(self, stmt: AssignStmt) -> Expr:
        value = self._subst.visit_expr(stmt.value)
        if stmt.var in self._split.lefts:
            return self._load(value, (self._row, 0), (self._m, None), (self._m, None))
        if stmt.var in self._split.rights:
            width = scalars.align(self._n, self._split.block)
            return self._load(value, (0, self._col), (None, width), (None, self._n))
        if isinstance(value, Call) and value.op.name in PRODUCTS:
            return create_op_call(value.op.name, value.args, value.kwargs, value.span)
        return value

    def _load(self, call: Call, by: tuple[int, int], shape: tuple, valid: tuple) -> Call:
        """The load of a part; None keeps the extent of the whole."""
        whole = [const_value(d) for d in call.args[2].elements]
        at = MakeTuple(tuple(scalars.add(o, d) for o, d in zip(call.args[1].elements, by)))
        shapes = [extents([w if p is None else p for w, p in zip(whole, part)]) for part in (shape, valid)]
        new = create_op_call(call.op.name, [call.args[0], at, *shapes], call.kwargs, call.span)
        return replace(new, attrs=call.attrs)
