"""Bulk and scalar stores to one tensor take different hardware paths: avoid the mix where possible, else refuse it."""

from __future__ import annotations

from pypto.errors import user_error
from pypto.ir.enums import ForKind
from pypto.ir.expr import Call, ConstFloat, ConstInt, Expr, GlobalVar, MakeTuple, Var, const_index, const_value
from pypto.ir.node import replace
from pypto.ir.program import Function
from pypto.ir.stmt import AssignStmt, ForStmt, IfStmt, ScopeStmt, Stmt, WhileStmt, flatten_to_stmts, seq
from pypto.ir.types import TensorType
from pypto.ops.registry import create_op_call
from pypto.passes.lib.op_facts import VIEWS, in_place_arg
from pypto.passes.lib.rewrite import rebuild_lists, with_body
from pypto.passes.lib.uses import count_reads
from pypto.passes.lib.walk import iter_calls, iter_stmts, stmt_call, yielded

_BULK = frozenset(("tensor.assemble", "tile.store"))
_ROW_ALIGNMENT = 32


def check_store_coherence(function: Function) -> None:
    """Raise ``ValueError`` when one global tensor is written by bulk stores and by ``tensor.write``."""
    names = [c.op.name for _, c in iter_calls(function.body)]
    if "tensor.write" not in names or not _BULK & set(names):
        return
    stores = _Stores(function)
    stores.walk(function.body)
    for root, scalar in stores.scalar.items():
        if root in stores.bulk:
            raise user_error(
                f"kernel '{function.name}' mixes MTE3 and scalar stores on tensor '{root.name_hint}': bulk stores and "
                "pl.write go through different caches and may overwrite each other. Build the value in a local tile "
                "and store it once, or write every element with pl.write",
                span=scalar,
            )


class _Stores:
    """Roots of written global tensors; a created tensor is local and does not count."""

    def __init__(self, function: Function) -> None:
        self._root: dict[Var, Var] = {p: p for p in function.params if isinstance(p.type, TensorType)}
        self.bulk: set[Var] = set()
        self.scalar: dict[Var, object] = {}

    def walk(self, body: Stmt | None) -> None:
        for stmt in flatten_to_stmts(body):
            kind = type(stmt)
            if kind is ForStmt or kind is WhileStmt:
                for arg, result in zip(stmt.iter_args, stmt.return_vars):
                    self._alias(arg, arg.initValue)
                    self._alias(result, arg.initValue)
                self.walk(stmt.body)
            elif kind is IfStmt:
                for branch in (stmt.then_body, stmt.else_body):
                    self.walk(branch)
                    for var, value in zip(stmt.return_vars, yielded(branch)):
                        self._alias(var, value)
            elif isinstance(stmt, ScopeStmt):
                self.walk(stmt.body)
            else:
                self._simple(stmt)

    def _alias(self, var: Var, value: Expr) -> None:
        root = self._root.get(value) if isinstance(value, Var) else None
        if root is not None:
            self._root[var] = root

    def _simple(self, stmt: Stmt) -> None:
        call = stmt_call(stmt)
        if call is None or isinstance(call.op, GlobalVar):
            if type(stmt) is AssignStmt:
                self._alias(stmt.var, stmt.value)
            return
        index = 0 if call.op.name in VIEWS or call.op.name == "tensor.write" else in_place_arg(call)
        target = call.args[index] if index is not None and index < len(call.args) else None
        root = self._root.get(target) if isinstance(target, Var) else None
        if root is None:
            return
        if call.op.name in _BULK:
            self.bulk.add(root)
        elif call.op.name == "tensor.write":
            self.scalar.setdefault(root, call.span)
        if type(stmt) is AssignStmt and isinstance(stmt.var.type, TensorType):
            self._root[stmt.var] = root


def use_bulk_stores(function: Function) -> Function:
    """Turn constant scalar fills into ``full`` + ``assemble``, and updates of a full initialisation into local ones."""
    if not any(c.op.name == "tensor.write" for _, c in iter_calls(function.body)):
        return function
    function = with_body(function, rebuild_lists(function.body, _fill_loops))
    return _stage_updates(function)


# -- constant fills -------------------------------------------------------------------------------------------------


def _fill_loops(stmts: list[Stmt]) -> list[Stmt]:
    result: list[Stmt] = []
    changed = False
    for stmt in stmts:
        filled = _fill(stmt) if type(stmt) is ForStmt else None
        changed = changed or filled is not None
        result.extend([stmt] if filled is None else filled)
    return result if changed else stmts


