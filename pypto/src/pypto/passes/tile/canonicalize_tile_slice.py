"""CanonicalizeTileSlice: windows that an instruction cannot read in place become extracts."""

from __future__ import annotations

from pypto.arith import Analyzer
from pypto.errors import user_error
from pypto.ir.enums import MemorySpace, is_incore_type
from pypto.ir.expr import Call, ConstInt, Expr, GlobalVar, IterArg, MakeTuple, Mul, Var, const_value
from pypto.ir.node import replace
from pypto.ir.program import Function
from pypto.ir.stmt import (
    AssignStmt,
    EvalStmt,
    ForStmt,
    IfStmt,
    ScopeStmt,
    Stmt,
    WhileStmt,
    YieldStmt,
    flatten_to_stmts,
    seq,
)
from pypto.ir.types import TileType
from pypto.ir.visitor import IRMutator
from pypto.ops.registry import create_op_call
from pypto.passes.lib import scalars
from pypto.passes.lib.rewrite import rebuild_lists, with_body
from pypto.passes.lib.uses import count_reads
from pypto.passes.lib.walk import iter_calls
from pypto.passes.pass_ import function_pass
from pypto.passes.properties import IRProperty as P

_FORM = (P.SSAForm, P.SplitIncoreOrch, P.IncoreTileOps, P.TileOps2D, P.NormalizedStmtStructure)
_ALIGNMENT_BITS = 256
_BLOCK = 16
#: Product -> (lhs position, rhs position, accumulator position or None).
_PRODUCTS = {
    "tile.matmul": (0, 1, None),
    "tile.matmul_acc": (1, 2, 0),
    "tile.matmul_bias": (0, 1, None),
    "tile.matmul_mx": (0, 2, None),
    "tile.gemv": (0, 1, None),
    "tile.gemv_acc": (1, 2, 0),
    "tile.gemv_bias": (0, 1, None),
}
#: Operators that read a window wherever it starts.
_UNCONSTRAINED = frozenset(("tile.slice", "tile.extract"))


@function_pass("CanonicalizeTileSlice", required=_FORM, produced=_FORM)
def canonicalize_tile_slice(function: Function) -> Function:
    """Replace slices by extracts where the consumer needs its own tile, then drop slices nobody reads.

    Raises:
        ValueError: an accumulator window that is not contiguous in L0C.
    """
    if function.body is None or not is_incore_type(function.func_type):
        return function
    if not any(c.op.name == "tile.slice" for _, c in iter_calls(function.body)):
        return function
    rewriter = _Rewriter()
    new = with_body(function, rewriter.body(function.body))
    return new if new is function else _without_unused(new, set(rewriter.windows))


class _Window:
    """A slice seen from the tile it finally reads: base, row and column offset, shape."""

    __slots__ = ("base", "col", "row", "shape", "var")

    def __init__(self, var: Var, base: Var, row: Expr, col: Expr, shape: tuple[Expr, ...]) -> None:
        self.var, self.base, self.row, self.col, self.shape = var, base, row, col, shape


