"""Lowering one InCore body: entry loads, converted operators through control flow, exit stores."""

from __future__ import annotations

from pypto.errors import InternalError, user_error
from pypto.ir.enums import ParamDirection
from pypto.ir.expr import Call, Expr, GlobalVar, IterArg, MakeTuple, Var, const_index
from pypto.ir.node import replace
from pypto.ir.program import Function
from pypto.ir.stmt import (
    AssignStmt,
    EvalStmt,
    ForStmt,
    IfStmt,
    ReturnStmt,
    ScopeStmt,
    Stmt,
    WhileStmt,
    YieldStmt,
    flatten_to_stmts,
    seq,
)
from pypto.ir.types import TensorType, TileType, Type
from pypto.ir.visitor import IRMutator
from pypto.passes.lib.naming import base_name
from pypto.passes.tile.conversions.plan import Plan, make_plan
from pypto.passes.tile.conversions.registry import ConversionContext, find_conversion

#: Tensor operators that stay what they are in a kernel: metadata and scalar reads of global memory.
_KEPT = frozenset(("tensor.view", "tensor.dim", "tensor.alloc", "tensor.as_layout"))


def lower_body(function: Function) -> tuple[Function, list[Var]]:
    """The function on tiles, and the Out parameters that were appended for its results."""
    plan = make_plan(function)
    if not plan.has_work:
        return function, []
    return _Lowering(function, plan).run()


