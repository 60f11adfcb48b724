"""Who reads the tiles of a function, as far as the placement of products depends on it."""

from __future__ import annotations

from collections import Counter

from pypto.ir.dtype import DataType
from pypto.ir.enums import ArgEffect
from pypto.ir.expr import Call, Expr, Var
from pypto.ir.program import Function
from pypto.ir.stmt import AssignStmt, IfStmt, Stmt, flatten_to_stmts
from pypto.ir.types import TensorType
from pypto.ops.unary import rounding_mode
from pypto.passes.lib.op_facts import arg_effect, in_place_arg
from pypto.passes.lib.uses import count_reads
from pypto.passes.lib.walk import iter_calls, yielded
from pypto.passes.tile.matmul_tiling.bias import repeatable_load
from pypto.passes.tile.matmul_tiling.problem import PRODUCTS, Product


class Consumers:
    """Reads of every variable, and the statements that load, convert and store tiles."""

    def __init__(self, function: Function) -> None:
        self._reads = count_reads(function)
        self._operands: Counter[Expr] = Counter()
        self._casts: dict[Expr, AssignStmt] = {}
        self._stores: dict[Expr, AssignStmt] = {}
        self._loads: dict[Expr, AssignStmt] = {}
        self._created: set[Expr] = set()
        for stmt, call in iter_calls(function.body):
            name = call.op.name
            if type(stmt) is not AssignStmt:
                continue
            if name in PRODUCTS:
                self._operands.update(call.args[i] for i in PRODUCTS[name][:2])
            elif name == "tile.cast":
                self._casts[call.args[0]] = stmt
            elif name == "tile.store":
                self._stores[call.args[0]] = stmt
            elif name == "tile.create":
                self._created.add(stmt.var)
            elif name == "tile.load":
                self._loads[stmt.var] = stmt

    def store(self, var: Var) -> AssignStmt | None:
        """The statement that stores ``var`` as a matrix, when nothing else reads it."""
        stmt = self._stores.get(var)
        if stmt is None or self._reads[var] != 1:
            return None
        return stmt if len(stmt.value.args) == 3 and len(stmt.value.args[1].elements) == 2 else None

    def fresh_accumulator(self, var: Expr) -> bool:
        """A created tile that has one reader."""
        return var in self._created and self._reads[var] == 1

    def cast(self, var: Var) -> AssignStmt | None:
        """The conversion of ``var``, when nothing else reads it."""
        return self._casts.get(var) if self._reads[var] == 1 else None

    def only_products_read(self, var: Var) -> bool:
        """Every reader is a product that takes ``var`` as a matrix."""
        return 0 < self._reads[var] == self._operands[var]

    def repeatable_load(self, var: Expr) -> AssignStmt | None:
        """The load of ``var``, when nothing else reads it and windows of it read the same values."""
        stmt = self._loads.get(var)
        return stmt if self._reads[var] == 1 and repeatable_load(stmt) else None


def narrows_like_accumulator(cast: AssignStmt) -> bool:
    """The accumulator's write path does the same conversion: FP32 to BF16 or FP16, ties to even."""
    call = cast.value
    return (
        call.args[0].type.dtype == DataType.FP32
        and call.kwargs["target_type"] in (DataType.BF16, DataType.FP16)
        and rounding_mode(call.kwargs["mode"]) == rounding_mode("rint")
    )


def may_wait(product: Product, store: AssignStmt, rest: list[Stmt]) -> bool:
    """``store`` is among ``rest`` and nothing before it overwrites an operand of the product."""
    operands = {id(product.lhs), id(product.rhs)}
    for stmt in rest:
        if type(stmt) is AssignStmt:
            if stmt.var is store.var:
                return True
            if isinstance(stmt.value, Call):
                target = in_place_arg(stmt.value)
                if target is not None and id(stmt.value.args[target]) in operands:
                    return False
    return False


def reads_only(stmts: list[Stmt]) -> bool:
    """Nothing in ``stmts`` writes a tensor, synchronises, or has a body."""
    return all(
        type(s) is AssignStmt
        and isinstance(s.value, Call)
        and s.value.op.name.startswith("tile.")
        and all(
            not isinstance(a.type, TensorType) or arg_effect(s.value, i) is ArgEffect.Read
            for i, a in enumerate(s.value.args)
        )
        for s in stmts
    )


def accumulators_of_first_products(stmt: IfStmt) -> dict[Var, Expr]:
    """Product that one branch yields -> the accumulator that the other branch updates and yields in its place."""
    if stmt.else_body is None:
        return {}
    ends = [_yielded_product(stmt.then_body), _yielded_product(stmt.else_body)]
    found: dict[Var, Expr] = {}
    for first, later in (ends, reversed(ends)):
        if first is not None and later is not None:
            if first.value.op.name == "tile.matmul" and later.value.op.name == "tile.matmul_acc":
                found[first.var] = later.value.args[0]
    return found


def _yielded_product(body: Stmt) -> AssignStmt | None:
    """The product whose result is the only value that a branch yields."""
    values = yielded(body)
    for stmt in flatten_to_stmts(body):
        if type(stmt) is AssignStmt and len(values) == 1 and stmt.var is values[0] and isinstance(stmt.value, Call):
            return stmt if stmt.value.op.name in PRODUCTS else None
    return None
