"""``with`` blocks: ``pl.at``, ``pl.cluster``, runtime scopes, and the options they share."""

from __future__ import annotations

import ast
import keyword
import warnings
from dataclasses import dataclass, field
from typing import Any

from pypto.ir.dtype import DataType
from pypto.ir.enums import Level, Role, SplitMode
from pypto.ir.expr import Var
from pypto.ir.stmt import (
    AssignStmt,
    ClusterScopeStmt,
    HierarchyScopeStmt,
    InCoreScopeStmt,
    RuntimeScopeStmt,
    SplitAivScopeStmt,
    Stmt,
    seq,
)
from pypto.ir.types import scalar_type
from pypto.ir.utils import walk_stmts
from pypto.language.parser.base import ParserBase
from pypto.language.parser.diagnostics import ParserSyntaxError, ParserTypeError, did_you_mean

_AT_OPTIONS = (
    "level", "role", "optimizations", "deps", "no_dep_args", "dumps", "allow_early_resolve", "name_hint", "windowize",
    "attrs",
)  # fmt: skip
_SPLITS = ("pl.split", "pl.optimizations.split")
_SLOTS = ("pl.cross_core_slot", "pl.optimizations.cross_core_slot")


@dataclass
class Optimizations:
    """What an ``optimizations=[...]`` list asks for."""

    split: SplitMode | None = None
    slot_num: int | None = None
    #: The slot count came from the deprecated ``pl.split(mode, slot_num=N)``.
    split_set_slots: bool = False

    @property
    def empty(self) -> bool:
        return self.split in (None, SplitMode.NONE) and self.slot_num is None

    def attrs(self) -> dict[str, Any]:
        return {} if self.slot_num is None else {"slot_num": self.slot_num}


@dataclass
class AtOptions:
    """Arguments of one ``pl.at``."""

    level: Level
    role: Role | None = None
    optimizations: Optimizations = field(default_factory=Optimizations)
    name_hint: str = ""
    attrs: dict[str, Any] = field(default_factory=dict)


