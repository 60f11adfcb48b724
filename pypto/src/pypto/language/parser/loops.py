"""Loops: counted loops of every kind, while loops, carried values."""

from __future__ import annotations

import ast
from typing import Any

from pypto.ir.dtype import DataType
from pypto.ir.enums import ForKind
from pypto.ir.expr import ConstBool, ConstInt, Expr, IterArg, Var, const_index
from pypto.ir.stmt import ForStmt, WhileStmt, seq
from pypto.ir.types import ScalarType, UnknownType, scalar_type
from pypto.language.parser.base import ParserBase, YieldFrame
from pypto.language.parser.diagnostics import ErrorCode, ParserSyntaxError, ParserTypeError
from pypto.language.parser.type_consistency import type_text

_KINDS = {
    "pl.range": ForKind.Sequential,
    "pl.parallel": ForKind.Parallel,
    "pl.unroll": ForKind.Unroll,
    "pl.pipeline": ForKind.Pipeline,
}
_NOT_A_LOOP = (
    "For loop must use pl.range(), pl.parallel(), pl.unroll(), pl.pipeline(), pl.while_(), pl.spmd(), or pl.split_aiv()"
)


class LoopsMixin(ParserBase):
    """Parses ``for`` and ``while``."""

    def parse_for(self, node: ast.For) -> None:
        path = self.public_path(node.iter.func) if isinstance(node.iter, ast.Call) else None
        if node.orelse:
            raise self.unsupported("for ... else is not supported", node)
        if path == "pl.while_":
            self._while_with_carries(node, node.iter)
        elif path == "pl.spmd":
            self.parse_spmd_loop(node, node.iter)
        elif path == "pl.split_aiv":
            self.parse_split_aiv(node, node.iter)
        elif path in _KINDS:
            self._counted_loop(node, node.iter, path)
        else:
            raise ParserSyntaxError(
                _NOT_A_LOOP,
                self.span(node.iter),
                hint="Use for i in pl.range(n)",
                code=ErrorCode.MISSING_RANGE_CALL,
            )

    def _counted_loop(self, node: ast.For, call: ast.Call, path: str) -> None:
        kind = _KINDS[path]
        start, stop, step = self._bounds(call, path)
        options = self._loop_options(call, path)
        if kind is ForKind.Unroll:
            self._check_unroll(call, start, stop, step)
        attrs: dict[str, Any] = {}
        if kind is ForKind.Pipeline:
            attrs["pipeline_stages"] = self._stage(options.get("stage"), call)
        elif "stage" in options:
            raise self.fail(
                ParserSyntaxError, f"stage= is only supported on pl.pipeline(), not {path}()", options["stage"]
            )
        if "attrs" in options:
            attrs.update(self.parse_attrs(options["attrs"]))
        inits = self._init_values(options["init_values"], path) if "init_values" in options else None
        name, carried = self._targets(node, inits)
        if inits is None:
            self.unfold_carries(node)
        var = Var(name.id, scalar_type(DataType.INDEX), self.span(name))
        self.loop_vars.add(var)
        iter_args = self._iter_args(carried, inits or [])
        frame = YieldFrame("loop") if inits is not None else None
        body = self._loop_body(node.body, path.removeprefix("pl."), [(name, var), *zip(carried, iter_args)], frame)
        returns = self._return_vars(frame, len(iter_args), node)
        self.emit(ForStmt(var, start, stop, step, tuple(iter_args), body, tuple(returns), self.span(node), kind, attrs))
        self._define_returns(returns, node)

    def _bounds(self, call: ast.Call, path: str) -> tuple[Expr, Expr, Expr]:
        if not 1 <= len(call.args) <= 3:
            raise ParserSyntaxError(
                f"{path}() takes 1 to 3 positional arguments (stop), (start, stop) or (start, stop, step), "
                f"got {len(call.args)}",
                self.span(call),
                code=ErrorCode.INVALID_RANGE_USAGE,
            )
        values = [self._bound(a, path) for a in call.args]
        zero, one = const_index(0, self.span(call)), const_index(1, self.span(call))
        match values:
            case [stop]:
                return zero, stop, one
            case [start, stop]:
                return start, stop, one
        if isinstance(values[2], ConstInt) and values[2].value == 0:
            raise self.fail(ParserSyntaxError, f"{path}() step must not be 0", call.args[2])
        return values[0], values[1], values[2]

    def _bound(self, node: ast.expr, path: str) -> Expr:
        value = self.parse_expression(node)
        kind = value.type
        if isinstance(kind, UnknownType) or (isinstance(kind, ScalarType) and kind.dtype.is_int()):
            return value
        raise self.fail(
            ParserTypeError,
            f"{path}() bounds must be integer scalars, got {type_text(kind)}",
            node,
            hint="Use an integer, a pl.Scalar of an integer dtype, or pl.tensor.dim(x, i) for an extent",
        )

    def _loop_options(self, call: ast.Call, path: str) -> dict[str, ast.expr]:
        allowed = {"attrs", "stage"} | (set() if path == "pl.unroll" else {"init_values"})
        options: dict[str, ast.expr] = {}
        for keyword in call.keywords:
            if keyword.arg not in allowed:
                what = "cannot be combined with init_values" if keyword.arg == "init_values" else ""
                message = f"{path}() {what}" if what else f"Unknown keyword argument '{keyword.arg}' in {path}()"
                raise self.fail(ParserSyntaxError, message, keyword.value)
            options[keyword.arg or ""] = keyword.value
        return options

    def _stage(self, node: ast.expr | None, call: ast.Call) -> int:
        if node is None:
            raise self.fail(ParserSyntaxError, "pl.pipeline() requires stage= (positive integer)", call)
        found, value = self.evaluator.try_eval_expr(node)
        if not found or not isinstance(value, int) or isinstance(value, bool):
            raise self.fail(ParserSyntaxError, "pl.pipeline() stage must be a compile-time constant integer", node)
        if value < 1:
            raise self.fail(ParserSyntaxError, f"pl.pipeline() stage must be >= 1, got {value}", node)
        return value

    def _check_unroll(self, call: ast.Call, *bounds: Expr) -> None:
        if not all(isinstance(b, ConstInt) for b in bounds):
            raise self.fail(
                ParserSyntaxError, "pl.unroll() requires compile-time constant integer bounds", call,
                hint="Use pl.range() for runtime bounds",
            )  # fmt: skip

    def _init_values(self, node: ast.expr, path: str) -> list[Expr]:
        if not isinstance(node, (ast.Tuple, ast.List)):
            raise self.fail(ParserSyntaxError, f"{path}() init_values must be a tuple or list", node)
        return [self.parse_expression(e) for e in node.elts]

    def _targets(self, node: ast.For, inits: list[Expr] | None) -> tuple[ast.Name, list[ast.Name]]:
        """(loop variable, names of the carried values)."""
        target = node.target
        if inits is None:
            if isinstance(target, ast.Name):
                return target, []
            raise ParserSyntaxError(
                "For loop target must be a simple name when there are no init_values",
                self.span(target),
                code=ErrorCode.INVALID_LOOP_TARGET,
            )
        if not isinstance(target, ast.Tuple):
            raise ParserSyntaxError(
                "For loop target must be a tuple when init_values is provided",
                self.span(target),
                hint="Write for i, (a,) in pl.range(n, init_values=(x,))",
                code=ErrorCode.INVALID_LOOP_TARGET,
            )
        if len(target.elts) != 2 or not isinstance(target.elts[0], ast.Name):
            raise ParserSyntaxError(
                "For loop target must be (loop_var, (iter_args...))",
                self.span(target),
                code=ErrorCode.INVALID_LOOP_TARGET,
            )
        return target.elts[0], self._carried_names(target.elts[1], len(inits), node)

    def _carried_names(self, target: ast.expr, count: int, node: ast.AST) -> list[ast.Name]:
        names = list(target.elts) if isinstance(target, (ast.Tuple, ast.List)) else [target]
        if not all(isinstance(n, ast.Name) for n in names):
            raise self.fail(ParserSyntaxError, "Names of carried values must be plain names", target)
        if len(names) != count:
            raise ParserSyntaxError(
                f"Mismatch: {len(names)} iter_args but {count} init_values",
                self.span(target),
                hint="Give every carried value one name",
                code=ErrorCode.ITER_ARG_MISMATCH,
            )
        return names

    def _iter_args(self, names: list[ast.Name], inits: list[Expr]) -> list[IterArg]:
        return [IterArg(n.id, init.type, init, self.span(n)) for n, init in zip(names, inits)]

    def _loop_body(
        self, body: list[ast.stmt], construct: str, names: list[tuple[ast.Name, Var]], frame: YieldFrame | None
    ) -> Any:
        with self.scope("for") as policy, self.collect(construct) as stmts:
            for name, var in names:
                self.define(name.id, var, name)
            self._in_frame(frame, body)
            policy["leak"] = frame is None or not frame.names
            for name, _ in names:
                self.scopes.scopes[-1].pop(name.id, None)
        return seq(stmts)

    def _in_frame(self, frame: YieldFrame | None, body: list[ast.stmt]) -> None:
        if frame is None:
            self.parse_block(body)
            return
        self.frames.append(frame)
        try:
            self.parse_block(body)
        finally:
            self.frames.pop()

    def _return_vars(self, frame: YieldFrame | None, count: int, node: ast.AST) -> list[Var]:
        if frame is None or not frame.names:
            return []
        if len(frame.names) != count:
            raise self.fail(ParserSyntaxError, f"Loop carries {count} value(s) but yields {len(frame.names)}", node)
        return [Var(n, t, self.span(node)) for n, t in zip(frame.names, frame.types)]

    def _define_returns(self, returns: list[Var], node: ast.AST) -> None:
        for var in returns:
            self.scopes.define_var(var.name_hint, var, allow_redef=True, span=self.span(node))

    # -- while ---------------------------------------------------------------------------------------------------

    def parse_while(self, node: ast.While) -> None:
        """``while cond:``, the natural form."""
        if node.orelse:
            raise self.unsupported("while ... else is not supported", node)
        self.unfold_carries(node)
        condition = self.parse_condition(node.test, "while")
        with self.scope("while") as policy, self.collect("while") as stmts:
            self.parse_block(node.body)
            policy["leak"] = True
        self.emit(WhileStmt(condition, (), seq(stmts), (), self.span(node)))

    def _while_with_carries(self, node: ast.For, call: ast.Call) -> None:
        if call.args:
            raise self.fail(ParserSyntaxError, "pl.while_() takes no positional arguments", call)
        options = {k.arg: k.value for k in call.keywords}
        if set(options) != {"init_values"}:
            unknown = sorted(str(k) for k in set(options) - {"init_values"})
            message = (
                f"Unknown keyword argument '{unknown[0]}' in pl.while_()"
                if unknown
                else ("pl.while_() requires init_values=")
            )
            raise self.fail(ParserSyntaxError, message, call)
        inits = self._init_values(options["init_values"], "pl.while_")
        names = self._carried_names(node.target, len(inits), node)
        iter_args = self._iter_args(names, inits)
        frame = YieldFrame("loop")
        condition: Expr = ConstBool(True)
        with self.scope("while") as policy, self.collect("while") as stmts:
            for name, var in zip(names, iter_args):
                self.define(name.id, var, name)
            condition = self._while_condition(node)
            self._in_frame(frame, node.body[1:])
            policy["leak"] = not frame.names
            for name in names:
                self.scopes.scopes[-1].pop(name.id, None)
        returns = self._return_vars(frame, len(iter_args), node)
        self.emit(WhileStmt(condition, tuple(iter_args), seq(stmts), tuple(returns), self.span(node)))
        self._define_returns(returns, node)

    def _while_condition(self, node: ast.For) -> Expr:
        first = node.body[0]
        value = first.value if isinstance(first, ast.Expr) else None
        if not isinstance(value, ast.Call) or self.public_path(value.func) != "pl.cond":
            raise self.fail(
                ParserSyntaxError, "First statement in pl.while_() body must be pl.cond(condition)", first,
                hint="Start the body with pl.cond(i < n)",
            )  # fmt: skip
        if len(value.args) != 1 or value.keywords:
            raise self.fail(ParserSyntaxError, "pl.cond() takes exactly one argument", value)
        return self.parse_condition(value.args[0], "while")
