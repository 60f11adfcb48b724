"""Halving of vector statements along the split axis; cube statements keep their full width."""

from __future__ import annotations

from typing import Any

from pypto.errors import user_error
from pypto.ir.dtype import DataType
from pypto.ir.enums import MemorySpace, SplitMode
from pypto.ir.expr import (
    Add,
    Call,
    Expr,
    GlobalVar,
    Gt,
    IterArg,
    MakeTuple,
    Max,
    Min,
    Mul,
    Sub,
    Var,
    const_index,
    const_value,
)
from pypto.ir.node import replace
from pypto.ir.stmt import (
    AssignStmt,
    EvalStmt,
    ForStmt,
    IfStmt,
    Stmt,
    WhileStmt,
    YieldStmt,
    flatten_to_stmts,
    seq,
)
from pypto.ir.types import TileType
from pypto.ir.visitor import IRMutator
from pypto.ops.registry import create_op_call
from pypto.passes.lib.core_affinity import is_cube_space
from pypto.passes.lib.walk import yielded

_GENERATED = frozenset(("tile.ci", "tile.random"))
_SHAPES = {"tile.create": 0, "tile.full": 0, "tile.slice": 1, "tile.reshape": 1}


def _is_vector_tile(value: Expr) -> bool:
    return isinstance(value.type, TileType) and not is_cube_space(value.type.memory_space)