class _Lowering(IRMutator):
    """``var_map`` maps tensor variables to the tiles that hold them; ``_entry`` maps loaded parameters."""

    def __init__(self, function: Function, plan: Plan) -> None:
        super().__init__()
        self._function = function
        self._plan = plan
        self._entry: dict[Var, Var] = {}
        self._pending: list[Stmt] = []
        self._outs: list[Var] = []

    def run(self) -> tuple[Function, list[Var]]:
        function = self._function
        self._direct_outputs()
        entry: list[Stmt] = []
        for param in function.params:
            if param in self._plan.entry_loads:
                ctx = ConversionContext(param.span, None)
                load = ctx.load_call(param)
                tile = Var(base_name(param.name_hint) + "__tile", load.type, param.span)
                self._entry[param] = tile
                entry.append(AssignStmt(tile, load, param.span))
        stmts = self._list(flatten_to_stmts(function.body))
        stmts = self._with_exit_stores(stmts)
        outs = self._outs
        new = replace(
            function,
            params=(*function.params, *outs),
            param_directions=[*function.param_directions, *([ParamDirection.Out] * len(outs))],
            body=seq([*entry, *stmts], function.body.span),
        )
        return new, outs

    # -- results ------------------------------------------------------------------------------------------------

    def _direct_outputs(self) -> None:
        """Buffers that a returned loop fills piece by piece are the new Out parameters themselves."""
        for position, (buffer, kind) in self._plan.direct_outputs.items():
            out = Var(f"ret{position}__out", kind, buffer.span)
            self._outs.append(out)
            self.var_map[buffer] = out

    def _with_exit_stores(self, stmts: list[Stmt]) -> list[Stmt]:
        if not stmts or type(stmts[-1]) is not ReturnStmt:
            return stmts
        last = stmts[-1]
        values: list[Expr] = []
        stores: list[Stmt] = []
        for position, value in enumerate(last.value):
            declared = self._declared(position, value, last)
            if isinstance(value.type, TileType) and isinstance(declared, TensorType):
                out = Var(f"ret{position}__out", declared, value.span)
                self._outs.append(out)
                ctx = ConversionContext(last.span, None)
                zeros = MakeTuple(tuple(const_index(0) for _ in declared.shape))
                value = ctx.emit(f"ret{position}__store", "tile.store", [value, zeros, out])
                stores.extend(ctx.stmts)
            values.append(value)
        if not stores:
            return stmts
        return [*stmts[:-1], *stores, replace(last, value=tuple(values))]

    def _declared(self, position: int, value: Expr, last: ReturnStmt) -> Type | None:
        """The annotated type of a returned value; a parameter that is returned needs none."""
        types = self._function.return_types
        if position < len(types):
            return types[position]
        if isinstance(value.type, TileType):
            raise user_error(
                f"kernel '{self._function.name}' returns a value of its own but declares no type for it; write "
                "'-> pl.Tensor[[...], dtype]' after its parameters",
                span=last.span,
            )
        return None

    # -- statements ---------------------------------------------------------------------------------------------

    def _list(self, stmts: list[Stmt]) -> list[Stmt]:
        outer, self._pending = self._pending, []
        result: list[Stmt] = []
        for stmt in stmts:
            new = self._stmt(stmt)
            result.extend(self._pending)
            self._pending = []
            if new is not None:
                result.append(new)
        self._pending = outer
        return result

    def _body(self, body: Stmt) -> Stmt:
        old = flatten_to_stmts(body)
        new = self._list(old)
        same = len(new) == len(old) and all(a is b for a, b in zip(new, old))
        return body if same else seq(new, body.span)

    def _stmt(self, stmt: Stmt) -> Stmt | None:
        kind = type(stmt)
        if kind is AssignStmt:
            return self._assign(stmt)
        if kind is EvalStmt:
            call = stmt.expr
            if type(call) is Call and not isinstance(call.op, GlobalVar):
                value = self._convert(call, None)
                return stmt if value is call else replace(stmt, expr=value) if isinstance(value, Call) else None
            return self.visit_stmt(stmt)
        if kind is IfStmt:
            return self._if(stmt)
        if kind is ForStmt or kind is WhileStmt:
            return self._loop(stmt)
        if isinstance(stmt, ScopeStmt):
            body = self._body(stmt.body)
            return self._rebuild(stmt, body=body, attrs=self.visit_attrs(stmt.attrs))
        return self.visit_stmt(stmt)

    def _assign(self, stmt: AssignStmt) -> Stmt | None:
        value = stmt.value
        if stmt.var in self.var_map and stmt.var in self._plan.direct_buffers:
            return None  # the created buffer is an Out parameter now
        if type(value) is Call and not isinstance(value.op, GlobalVar):
            new = self._convert(value, stmt.var)
        elif isinstance(value, Var) and value in self._entry and stmt.var not in self._plan.global_targets:
            new = self._entry[value]
        else:
            new = self.visit_expr(value)
        if new is value:
            return self.visit_stmt(stmt)
        return self._bind(stmt, new)

    def _bind(self, stmt: AssignStmt, value: Expr) -> Stmt:
        old = stmt.var
        kind = value.type
        if isinstance(kind, (TileType, TensorType)) and type(old.type) is TensorType:
            suffix = "" if isinstance(value, Var) and not isinstance(kind, TileType) else "__tile"
            new = Var(base_name(old.name_hint) + suffix if suffix else old.name_hint, kind, old.span)
            self.var_map[old] = new
            return replace(stmt, var=new, value=value)
        return replace(stmt, value=value, var=self.visit_def(old))

    def _convert(self, call: Call, result: Var | None) -> Expr:
        """The value that replaces an operator call; statements it needs go to ``_pending``."""
        name = call.op.name
        conversion = find_conversion(name) if name.startswith(("tensor.", "pld.tensor.")) else None
        if conversion is None:
            return self._unconverted(call)
        args = [self.visit_expr(a) for a in call.args]
        if not conversion.loads_itself:
            args = [self._as_tile(a) for a in args]
        elif name == "tensor.assemble":
            args[1] = self._entry.get(args[1], args[1]) if isinstance(args[1], Var) else args[1]
        ctx = ConversionContext(call.span, result, result is not None and result in self._plan.wants_mat)
        value = conversion.rule(ctx, args, dict(call.kwargs), call)
        self._pending.extend(ctx.stmts)
        if isinstance(value, Call) and value.op.name == name and all(a is b for a, b in zip(value.args, call.args)):
            return call
        if isinstance(value, Call) and call.attrs and not value.attrs:
            value = replace(value, attrs=self.visit_attrs(call.attrs))
        return value

    def _unconverted(self, call: Call) -> Expr:
        name = call.op.name
        if name == "tensor.dim" and isinstance(self.visit_expr(call.args[0]).type, TileType):
            axis = call.args[1].value
            return self.visit_expr(call.args[0]).type.shape[axis]
        if name == "tensor.view":
            source = self.visit_expr(call.args[0])
            if isinstance(source.type, TileType):
                raise user_error(
                    "tensor.view in a kernel needs a tensor in global memory, but its operand is the result of an op "
                    "lowered to Tile; use pl.reshape for values on chip",
                    span=call.span,
                )
        elif name.startswith("tensor.") and name not in _KEPT:
            raise InternalError(f"operator '{name}' has no registered tile conversion", span=call.span)
        return self.visit_expr(call)

    def _as_tile(self, value: Expr) -> Expr:
        """A tensor operand of an elementwise rule, on chip."""
        if not isinstance(value.type, TensorType):
            return value
        if value in self._entry:
            return self._entry[value]
        ctx = ConversionContext(value.span, None)
        name = base_name(value.name_hint) if isinstance(value, Var) else "t"
        tile = ctx.tile(value, f"{name}__tile")
        self._pending.extend(ctx.stmts)
        return tile

    # -- control flow -------------------------------------------------------------------------------------------

    def _if(self, stmt: IfStmt) -> Stmt:
        condition = self.visit_expr(stmt.condition)
        tiles = [v in self._plan.tiles for v in stmt.return_vars]
        then_body = self._with_tiles(stmt.then_body, tiles)
        else_body = None if stmt.else_body is None else self._with_tiles(stmt.else_body, tiles)
        results = []
        then_values = _values(then_body)
        for index, var in enumerate(stmt.return_vars):
            kind = then_values[index].type if index < len(then_values) else var.type
            results.append(self._retyped(var, kind))
        return self._rebuild(
            stmt, condition=condition, then_body=then_body, else_body=else_body, return_vars=tuple(results)
        )

    def _with_tiles(self, body: Stmt, tiles: list[bool]) -> Stmt:
        """A converted body whose yield gives tiles where the join is a tile."""
        new = self._body(body)
        stmts = flatten_to_stmts(new)
        if not stmts or type(stmts[-1]) is not YieldStmt or not any(tiles):
            return new
        last = stmts[-1]
        outer, self._pending = self._pending, []
        values = tuple(self._as_tile(v) if is_tile else v for v, is_tile in zip(last.value, tiles))
        extra, self._pending = self._pending, outer
        if all(a is b for a, b in zip(values, last.value)):
            return new
        return seq([*stmts[:-1], *extra, replace(last, value=values)], new.span)

    def _loop(self, stmt: ForStmt | WhileStmt) -> Stmt:
        fields: dict = {}
        if isinstance(stmt, ForStmt):
            for name in ("start", "stop", "step"):
                fields[name] = self.visit_expr(getattr(stmt, name))
            fields["attrs"] = self.visit_attrs(stmt.attrs)
        tiles = [arg in self._plan.tiles for arg in stmt.iter_args]
        iter_args = []
        for arg, is_tile in zip(stmt.iter_args, tiles):
            init = self.visit_expr(arg.initValue)
            if is_tile:
                init = self._as_tile(init)
            if init is arg.initValue:
                iter_args.append(arg)
                continue
            kind = init.type if isinstance(init.type, TileType) else arg.type
            new = IterArg(arg.name_hint, kind, init, arg.span)
            self.var_map[arg] = new
            iter_args.append(new)
        if isinstance(stmt, WhileStmt):
            fields["condition"] = self.visit_expr(stmt.condition)
        body = self._with_tiles(stmt.body, tiles)
        results = [self._retyped(var, arg.type) for var, arg in zip(stmt.return_vars, iter_args)]
        return self._rebuild(stmt, **fields, iter_args=tuple(iter_args), body=body, return_vars=tuple(results))

    def _retyped(self, var: Var, kind) -> Var:
        if isinstance(kind, TileType) and type(var.type) is TensorType:
            new = self.var_map[var] = Var(var.name_hint, kind, var.span)
            return new
        return self.visit_def(var)


def _values(body: Stmt) -> tuple[Expr, ...]:
    stmts = flatten_to_stmts(body)
    return stmts[-1].value if stmts and type(stmts[-1]) is YieldStmt else ()