class _Rewriter(IRMutator):
    def __init__(self) -> None:
        super().__init__()
        self.windows: dict[Var, _Window] = {}
        self._constants: dict[Var, ConstInt] = {}
        self._analyzer = Analyzer()
        self._pending: list[Stmt] = []

    # -- walking ------------------------------------------------------------------------------------------------

    def body(self, body: Stmt) -> Stmt:
        outer, self._pending = self._pending, []
        old = flatten_to_stmts(body)
        new: list[Stmt] = []
        for stmt in old:
            result = self._stmt(stmt)
            new.extend(self._pending)
            self._pending = []
            new.append(result)
        self._pending = outer
        if len(new) == len(old) and all(a is b for a, b in zip(new, old)):
            return body
        return seq(new, body.span)

    def _stmt(self, stmt: Stmt) -> Stmt:
        kind = type(stmt)
        if kind is AssignStmt:
            return self._assign(stmt)
        if kind is EvalStmt:
            return self._rebuild(stmt, expr=self._value(stmt.expr))
        if kind is YieldStmt:
            return self._rebuild(stmt, value=tuple(self._aligned(v) for v in stmt.value))
        if kind is IfStmt:
            else_body = None if stmt.else_body is None else self.body(stmt.else_body)
            return self._rebuild(stmt, then_body=self.body(stmt.then_body), else_body=else_body)
        if kind is ForStmt:
            low, high = const_value(stmt.start), const_value(stmt.stop)
            if low is not None and high is not None and high > low:
                self._analyzer.bind(stmt.loop_var, low, high, allow_override=True)
            return self._loop(stmt)
        if kind is WhileStmt:
            return self._loop(stmt)
        if isinstance(stmt, ScopeStmt):
            return self._rebuild(stmt, body=self.body(stmt.body))
        return stmt

    def _loop(self, stmt: ForStmt | WhileStmt) -> Stmt:
        args = []
        for arg in stmt.iter_args:
            init = self._aligned(arg.initValue)
            if init is not arg.initValue:
                arg_new = IterArg(arg.name_hint, arg.type, init, arg.span)
                self.var_map[arg] = arg_new
                arg = arg_new
            args.append(arg)
        fields = {"condition": self.visit_expr(stmt.condition)} if isinstance(stmt, WhileStmt) else {}
        return self._rebuild(stmt, **fields, iter_args=tuple(args), body=self.body(stmt.body))

    def _assign(self, stmt: AssignStmt) -> Stmt:
        value = stmt.value
        if isinstance(value, ConstInt):
            self._constants[stmt.var] = value
        if isinstance(value, Var) and isinstance(value.type, TileType):
            return self._rebuild(stmt, value=self._aligned(value))
        new = self._rebuild(stmt, value=self._value(value))
        self._note_window(new)
        return new

    def _note_window(self, stmt: AssignStmt) -> None:
        call = stmt.value
        if not (isinstance(call, Call) and call.op.name == "tile.slice" and len(call.args) == 3):
            return
        base, shape, offsets = call.args
        if call.kwargs or not (isinstance(base, Var) and isinstance(offsets, MakeTuple) and len(offsets.elements) == 2):
            return
        row, col = (self._resolved(e) for e in offsets.elements)
        parent = self.windows.get(base)
        if parent is not None:
            base, row, col = parent.base, scalars.add(parent.row, row), scalars.add(parent.col, col)
        self.windows[stmt.var] = _Window(stmt.var, base, row, col, shape.elements)

    def _resolved(self, value: Expr) -> Expr:
        return self._constants.get(value, value) if isinstance(value, Var) else value

    # -- consumers ----------------------------------------------------------------------------------------------

    def _value(self, value: Expr) -> Expr:
        value = self.visit_expr(value)
        if not isinstance(value, Call) or isinstance(value.op, GlobalVar):
            return value
        name = value.op.name
        if name == "tile.extract":
            return self._extract_of_window(value)
        if name in _UNCONSTRAINED:
            return value
        args = list(value.args)
        positions = _PRODUCTS.get(name)
        for index, arg in enumerate(args):
            window = self.windows.get(arg) if isinstance(arg, Var) else None
            if window is None:
                continue
            space = window.base.type.memory_space
            if positions is not None and space is MemorySpace.Mat and index in positions[:2]:
                target = MemorySpace.Left if index == positions[0] else MemorySpace.Right
                args[index] = self._extract(window, target)
            elif positions is not None and space is MemorySpace.Acc and index == positions[2]:
                _check_accumulator(window, value)
            elif space is MemorySpace.Vec and name.startswith("tile.col_expand"):
                if not self._is_plain_band(window):
                    args[index] = self._extract(window, MemorySpace.Vec)
            elif space is MemorySpace.Vec and not self._is_aligned(window):
                args[index] = self._extract(window, MemorySpace.Vec)
        return value if all(a is b for a, b in zip(args, value.args)) else replace(value, args=tuple(args))

    def _extract_of_window(self, call: Call) -> Call:
        source = call.args[0]
        window = self.windows.get(source) if isinstance(source, Var) else None
        if window is None or window.base.type.memory_space is not MemorySpace.Mat:
            return call
        row = scalars.add(self._resolved(call.args[1]), window.row)
        col = scalars.add(self._resolved(call.args[2]), window.col)
        return replace(call, args=(window.base, row, col, *call.args[3:]))

    def _aligned(self, value: Expr) -> Expr:
        """A carried or aliased window, extracted when it does not start at an instruction boundary."""
        value = self.visit_expr(value)
        window = self.windows.get(value) if isinstance(value, Var) else None
        if window is None or window.base.type.memory_space is not MemorySpace.Vec or self._is_aligned(window):
            return value
        return self._extract(window, MemorySpace.Vec)

    def _extract(self, window: _Window, space: MemorySpace) -> Var:
        args = [window.base, window.row, window.col, MakeTuple(window.shape)]
        call = create_op_call("tile.extract", args, {"target_memory": space}, window.var.span)
        var = Var(f"{window.var.name_hint}_textract", call.type, window.var.span)
        self._pending.append(AssignStmt(var, call, window.var.span))
        return var

    # -- geometry -----------------------------------------------------------------------------------------------

    def _is_plain_band(self, window: _Window) -> bool:
        """Constant offsets and a window of one row or of whole rows."""
        if const_value(window.row) is None or const_value(window.col) is None:
            return False
        return const_value(window.shape[0]) == 1 or const_value(window.shape[1]) == const_value(
            window.base.type.shape[1]
        )

    def _is_aligned(self, window: _Window) -> bool:
        kind = window.base.type
        bits, cols = kind.dtype.get_bit(), kind.shape[1]
        start = 0
        if kind.memref is not None:
            offset = const_value(kind.memref.byte_offset_)
            if offset is None:
                return False
            start = offset * 8
        position = scalars.add(Mul(window.row, cols, cols.dtype) if const_value(window.row) is None
                               else scalars.mul(window.row, cols), window.col)  # fmt: skip
        fixed = const_value(position)
        if fixed is not None:
            return (start + fixed * bits) % _ALIGNMENT_BITS == 0
        known = self._analyzer.modular_set(position)
        step, base = known.coeff * bits, known.base * bits
        return step % _ALIGNMENT_BITS == 0 and (start + base) % _ALIGNMENT_BITS == 0