class Halver(IRMutator):
    """Rewrites a body for one lane; ``axis_of`` says along which axis a rewritten tile is halved."""

    def __init__(self, mode: SplitMode, lane: Var) -> None:
        super().__init__()
        self._mode = mode
        self._axis = 0 if mode is SplitMode.UP_DOWN else 1
        self._lane = lane
        self._pending: list[Stmt] = []
        self.axis_of: dict[Expr, int] = {}

    # -- walking ------------------------------------------------------------------------------------------------

    def body(self, body: Stmt) -> Stmt:
        outer, self._pending = self._pending, []
        old = flatten_to_stmts(body)
        new: list[Stmt] = []
        for stmt in old:
            result = self.visit_stmt(stmt)
            new.extend(self._pending)
            self._pending = []
            new.append(result)
        self._pending = outer
        if len(new) == len(old) and all(a is b for a, b in zip(new, old)):
            return body
        return seq(new, body.span)

    visit_seq_stmts = body

    def _let(self, name: str, value: Expr) -> Var:
        var = Var(name, value.type, value.span)
        self._pending.append(AssignStmt(var, value, value.span))
        return var

    def _half(self, extent: Expr, call: Call) -> Expr:
        size = const_value(extent)
        if size is None:
            raise user_error(
                f"{call.op.name}: the split axis has a runtime extent; a split kernel needs static tile shapes",
                span=call.span,
            )
        return const_index(-(-size // 2))

    def _offset(self, base: Expr, half: Expr) -> Expr:
        """``base + lane * half``."""
        step = Mul(self._lane, half, DataType.INDEX, base.span)
        return Add(base, step, DataType.INDEX, base.span)

    def _lane_valid(self, valid: Expr, extent: Expr, half: Expr) -> Expr:
        """What is valid of this lane's half: all of it, or ``clamp(valid - lane * half, 0, half)``."""
        size, whole = const_value(valid), const_value(extent)
        if size is not None and size == whole and whole % 2 == 0:
            return half
        index = DataType.INDEX
        rest = Sub(valid, Mul(self._lane, half, index), index)
        return Max(Min(rest, half, index), const_index(0), index)

    def _at(self, value: MakeTuple, axis: int, item: Expr) -> MakeTuple:
        return MakeTuple(tuple(item if i == axis else e for i, e in enumerate(value.elements)), value.span)

    # -- statements ---------------------------------------------------------------------------------------------

    def visit_assign_stmt(self, stmt: AssignStmt) -> Stmt:
        value = stmt.value
        if type(value) is not Call or isinstance(value.op, GlobalVar):
            new = self.visit_expr(value)
            if isinstance(value, Var) and new is not value and new in self.axis_of:
                return self._bind(stmt, new, self.axis_of[new])
            return self._rebuild(stmt, value=new, var=self.visit_def(stmt.var))
        if value.op.name == "tile.store":
            return self._store(stmt, value)
        new, axis = self._call(value, stmt.var.name_hint)
        return self._bind(stmt, new, axis)

    def visit_eval_stmt(self, stmt: EvalStmt) -> Stmt:
        if type(stmt.expr) is Call and not isinstance(stmt.expr.op, GlobalVar):
            return self._rebuild(stmt, expr=self._call(stmt.expr, "t")[0])
        return super().visit_eval_stmt(stmt)

    def _bind(self, stmt: AssignStmt, value: Expr, axis: int | None) -> Stmt:
        if axis is None:
            return self._rebuild(stmt, value=value, var=self.visit_def(stmt.var))
        kind = value.type
        if stmt.var.type.memref is not None and kind.memref is None:
            kind = replace(kind, memref=stmt.var.type.memref)
        var = Var(stmt.var.name_hint, kind, stmt.var.span)
        self.var_map[stmt.var] = var
        self.axis_of[var] = axis
        return replace(stmt, var=var, value=value)

    def _carried(self, iter_args) -> tuple:
        result = []
        for arg in iter_args:
            init = self.visit_expr(arg.initValue)
            axis = self.axis_of.get(init)
            if axis is None:
                new = arg if init is arg.initValue else replace(arg, initValue=init)
            else:
                new = IterArg(arg.name_hint, init.type, init, arg.span)
                self.axis_of[new] = axis
            if new is not arg:
                self.var_map[arg] = new
            result.append(new)
        return tuple(result)

    def _results(self, variables, values) -> tuple:
        result = []
        for var, value in zip(variables, values):
            axis = self.axis_of.get(value)
            if axis is None:
                result.append(self.visit_def(var))
                continue
            new = Var(var.name_hint, value.type, var.span)
            self.var_map[var] = new
            self.axis_of[new] = axis
            result.append(new)
        return tuple(result)

    def visit_for_stmt(self, stmt: ForStmt) -> Stmt:
        bounds = {name: self.visit_expr(getattr(stmt, name)) for name in ("start", "stop", "step")}
        iter_args = self._carried(stmt.iter_args)
        body = self.body(stmt.body)
        results = self._results(stmt.return_vars, iter_args)
        return self._rebuild(stmt, **bounds, iter_args=iter_args, body=body, return_vars=results)

    def visit_while_stmt(self, stmt: WhileStmt) -> Stmt:
        iter_args = self._carried(stmt.iter_args)
        condition = self.visit_expr(stmt.condition)
        body = self.body(stmt.body)
        results = self._results(stmt.return_vars, iter_args)
        return self._rebuild(stmt, iter_args=iter_args, condition=condition, body=body, return_vars=results)

    def visit_if_stmt(self, stmt: IfStmt) -> Stmt:
        condition = self.visit_expr(stmt.condition)
        then_body = self.body(stmt.then_body)
        else_body = None if stmt.else_body is None else self.body(stmt.else_body)
        values = yielded(then_body)
        results = self._results(stmt.return_vars, values) if values else stmt.return_vars
        return self._rebuild(
            stmt, condition=condition, then_body=then_body, else_body=else_body, return_vars=results
        )  # fmt: skip

    # -- calls --------------------------------------------------------------------------------------------------

    def _call(self, call: Call, name: str) -> tuple[Expr, int | None]:
        """The call for one lane, and the axis its result is halved along (None: not halved)."""
        args = [self.visit_expr(a) for a in call.args]
        op = call.op.name
        if op == "tile.move":
            return self._move(call, args, name)
        if not _is_vector_tile(call) and not any(a in self.axis_of for a in args):
            return self._rebuild(call, args=tuple(args), attrs=self.visit_attrs(call.attrs)), None
        if op == "tile.load":
            return self._load(call, args)
        halved = {self.axis_of[a] for a in args if a in self.axis_of}
        self._check(call, args)
        if op == "tile.reshape":
            return self._reshape(call, args)
        if op in _SHAPES and isinstance(call.type, TileType):
            return self._shaped(call, args, halved)
        if op in _GENERATED and const_value(call.type.shape[self._axis]) != 1:
            raise user_error(
                f"{op} fills a sequence along the whole tile and does not allow automatic split-axis halving; compute "
                "it per lane in a pl.split_aiv region",
                span=call.span,
            )
        if not halved:
            return self._rebuild(call, args=tuple(args), attrs=self.visit_attrs(call.attrs)), None
        if is_cube_space(getattr(call.type, "memory_space", None)):
            raise user_error(f"{op} on the cube core reads a half of a vector tile; gather it first", span=call.span)
        return self._recreated(call, args)

    def _recreated(self, call: Call, args: list[Expr], kwargs: dict[str, Any] | None = None) -> tuple[Expr, int | None]:
        new = create_op_call(call.op.name, args, call.kwargs if kwargs is None else kwargs, call.span)
        kind = new.type
        if isinstance(kind, TileType) and isinstance(call.type, TileType) and kind.memory_space is None:
            kind = replace(kind, memory_space=call.type.memory_space)
        new = replace(new, attrs=self.visit_attrs(call.attrs) or {}, type=kind)
        if not isinstance(kind, TileType):
            return new, None
        changed = [i for i, (a, b) in enumerate(zip(kind.shape, call.type.shape)) if const_value(a) != const_value(b)]
        return new, changed[0] if changed else None

    def _check(self, call: Call, args: list[Expr]) -> None:
        op = call.op.name.removeprefix("tile.")
        for arg in args:
            axis = self.axis_of.get(arg)
            if axis is None:
                continue
            reduces = (op.startswith("row_") and not op.startswith("row_expand") and axis == 1) or (
                op.startswith("col_") and not op.startswith("col_expand") and axis == 0
            )
            if reduces or op in ("sum", "max", "min"):
                if reduces or call.kwargs.get("axis", axis) == axis:
                    raise user_error(
                        f"tile.{op} reduces on the split axis: each lane holds only half of the values. Split the "
                        "other axis, or reduce in a pl.split_aiv(mode=NONE) region",
                        span=call.span,
                    )
            if op.startswith("transpose"):
                raise user_error(
                    f"tile.{op} swaps the split axis; transpose on the cube side or split the other axis",
                    span=call.span,
                )

    def _load(self, call: Call, args: list[Expr]) -> tuple[Expr, int | None]:
        axis = self._axis
        extent = args[2].elements[-2:][axis] if len(args[2].elements) >= 2 else None
        if extent is None or const_value(extent) == 1:
            return self._rebuild(call, args=tuple(args)), None
        position = len(args[2].elements) - 2 + axis
        half = self._half(extent, call)
        args = [
            args[0],
            self._at(args[1], position, self._offset(args[1].elements[position], half)),
            self._at(args[2], position, half),
            self._at(args[3], position, self._lane_valid(args[3].elements[position], extent, half)),
        ]
        new, changed = self._recreated(call, args)
        return new, axis if changed is None else changed

    def _move(self, call: Call, args: list[Expr], name: str) -> tuple[Expr, int | None]:
        source = args[0]
        to_cube = is_cube_space(call.kwargs.get("target_memory"))
        from_cube = isinstance(source.type, TileType) and is_cube_space(source.type.memory_space)
        if from_cube and not to_cube:
            if const_value(source.type.shape[self._axis]) == 1:
                return self._rebuild(call, args=tuple(args)), None
            shard = create_op_call("tile.aiv_shard", [source], {"split": int(self._mode)}, call.span)
            if shard.type.memory_space is None:
                shard = replace(shard, type=replace(shard.type, memory_space=MemorySpace.Vec))
            return shard, self._axis
        if to_cube and not from_cube:
            axis = self.axis_of.get(source)
            if axis is None:
                if const_value(source.type.shape[self._axis]) != 1:
                    raise user_error(
                        "a full-width vector operand crosses to the cube core in a split kernel", span=call.span
                    )
                return self._rebuild(call, args=tuple(args)), None
            gathered = create_op_call("tile.aic_gather", [source], {"split": axis + 1}, call.span)
            if gathered.type.memory_space is None:
                gathered = replace(gathered, type=replace(gathered.type, memory_space=MemorySpace.Mat))
            whole = self._let(f"{name}_mat", gathered)
            return self._recreated(call, [whole])[0], None
        if source in self.axis_of:
            return self._recreated(call, args)
        return self._rebuild(call, args=tuple(args)), None

    def _reshape(self, call: Call, args: list[Expr]) -> tuple[Expr, int | None]:
        axis = self.axis_of.get(args[0])
        if axis is None:
            return self._rebuild(call, args=tuple(args)), None
        source = [const_value(d) for d in call.args[0].type.shape]
        target = [const_value(d) for d in args[1].elements]
        if source == target:
            new_axis = axis
        elif axis == 0 or source[0] == 1:
            # Row-major halves are contiguous: they stay halves along the first axis that is longer than one.
            new_axis = 0 if target[0] != 1 else 1
        else:
            new_axis = None
        if new_axis is None or target[new_axis] % 2:
            raise user_error(
                f"tile.reshape {source} -> {target} moves the split axis; reshape before the split or keep the axis",
                span=call.span,
            )
        shape = self._at(args[1], new_axis, const_index(target[new_axis] // 2))
        return self._recreated(call, [args[0], shape, *args[2:]])[0], new_axis

    def _shaped(self, call: Call, args: list[Expr], halved: set[int]) -> tuple[Expr, int | None]:
        """Creators and slices: the shape operand is halved along the axis."""
        axis = next(iter(halved), self._axis)
        index = _SHAPES[call.op.name]
        extent = args[index].elements[axis]
        if const_value(extent) == 1:
            return self._rebuild(call, args=tuple(args)), None
        if call.op.name == "tile.slice":
            if args[0] not in self.axis_of:
                return self._rebuild(call, args=tuple(args)), None
            whole = call.args[0].type.shape[axis]
            if const_value(extent) != const_value(whole):
                raise user_error(
                    "tile.slice takes a part of the split axis; slice before the split, or slice the other axis",
                    span=call.span,
                )
        half = self._half(extent, call)
        args[index] = self._at(args[index], axis, half)
        return self._recreated(call, args)[0], axis

    def _store(self, stmt: AssignStmt, call: Call) -> Stmt:
        args = [self.visit_expr(a) for a in call.args]
        axis = self.axis_of.get(args[0])
        if axis is None:
            return self._rebuild(stmt, value=self._rebuild(call, args=tuple(args)), var=self.visit_def(stmt.var))
        kind = args[0].type
        half = kind.shape[axis]
        position = len(args[1].elements) - 2 + axis
        args[1] = self._at(args[1], position, self._offset(args[1].elements[position], half))
        if len(args) > 3:
            args[3] = self._at(args[3], position, half)
        new = replace(create_op_call("tile.store", args, call.kwargs, call.span), attrs=call.attrs)
        valid = kind.valid_shape[axis]
        if const_value(valid) is not None:
            return replace(stmt, value=new, var=self.visit_def(stmt.var))
        # An empty lane stores nothing.
        inner = Var(stmt.var.name_hint, new.type, stmt.span)
        condition = Gt(valid, const_index(0), DataType.BOOL, stmt.span)
        body = seq([AssignStmt(inner, new, stmt.span), YieldStmt((inner,), stmt.span)])
        return IfStmt(condition, body, YieldStmt((args[2],), stmt.span), (self.visit_def(stmt.var),), stmt.span)
