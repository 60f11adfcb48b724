"""``pl.spmd`` in its three forms, and ``pl.split_aiv`` regions."""

from __future__ import annotations

import ast
from typing import Any

from pypto.ir.dtype import DataType
from pypto.ir.enums import FunctionType, Level, SplitMode, is_incore_type
from pypto.ir.expr import Expr, Var
from pypto.ir.program import Function
from pypto.ir.stmt import AssignStmt, InCoreScopeStmt, SplitAivScopeStmt, SpmdScopeStmt, Stmt, seq
from pypto.ir.types import scalar_type
from pypto.language.parser.base import ParserBase
from pypto.language.parser.diagnostics import ParserSyntaxError
from pypto.language.parser.scopes import Optimizations

_OPTIONS = ("core_num", "sync_start", "name_hint", "optimizations", "deps", "allow_early_resolve", "predicate", "attrs")
_SUFFIX = "_spmd"


class SpmdMixin(ParserBase):
    """Parses multi-block launches and vector-lane regions."""

    def parse_spmd_loop(self, node: ast.For, call: ast.Call) -> None:
        """``for i in pl.spmd(n):`` binds the block index and runs the body on a core."""
        if not isinstance(node.target, ast.Name):
            raise self.fail(ParserSyntaxError, "for ... in pl.spmd(...) takes a single loop variable", node.target)
        given = self._spmd_arguments(call, "for")
        core_num, attrs, optimizations, hint = self._spmd_options(given, call, None, "plain")
        tags = list(self.dump_tags)
        with self.scope("spmd") as policy, self.collect("spmd") as stmts:
            self.constructs.append("incore")
            index = self._bind_index(node.target, "tile.get_block_idx", node)
            self.parse_block(node.body)
            self.constructs.pop()
            policy["leak"] = True
            self.scopes.scopes[-1].pop(index.name_hint, None)
        body = self._carrier(stmts, optimizations, hint, node, tags)
        self._emit_spmd(core_num, given, _outer_hint(hint), body, attrs, node)

    def _bind_index(self, target: ast.Name, operator: str, node: ast.stmt) -> Var:
        call = self.call_operator(operator, [], {}, node)
        var = Var(target.id, scalar_type(DataType.INDEX), self.span(target))
        self.loop_vars.add(var)
        self.define(target.id, var, target)
        self.emit(AssignStmt(var, call, self.span(node)))
        return var

    def parse_spmd_with(self, node: ast.With, call: ast.Call, target: ast.expr | None) -> None:
        """``with pl.spmd(n):`` around one dispatch, or around statements that read the block index."""
        given = self._spmd_arguments(call, "as tid" if target is not None else "with")
        if target is not None and self.inside("cluster"):
            raise self.fail(
                ParserSyntaxError, "pl.spmd(...) cannot capture a TaskId when nested inside `pl.cluster()`", call
            )
        form = "plain" if target is None else "as tid"
        pending: dict[str, Any] = {}
        core_num, attrs, optimizations, hint = self._spmd_options(given, call, (target, pending, node), form)
        task = pending.get("task")
        wrap = self._needs_carrier(node, optimizations, call)
        tags = list(self.dump_tags)
        with self.scope("spmd") as policy, self.collect("spmd") as stmts:
            if wrap:
                self.constructs.append("incore")
            self.parse_block(node.body)
            if wrap:
                self.constructs.pop()
            policy["leak"] = True
        body = self._carrier(stmts, optimizations, hint, node, tags) if wrap else seq(stmts)
        self._emit_spmd(core_num, given, _outer_hint(hint) if wrap else hint, body, attrs, node)
        if task is not None:
            self.record_written(stmts, task)

    def _emit_spmd(
        self, core_num: Expr, given: dict[str, ast.expr], hint: str, body: Stmt, attrs: dict, node: ast.stmt
    ) -> None:
        sync = self.bool_literal(given.get("sync_start"), "pl.spmd() sync_start")
        self.emit(SpmdScopeStmt(core_num, sync, hint, body=body, span=self.span(node), attrs=attrs))

    def _carrier(
        self, stmts: list[Stmt], optimizations: Optimizations, hint: str, node: ast.stmt, tags: list[Var]
    ) -> Stmt:
        """The InCore scope of the blocks; what it uses of the tagged tensors is dumped when it is launched."""
        attrs = optimizations.attrs()
        self.add_scope_dumps(attrs, tags, stmts)
        split = optimizations.split or SplitMode.NONE
        name = hint.removesuffix(_SUFFIX) if hint != _SUFFIX else hint
        return InCoreScopeStmt(split, name, body=seq(stmts), span=self.span(node), attrs=attrs)

    def _spmd_arguments(self, call: ast.Call, form: str) -> dict[str, ast.expr]:
        if len(call.args) > 1:
            raise self.fail(ParserSyntaxError, "pl.spmd() takes at most one positional argument (core_num)", call)
        given: dict[str, ast.expr] = {"core_num": call.args[0]} if call.args else {}
        for entry in call.keywords:
            if entry.arg is None:
                raise self.fail(ParserSyntaxError, "pl.spmd() does not accept **kwargs", entry.value)
            if entry.arg == "core_num" and call.args:
                raise self.fail(ParserSyntaxError, "pl.spmd() got multiple values for argument 'core_num'", entry.value)
            if entry.arg in ("init_values", "chunk") or (entry.arg == "deps" and form != "as tid"):
                raise self.fail(
                    ParserSyntaxError, f"pl.spmd() does not accept '{entry.arg}=' here", entry.value,
                    hint="Use `with pl.spmd(n, deps=[...]) as tid:`" if entry.arg == "deps" else None,
                )  # fmt: skip
            if entry.arg not in _OPTIONS:
                raise self.fail(
                    ParserSyntaxError, f"Unknown keyword argument '{entry.arg}' in pl.spmd()", entry.value,
                    hint=f"Keywords: {', '.join(_OPTIONS[:-1])}",
                )  # fmt: skip
            given[entry.arg] = entry.value
        if "core_num" not in given:
            raise self.fail(ParserSyntaxError, "pl.spmd() requires core_num", call, hint="pl.spmd(8)")
        return given

    def _spmd_options(
        self, given: dict[str, ast.expr], call: ast.Call, capture: tuple | None, form: str
    ) -> tuple[Expr, dict[str, Any], Optimizations, str]:
        """(core_num, attrs, optimizations, name hint); emits the task id placeholder of ``as tid``."""
        core_num = self.parse_core_num(given["core_num"], "pl.spmd")
        optimizations = self.parse_optimizations(given.get("optimizations"), "pl.spmd")
        hint = self.parse_name_hint(given.get("name_hint"), "pl.spmd")
        early = self.bool_literal(given.get("allow_early_resolve"), "pl.spmd() allow_early_resolve")
        if self.inside("cluster"):
            for option in ("predicate", "allow_early_resolve"):
                if option in given:
                    raise self.fail(
                        ParserSyntaxError,
                        f"pl.spmd(..., {option}=) cannot be nested inside `pl.cluster()`, whose dispatches carry no "
                        "per-task metadata",
                        given[option],
                    )
        attrs = self.printed_attrs(given)
        deps = self.parse_deps(given["deps"], "pl.spmd") if "deps" in given else []
        if deps:
            attrs["manual_dep_edges"] = deps
        predicate = None
        if "predicate" in given:
            predicate = self.parse_predicate(given["predicate"], "pl.spmd", deps, form)
        if capture is not None and capture[0] is not None:
            target, pending, node = capture
            pending["task"] = self._capture(target, "pl.spmd", attrs, node)
        if predicate is not None:
            attrs["predicate"] = predicate
        if early:
            attrs["allow_early_resolve"] = True
        return core_num, attrs, optimizations, hint

    # -- what kind of body ---------------------------------------------------------------------------------------

    def _needs_carrier(self, node: ast.With, optimizations: Optimizations, call: ast.Call) -> bool:
        """Is the body wrapped in an InCore scope?"""
        carrier = self._explicit_carrier(node.body)
        asked = optimizations.split is not None or optimizations.slot_num is not None
        if carrier is not None:
            if not optimizations.empty:
                inner = self.parse_at_options(carrier).optimizations
                if not inner.empty:
                    raise self.fail(ParserSyntaxError, "`optimizations=` is specified twice", call)
                raise self.fail(
                    ParserSyntaxError, "optimizations= belongs on the InCore scope `with pl.at(...)` of the body", call
                )
            return False
        if self._spmd_body_reads_block_idx(node.body):
            return True
        dispatches = self._dispatches(node.body)
        if not dispatches:
            raise self.fail(
                ParserSyntaxError,
                "`with pl.spmd(...)` body neither reads the per-block index via `pl.tile.get_block_idx()` nor "
                "dispatches a `self.<kernel>(...)` call, so every block would run identical work.",
                node,
                hint="Use for i in pl.spmd(n), read the block index, or call one kernel",
            )
        if asked and not optimizations.empty:
            return True
        if dispatches > 1:
            raise self.fail(
                ParserSyntaxError, f"`with pl.spmd(...)` body launches {dispatches} kernels; it may launch only one",
                node, hint="Use one pl.spmd per kernel",
            )  # fmt: skip
        return False

    def _explicit_carrier(self, body: list[ast.stmt]) -> ast.Call | None:
        """The ``pl.at(CORE_GROUP)`` call when it is the only statement of the body."""
        if len(body) != 1 or not isinstance(body[0], ast.With) or len(body[0].items) != 1:
            return None
        call = body[0].items[0].context_expr
        if not isinstance(call, ast.Call) or self.public_path(call.func) != "pl.at":
            return None
        level = call.args[0] if call.args else next((k.value for k in call.keywords if k.arg == "level"), None)
        return call if level is not None and self._enum(level, Level, "pl.at() level") is Level.CORE_GROUP else None

    @staticmethod
    def _spmd_body_reads_block_idx(body: list[ast.stmt]) -> bool:
        """Does any call in the body read the block index, in whichever spelling?"""
        for stmt in body:
            for node in ast.walk(stmt):
                if isinstance(node, ast.Call):
                    name = getattr(node.func, "attr", None) or getattr(node.func, "id", None)
                    if name == "get_block_idx":
                        return True
        return False

    def _dispatches(self, body: list[ast.stmt]) -> int:
        calls = [n.func for stmt in body for n in ast.walk(stmt) if isinstance(n, ast.Call)]
        return sum(1 for func in calls if self._names_kernel(func))

    def _names_kernel(self, func: ast.expr) -> bool:
        """Does a call of ``func`` launch a kernel?"""
        if isinstance(func, ast.Attribute) and isinstance(func.value, ast.Name) and func.value.id == "self":
            return True
        return isinstance(func, ast.Name) and self.is_kernel(self.closure.get(func.id))

    def is_kernel(self, value: Any) -> bool:
        """Is a closure value a function of its own in the program?"""
        return isinstance(value, Function)

    # -- split_aiv -----------------------------------------------------------------------------------------------

    def parse_split_aiv(self, node: ast.For, call: ast.Call) -> None:
        """``for lane in pl.split_aiv(2, mode=...):`` runs the body on both vector lanes."""
        mode = self._split_mode(call)
        if not isinstance(node.target, ast.Name):
            raise self.fail(ParserSyntaxError, "pl.split_aiv(...) takes a single loop variable", node.target)
        if self.inside("split_aiv"):
            raise self.fail(ParserSyntaxError, "pl.split_aiv(...) cannot be nested inside another pl.split_aiv", call)
        self.region_splits.append(mode)
        with self.scope("split_aiv") as policy, self.collect("split_aiv") as stmts:
            index = self._bind_index(node.target, "tile.get_subblock_idx", node)
            self.parse_block(node.body)
            policy["leak"] = True
            self.scopes.scopes[-1].pop(index.name_hint, None)
        self.region_splits.pop()
        region: Stmt = SplitAivScopeStmt(mode, 2, body=seq(stmts), span=self.span(node))
        if not self._in_core():
            region = InCoreScopeStmt(body=region, span=self.span(node))
        self.emit(region)

    def _in_core(self) -> bool:
        return self.inside("incore") or is_incore_type(self.options.type) or self.options.type is FunctionType.Group

    def _split_mode(self, call: ast.Call) -> SplitMode:
        if len(call.args) != 1:
            raise self.fail(ParserSyntaxError, "pl.split_aiv() takes exactly one positional argument, 2", call)
        found, count = self.evaluator.try_eval_expr(call.args[0])
        if not found or type(count) is not int or count != 2:
            raise self.fail(ParserSyntaxError, "pl.split_aiv() must split over exactly 2 lanes", call.args[0])
        options = {k.arg: k.value for k in call.keywords}
        unknown = [k for k in options if k != "mode"]
        if unknown:
            raise self.fail(ParserSyntaxError, f"Unknown keyword argument '{unknown[0]}' in pl.split_aiv()", call)
        if "mode" not in options:
            raise self.fail(ParserSyntaxError, "pl.split_aiv() requires mode=pl.SplitMode.X", call)
        return self._enum(options["mode"], SplitMode, "pl.split_aiv() mode")


def _outer_hint(hint: str) -> str:
    """Name of the Spmd scope when the InCore scope inside it takes the plain name."""
    return hint if not hint or hint.endswith(_SUFFIX) else hint + _SUFFIX