class ScopesMixin(ParserBase):
    """Parses ``with`` statements."""

    def parse_with(self, node: ast.With) -> None:
        if len(node.items) != 1:
            raise self.fail(
                ParserSyntaxError, "Only single context manager supported in with statement", node,
                hint="Nest the with statements",
            )  # fmt: skip
        item = node.items[0]
        call = item.context_expr
        path = self.public_path(call.func) if isinstance(call, ast.Call) else None
        if item.optional_vars is not None and path in ("pl.cluster", "pl.scope", "pl.manual_scope"):
            raise self.fail(ParserSyntaxError, "`as` only applies to pl.at(...) and pl.spmd(...)", item.optional_vars)
        match path:
            case "pl.at":
                self._at(node, call, item.optional_vars)
            case "pl.cluster":
                self._cluster(node, call)
            case "pl.spmd":
                self.parse_spmd_with(node, call, item.optional_vars)
            case "pl.scope" | "pl.manual_scope":
                self._runtime(node, call, path)
            case _:
                raise self.unsupported(
                    "Unsupported context manager in with statement",
                    call,
                    hint="Use pl.at, pl.cluster, pl.spmd, pl.scope or pl.manual_scope",
                )

    # -- pl.at ---------------------------------------------------------------------------------------------------

    def _at(self, node: ast.With, call: ast.Call, target: ast.expr | None) -> None:
        options = self.parse_at_options(call)
        task = self._capture(target, "pl.at", options.attrs, node)
        incore, tags = options.level is Level.CORE_GROUP, list(self.dump_tags)
        with self.scope("at") as policy, self.collect("incore" if incore else "hierarchy") as stmts:
            self.parse_block(node.body)
            policy["leak"] = True
        body, span, attrs = seq(stmts), self.span(node), {**options.optimizations.attrs(), **options.attrs}
        if incore:
            self.add_scope_dumps(attrs, tags, stmts)
            if options.optimizations.split is not None and _holds_split_region(stmts):
                raise self.fail(
                    ParserSyntaxError,
                    "pl.split(...) in optimizations= and pl.split_aiv(...) are mutually exclusive",
                    call,
                    hint="Leave pl.split out: the region splits the lanes",
                )
            split = options.optimizations.split or SplitMode.NONE
            scope: Stmt = InCoreScopeStmt(split, options.name_hint, body=body, span=span, attrs=attrs)
        else:
            scope = HierarchyScopeStmt(
                options.level, options.role, options.name_hint, body=body, span=span, attrs=attrs
            )
        self.emit(scope)
        if task is not None:
            self.record_written(stmts, task)

    def parse_at_options(self, call: ast.Call) -> AtOptions:
        """The arguments of ``pl.at(...)``."""
        given = self._named_arguments(call, ("level", "role"), _AT_OPTIONS, "pl.at")
        if "level" not in given:
            raise self.fail(ParserSyntaxError, "pl.at() requires level=", call, hint="pl.at(level=pl.Level.CORE_GROUP)")
        level = self._enum(given["level"], Level, "pl.at() level")
        options = AtOptions(level)
        if "role" in given and not _is_none(given["role"]):
            if level is Level.CORE_GROUP:
                raise self.fail(
                    ParserSyntaxError, "role= is not supported with level=pl.Level.CORE_GROUP", given["role"]
                )
            options.role = self._enum(given["role"], Role, "pl.at() role")
        if level is Level.HOST and options.role is Role.SubWorker:
            raise self.fail(
                ParserSyntaxError, "pl.at(level=pl.Level.HOST, role=pl.Role.SubWorker) is not supported inline", call,
                hint="Write a @pl.function(level=pl.Level.HOST, role=pl.Role.SubWorker) and call it",
            )  # fmt: skip
        options.optimizations = self.parse_optimizations(given.get("optimizations"), "pl.at")
        if level is not Level.CORE_GROUP and not (
            options.optimizations.split is None and options.optimizations.slot_num is None
        ):
            raise self.fail(
                ParserSyntaxError, "pl.at() optimizations= of split and slots need level=pl.Level.CORE_GROUP", call
            )
        options.name_hint = self.parse_name_hint(given.get("name_hint"), "pl.at")
        options.attrs = self._at_attrs(given)
        return options

    def _at_attrs(self, given: dict[str, ast.expr]) -> dict[str, Any]:
        attrs: dict[str, Any] = {}
        if "deps" in given and not _is_none(given["deps"]):
            deps = self.parse_deps(given["deps"], "pl.at")
            if deps:
                attrs["manual_dep_edges"] = deps
        for option, key in (("no_dep_args", "arg_direction_overrides_vars"), ("dumps", "dump_vars")):
            if option in given and not _is_none(given[option]):
                tensors = self.scope_tensors(given[option], option)
                if tensors:
                    attrs[key] = tensors
        for option in ("allow_early_resolve", "windowize"):
            if self.bool_literal(given.get(option), f"pl.at() {option}"):
                attrs[option] = True
        attrs.update(self.printed_attrs(given))
        return attrs

    def printed_attrs(self, given: dict[str, ast.expr]) -> dict[str, Any]:
        """``attrs={...}`` of a scope: compiler metadata in printed IR."""
        return self.parse_attrs(given["attrs"]) if "attrs" in given else {}

    def scope_tensors(self, node: ast.expr, option: str) -> list[Var]:
        """Tensor names of ``no_dep_args=`` and ``dumps=`` of a scope; a repeated one is a mistake."""
        tensors = self.tensor_list(node, option, "pl.at")
        if len(tensors) != len(getattr(node, "elts", [])):
            raise self.fail(ParserTypeError, f"'pl.at' {option}= lists a tensor twice", node)
        return tensors

    def _capture(self, target: ast.expr | None, word: str, attrs: dict[str, Any], node: ast.With) -> Var | None:
        """``as tid``: a task id that is invalid until the scope is launched."""
        if target is None:
            return None
        if not isinstance(target, ast.Name):
            raise self.fail(ParserSyntaxError, f"The `as` target of {word}(...) must be a plain variable name", target)
        invalid = self.call_operator("system.task_invalid", [], {}, node)
        old = self.scopes.lookup_var(target.id)
        kind = scalar_type(DataType.TASK_ID)
        if type(old) is Var and old.type == kind and old not in self.loop_vars:
            var = old
        else:
            var = Var(target.id, kind, self.span(target))
            self.define(target.id, var, target)
        self.task_generation[var] = self.task_generation.get(var, 0) + 1
        self.emit(AssignStmt(var, invalid, self.span(node)))
        attrs["task_id_var"] = var
        return var

    def record_written(self, stmts: list[Stmt], task: Var) -> None:
        """Names assigned in a launched scope are produced by its task."""
        for stmt in stmts:
            if isinstance(stmt, AssignStmt):
                self.record_producer(stmt.var, task)
            body = getattr(stmt, "body", None)
            if body is not None:
                self.record_written(list(getattr(body, "stmts", [body])), task)

    # -- cluster and runtime scopes ------------------------------------------------------------------------------

    def _cluster(self, node: ast.With, call: ast.Call) -> None:
        given = self._named_arguments(call, (), ("name_hint", "attrs"), "pl.cluster")
        attrs = self.printed_attrs(given)
        name = self.parse_name_hint(given.get("name_hint"), "pl.cluster")
        with self.scope("cluster") as policy, self.collect("cluster") as stmts:
            self.parse_block(node.body)
            policy["leak"] = True
        self.emit(ClusterScopeStmt(name, body=seq(stmts), span=self.span(node), attrs=attrs))

    def _runtime(self, node: ast.With, call: ast.Call, path: str) -> None:
        manual, attrs = self._runtime_options(call, path)
        if self.inside("manual"):
            kind = "a manual scope" if manual else "an AUTO scope"
            raise self.fail(
                ParserSyntaxError, f"{kind} may not be nested inside another manual scope" if manual else
                f"{kind} may not be nested inside a manual scope", call,
            )  # fmt: skip
        if not manual and self.options.auto_scope:
            raise self.fail(
                ParserSyntaxError, "pl.scope() is only allowed in a function with auto_scope=False", call,
                hint="Declare @pl.function(..., auto_scope=False), or use pl.manual_scope()",
            )  # fmt: skip
        with self.scope("runtime") as policy, self.collect("manual" if manual else "auto") as stmts:
            self.parse_block(node.body)
            policy["leak"] = True
        self.emit(RuntimeScopeStmt(manual, body=seq(stmts), span=self.span(node), attrs=attrs))

    def _runtime_options(self, call: ast.Call, path: str) -> tuple[bool, dict[str, Any]]:
        """(is it a manual scope, its attributes)."""
        if path == "pl.manual_scope":
            if call.args or call.keywords:
                raise self.fail(ParserSyntaxError, "pl.manual_scope() takes no arguments", call)
            return True, {}
        given = self._named_arguments(call, (), ("mode", "attrs"), "pl.scope")
        attrs = self.printed_attrs(given)
        if "mode" not in given:
            return False, attrs
        from pypto.language.constructs import ScopeMode

        return self._enum(given["mode"], ScopeMode, "pl.scope() mode") is ScopeMode.MANUAL, attrs

    # -- options -------------------------------------------------------------------------------------------------

    def parse_optimizations(self, node: ast.expr | None, word: str) -> Optimizations:
        """``optimizations=[pl.split(...), pl.cross_core_slot(...)]``."""
        found = Optimizations()
        if node is None or _is_none(node):
            return found
        if not isinstance(node, ast.List):
            raise self.fail(
                ParserSyntaxError, f"{word}(optimizations=...) must be a list literal", node,
                hint="optimizations=[pl.split(pl.SplitMode.UP_DOWN)]",
            )  # fmt: skip
        for entry in node.elts:
            path = self.public_path(entry.func) if isinstance(entry, ast.Call) else None
            if path in _SPLITS:
                self._split_entry(entry, found)
            elif path in _SLOTS:
                self._slot_entry(entry, found)
            else:
                raise self.fail(
                    ParserSyntaxError, f"Unsupported entry in {word}(optimizations=[...]): {ast.unparse(entry)}", entry,
                    hint="Use pl.split(pl.SplitMode.X) and pl.cross_core_slot(slot_num=N)",
                )  # fmt: skip
        return found

    def _split_entry(self, entry: ast.Call, found: Optimizations) -> None:
        if found.split is not None:
            raise self.fail(ParserSyntaxError, "Duplicate 'pl.split(...)' in optimizations=", entry)
        given = self._named_arguments(entry, ("mode",), ("mode", "slot_num"), "pl.split")
        if "mode" not in given:
            raise self.fail(ParserSyntaxError, "pl.split() requires a pl.SplitMode", entry)
        found.split = self._enum(given["mode"], SplitMode, "pl.split() mode")
        if "slot_num" in given:
            slots = self._positive_literal(given["slot_num"], "pl.split() slot_num")
            self._set_slots(found, slots, entry)
            warnings.warn(
                "pl.split(mode, slot_num=N) is deprecated; use pl.cross_core_slot(slot_num=N)",
                DeprecationWarning,
                stacklevel=2,
            )

    def _slot_entry(self, entry: ast.Call, found: Optimizations) -> None:
        given = self._named_arguments(entry, (), ("slot_num",), "pl.cross_core_slot")
        if "slot_num" not in given:
            raise self.fail(ParserSyntaxError, "pl.cross_core_slot() requires the slot_num= keyword", entry)
        slots = self._positive_literal(given["slot_num"], "pl.cross_core_slot() slot_num")
        self._set_slots(found, slots, entry)

    def _set_slots(self, found: Optimizations, slots: int, entry: ast.Call) -> None:
        if found.slot_num is not None:
            path = self.public_path(entry.func)
            if path in _SLOTS and not found.split_set_slots:
                raise self.fail(ParserSyntaxError, "Duplicate 'pl.cross_core_slot(...)' in optimizations=", entry)
            raise self.fail(
                ParserSyntaxError, "optimizations= sets the cross-core slot count twice", entry,
                hint="Keep pl.cross_core_slot(slot_num=N) only",
            )  # fmt: skip
        found.slot_num = slots
        found.split_set_slots = self.public_path(entry.func) in _SPLITS

    def _positive_literal(self, node: ast.expr, what: str) -> int:
        value = node.value if isinstance(node, ast.Constant) else None
        if not isinstance(value, int) or isinstance(value, bool):
            raise self.fail(ParserSyntaxError, f"{what} must be an integer literal", node)
        if value <= 0:
            raise self.fail(ParserSyntaxError, f"{what} must be positive, got {value}", node)
        return value

    def parse_name_hint(self, node: ast.expr | None, word: str) -> str:
        """``name_hint="..."``: a string literal that is an identifier, or empty."""
        if node is None:
            return ""
        if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
            raise self.fail(ParserSyntaxError, f"{word}() name_hint must be a string literal", node)
        if node.value and (not node.value.isidentifier() or keyword.iskeyword(node.value)):
            raise self.fail(
                ParserSyntaxError,
                f"{word}() name_hint must be a valid non-keyword identifier, got {node.value!r}",
                node,
            )
        return node.value

    def _named_arguments(
        self, call: ast.Call, positional: tuple[str, ...], known: tuple[str, ...], word: str
    ) -> dict[str, ast.expr]:
        if len(call.args) > len(positional):
            text = "no positional arguments" if not positional else f"at most {len(positional)} positional argument(s)"
            raise self.fail(ParserSyntaxError, f"{word}() accepts {text}", call)
        given = dict(zip(positional, call.args))
        for entry in call.keywords:
            if entry.arg is None:
                raise self.fail(ParserSyntaxError, f"{word}() does not accept **kwargs", entry.value)
            if entry.arg not in known:
                public = [k for k in known if k != "attrs"]
                raise self.fail(
                    ParserSyntaxError, f"Unknown keyword argument '{entry.arg}' in {word}()", entry.value,
                    hint=did_you_mean(entry.arg, public) or (f"Keywords: {', '.join(public)}" if public else None),
                )  # fmt: skip
            if entry.arg in given:
                raise self.fail(
                    ParserSyntaxError, f"{word}() got multiple values for argument '{entry.arg}'", entry.value
                )
            given[entry.arg] = entry.value
        return given

    def _enum(self, node: ast.expr, cls: type, what: str) -> Any:
        """A member of a public enum, by its name or from a closure variable."""
        found, value = self.evaluator.try_eval_expr(node)
        if found and isinstance(value, cls):
            return value
        name = node.attr if isinstance(node, ast.Attribute) else ""
        if name in cls.__members__ and self.public_path(node):
            return cls.__members__[name]
        raise self.fail(
            ParserSyntaxError, f"{what} must be a member of pl.{cls.__name__}, got {ast.unparse(node)}", node,
            hint=f"Members: {', '.join(cls.__members__)}",
        )  # fmt: skip


def _holds_split_region(stmts: list[Stmt]) -> bool:
    return any(isinstance(s, SplitAivScopeStmt) for stmt in stmts for s in walk_stmts(stmt))


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None