def _check_accumulator(window: _Window, call: Call) -> None:
    rows = const_value(window.base.type.shape[0])
    row, col = const_value(window.row), const_value(window.col)
    height, width = (const_value(d) for d in window.shape)
    if None in (rows, row, col, height, width):
        return
    full_height = row == 0 and height == rows
    one_block = col // _BLOCK == (col + width - 1) // _BLOCK
    if not (full_height or one_block):
        base_cols = const_value(window.base.type.shape[1])
        raise user_error(
            f"{call.op.name}: the accumulator '{window.var.name_hint}' is the [{height}, {width}] window at "
            f"[{row}, {col}] of a [{rows}, {base_cols}] tile, which is not contiguous in L0C's block layout; use one "
            "[rows, N*tiles] accumulator and slice its columns",
            span=call.span,
        )


def _without_unused(function: Function, candidates: set[Var]) -> Function:
    """Drop slices that nothing reads, until none is left."""
    while True:
        reads = count_reads(function)

        def unused(stmt: Stmt, reads=reads) -> bool:
            return (
                type(stmt) is AssignStmt
                and isinstance(stmt.value, Call)
                and stmt.value.op.name == "tile.slice"
                and stmt.var in candidates
                and not reads[stmt.var]
            )

        def drop(stmts: list[Stmt], unused=unused) -> list[Stmt]:
            kept = [s for s in stmts if not unused(s)]
            return kept if len(kept) != len(stmts) else stmts

        new = with_body(function, rebuild_lists(function.body, drop))
        if new is function:
            return function
        function = new