def _fill(loop: ForStmt) -> list[Stmt] | None:
    """Bulk form of a zero-based unit-stride loop of constant writes over one contiguous, aligned region."""
    trips = const_value(loop.stop)
    if (
        loop.kind is not ForKind.Sequential
        or const_value(loop.start) != 0
        or const_value(loop.step) != 1
        or not trips
        or loop.attrs
    ):
        return None
    writes = [_write(s) for s in flatten_to_stmts(loop.body) if not _is_yield(s)]
    if not writes or any(w is None for w in writes) or len(loop.iter_args) > len(writes):
        return None
    carried = {arg: arg.initValue for arg in loop.iter_args}
    result: list[Stmt] = []
    current: dict[Var, Expr] = {}
    for call in writes:
        target, indices, value = call.args
        kind = target.type
        if not isinstance(value, (ConstInt, ConstFloat)) or not isinstance(indices, MakeTuple):
            return None
        axis = next((i for i, e in enumerate(indices.elements) if e is loop.loop_var), None)
        if axis is None or any(const_value(e) != 0 for i, e in enumerate(indices.elements) if i != axis):
            return None
        # Only the last axis varies: the region is one contiguous row.
        if axis != len(kind.shape) - 1 or (trips * kind.dtype.get_bit() // 8) % _ROW_ALIGNMENT:
            return None
        shape = MakeTuple(tuple(const_index(trips if i == axis else 1) for i in range(len(kind.shape))))
        zeros = MakeTuple(tuple(const_index(0) for _ in kind.shape))
        full = create_op_call("tensor.full", [shape, value], {"dtype": kind.dtype}, call.span)
        tile = Var("fill", full.type, call.span)
        destination = current.get(target, carried.get(target, target))
        if not isinstance(destination, Var) or (loop.iter_args and target not in carried):
            return None
        stored = create_op_call("tensor.assemble", [destination, tile, zeros], {}, call.span)
        name = Var(destination.name_hint, stored.type, call.span)
        current[target] = name
        result += [AssignStmt(tile, full, call.span), AssignStmt(name, stored, call.span)]
    for arg, var in zip(loop.iter_args, loop.return_vars):
        result.append(AssignStmt(var, current.get(arg, arg.initValue), loop.span))
    return result


def _is_yield(stmt: Stmt) -> bool:
    from pypto.ir.stmt import YieldStmt

    return type(stmt) is YieldStmt


def _write(stmt: Stmt) -> Call | None:
    call = stmt_call(stmt)
    return call if call is not None and call.op.name == "tensor.write" else None


# -- staged updates -------------------------------------------------------------------------------------------------


def _stage_updates(function: Function) -> Function:
    """A full initialisation from a private tile, then scalar updates only: update the tile, store it last."""
    stmts = flatten_to_stmts(function.body)
    values = {s.var: s.value for s in stmts if type(s) is AssignStmt}
    reads = count_reads(function)
    for position, stmt in enumerate(stmts):
        call = stmt_call(stmt)
        if type(stmt) is not AssignStmt or call is None or call.op.name != "tensor.assemble":
            continue
        out, full, offsets = call.args
        made = values.get(full) if isinstance(full, Var) else None
        if not (isinstance(made, Call) and made.op.name == "tensor.full" and reads[full] == 1):
            continue
        if out not in function.params or not _covers(out.type, full.type, offsets):
            continue
        staged = _staged_tail(stmts[position + 1 :], {stmt.var, out}, full, out)
        if staged is None:
            continue
        tail, final = staged
        store = create_op_call("tensor.assemble", [out, final, offsets], dict(call.kwargs), stmt.span)
        saved = AssignStmt(Var(stmt.var.name_hint, store.type, stmt.span), store, stmt.span)
        last = tail[-1] if tail else None
        returns = last is not None and hasattr(last, "value") and not isinstance(last, AssignStmt)
        body = [*stmts[:position], *tail[:-1], saved, last] if returns else [*stmts[:position], *tail, saved]
        return replace(function, body=seq(body, function.body.span))
    return function


def _covers(target: TensorType, source: TensorType, offsets: Expr) -> bool:
    extents = [(const_value(a), const_value(b)) for a, b in zip(target.shape, source.shape)]
    zero = isinstance(offsets, MakeTuple) and all(const_value(e) == 0 for e in offsets.elements)
    return zero and len(target.shape) == len(source.shape) and all(a is not None and a == b for a, b in extents)


def _staged_tail(
    stmts: list[Stmt], names: set[Var], local: Var, out: Var
) -> tuple[list[Stmt], Var] | None:  # fmt: skip
    """The statements with writes of ``names`` redirected to ``local``; None when they are used otherwise."""
    from pypto.ir.stmt import ReturnStmt
    from pypto.passes.lib.rewrite import Substitution

    writes = 0
    for stmt in stmts:
        for node in iter_stmts(stmt):
            call = stmt_call(node)
            if isinstance(node, (ForStmt, WhileStmt)) and any(a.initValue in names for a in node.iter_args):
                names = names | {a for a in node.iter_args if a.initValue in names}
                names |= {r for a, r in zip(node.iter_args, node.return_vars) if a in names}
            if call is not None and call.op.name == "tensor.write" and call.args[0] in names:
                writes += 1
                if type(node) is AssignStmt:
                    names = names | {node.var}
                continue
            if call is not None and any(isinstance(a, Var) and a in names for a in call.args):
                return None
    if not writes:
        return None
    redirect = Substitution({n: local for n in names if n is out or (n.type == out.type and _external(n, stmts))})
    tail: list[Stmt] = []
    for stmt in stmts:
        if type(stmt) is ReturnStmt:
            values = tuple(out if isinstance(v, Var) and v in names else v for v in stmt.value)
            tail.append(replace(stmt, value=values))
        else:
            tail.append(redirect.visit_stmt(stmt))
    final = local
    for stmt in tail:
        for var, origin in _results(stmt):
            if origin is final:
                final = var
    return tail, final


def _external(var: Var, stmts: list[Stmt]) -> bool:
    """Defined before ``stmts``."""
    from pypto.passes.lib.walk import defined_vars

    return not any(var is v for s in stmts for n in iter_stmts(s) for v in defined_vars(n))


def _results(stmt: Stmt) -> list[tuple[Var, Expr]]:
    """(result, value it continues) of a top-level statement."""
    if isinstance(stmt, (ForStmt, WhileStmt)):
        return [(r, a.initValue) for a, r in zip(stmt.iter_args, stmt.return_vars)]
    call = stmt_call(stmt)
    if type(stmt) is AssignStmt and call is not None and call.op.name == "tensor.write":
        return [(stmt.var, call.args[0])] if isinstance(stmt.var.type, TensorType) else []
    return []
