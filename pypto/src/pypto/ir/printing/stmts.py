"""Text of statements: assignments, control flow, scopes."""

from __future__ import annotations

from typing import Any

from pypto.errors import InternalError
from pypto.ir import expr as E
from pypto.ir import stmt as S
from pypto.ir.dtype import DataType
from pypto.ir.enums import ForKind, SplitMode
from pypto.ir.printing.exprs import string
from pypto.ir.printing.types import TypePrinter

_LOOPS = {
    ForKind.Sequential: "range", ForKind.Parallel: "parallel", ForKind.Unroll: "unroll", ForKind.Pipeline: "pipeline",
}  # fmt: skip
_INDENT = "    "

#: Scope attributes with syntax of their own; others print as ``attrs={...}``.
_SCOPE_SYNTAX = (
    "task_id_var", "manual_dep_edges", "arg_direction_overrides_vars", "dump_vars", "slot_num", "allow_early_resolve",
    "windowize", "predicate",
)  # fmt: skip


class StmtPrinter(TypePrinter):
    """Appends lines to ``lines``; ``results`` are the variables that the closing yield of a body names."""

    concise: bool

    def __init__(self, prefix: str, concise: bool, explicit_layout: bool):
        super().__init__(prefix)
        self.concise = concise
        self.explicit_layout = explicit_layout
        self.lines: list[str] = []
        self.yields_return = False  # a top-level yield of a function prints as return
        self._stmt_table = {
            S.AssignStmt: self._assign, S.IfStmt: self._if, S.ForStmt: self._for, S.WhileStmt: self._while,
            S.YieldStmt: self._yield, S.ReturnStmt: self._return, S.EvalStmt: self._eval, S.BreakStmt: self._break,
            S.ContinueStmt: self._continue, S.InlineStmt: self._inline, S.InCoreScopeStmt: self._in_core,
            S.HierarchyScopeStmt: self._hierarchy, S.ClusterScopeStmt: self._cluster, S.SpmdScopeStmt: self._spmd,
            S.SplitAivScopeStmt: self._split_aiv, S.RuntimeScopeStmt: self._runtime,
            S.CommDomainScopeStmt: self._comm_domain,
        }  # fmt: skip

    def stmt(self, stmt: S.Stmt, indent: str, results: tuple = (), comments: bool = True) -> None:
        """Lines of one statement."""
        if comments:
            for comment in stmt.leading_comments:
                self.lines += [f"{indent}# {line}".rstrip() for line in comment.splitlines() or [""]]
        self._stmt_table[type(stmt)](stmt, indent, results)

    def body(self, body: S.Stmt | None, indent: str, results: tuple = ()) -> None:
        """Lines of a body, ``pass`` when it is empty."""
        start = len(self.lines)
        self.stmts(S.flatten_to_stmts(body), indent, results)
        if all(line.lstrip().startswith("#") for line in self.lines[start:]):
            self.lines.append(f"{indent}pass")

    def stmts(self, stmts: list[S.Stmt], indent: str, results: tuple = ()) -> None:
        """Lines of a list of statements; the last one gets ``results``."""
        last = len(stmts) - 1
        for position, stmt in enumerate(stmts):
            if position < last and _seeds_task_id(stmt, stmts[position + 1]):
                continue
            self.stmt(stmt, indent, results if position == last else ())

    # -- simple statements ------------------------------------------------------------------------------------------

    def _target(self, var: E.Var) -> str:
        name = self.names.define(var)
        return name if self.concise else f"{name}: {self.type(var.type)}"

    def _assign(self, stmt: S.AssignStmt, indent: str, results: tuple) -> None:
        self.assigned_name = self.names.define(stmt.var)
        value = self.expr(stmt.value)
        self.assigned_name = None
        self.lines.append(f"{indent}{self._target(stmt.var)} = {value}")

    def _yield(self, stmt: S.YieldStmt, indent: str, results: tuple) -> None:
        values = self.list(stmt.value)
        if results:
            names = ", ".join([self.names.define(r) for r in results])
            target = self._target(results[0]) if len(results) == 1 else names
            self.lines.append(f"{indent}{target} = {self.pl}.yield_({values})")
        elif self.yields_return and indent == self._body_indent:
            self.lines.append(f"{indent}return {values}".rstrip())
        else:
            self.lines.append(f"{indent}{self.pl}.yield_({values})")

    def _return(self, stmt: S.ReturnStmt, indent: str, results: tuple) -> None:
        self.lines.append(f"{indent}return {self.list(stmt.value)}".rstrip())

    def _eval(self, stmt: S.EvalStmt, indent: str, results: tuple) -> None:
        self.lines.append(f"{indent}{self.expr(stmt.expr)}")

    def _break(self, stmt: S.BreakStmt, indent: str, results: tuple) -> None:
        self.lines.append(f"{indent}break")

    def _continue(self, stmt: S.ContinueStmt, indent: str, results: tuple) -> None:
        self.lines.append(f"{indent}continue")

    def _inline(self, stmt: S.InlineStmt, indent: str, results: tuple) -> None:
        self.lines += [f"{indent}{line}".rstrip() for line in stmt.body.splitlines()]

    # -- control flow -----------------------------------------------------------------------------------------------

    def _if(self, stmt: S.IfStmt, indent: str, results: tuple) -> None:
        self.lines.append(f"{indent}if {self.expr(stmt.condition)}:")
        self.body(stmt.then_body, indent + _INDENT, stmt.return_vars)
        if stmt.else_body is not None:
            self.lines.append(f"{indent}else:")
            self.body(stmt.else_body, indent + _INDENT, stmt.return_vars)

    def _for(self, stmt: S.ForStmt, indent: str, results: tuple) -> None:
        args = self._bounds(stmt)
        attrs = dict(stmt.attrs)
        if stmt.kind is ForKind.Pipeline:
            stages = attrs.pop("pipeline_stages", None)
            if stages is None:
                raise InternalError("a pipeline loop without the attribute 'pipeline_stages'", span=stmt.span)
            args.append(f"stage={self.value(stages)}")
        target = self.names.define(stmt.loop_var)
        if stmt.iter_args:
            args.append(self._init_values(stmt.iter_args))
            target += f", {self._carried(stmt.iter_args)}"
        self._append_attrs(args, attrs)
        self.lines.append(f"{indent}for {target} in {self.pl}.{_LOOPS[stmt.kind]}({', '.join(args)}):")
        self.body(stmt.body, indent + _INDENT, stmt.return_vars)

    def _bounds(self, stmt: S.ForStmt) -> list[str]:
        args = [self.expr(stmt.stop)]
        unit_step = _is_index(stmt.step, 1)
        if not unit_step or not _is_index(stmt.start, 0):
            args.insert(0, self.expr(stmt.start))
        if not unit_step:
            args.append(self.expr(stmt.step))
        return args

    def _init_values(self, iter_args: tuple) -> str:
        inits = self.list([a.initValue for a in iter_args])
        return f"init_values=({inits}{',' if len(iter_args) == 1 else ''})"

    def _carried(self, iter_args: tuple) -> str:
        names = ", ".join([self.names.define(a) for a in iter_args])
        return f"({names}{',' if len(iter_args) == 1 else ''})"

    def _while(self, stmt: S.WhileStmt, indent: str, results: tuple) -> None:
        if not stmt.iter_args:
            self.lines.append(f"{indent}while {self.expr(stmt.condition)}:")
            self.body(stmt.body, indent + _INDENT, stmt.return_vars)
            return
        inits = self._init_values(stmt.iter_args)
        self.lines.append(f"{indent}for {self._carried(stmt.iter_args)} in {self.pl}.while_({inits}):")
        inner = indent + _INDENT
        self.lines.append(f"{inner}{self.pl}.cond({self.expr(stmt.condition)})")
        self.stmts(S.flatten_to_stmts(stmt.body), inner, stmt.return_vars)

    # -- scopes -----------------------------------------------------------------------------------------------------

    def _header(self, stmt: S.ScopeStmt, call: str, args: list[str], indent: str) -> None:
        """``with call(args...)[ as tid]:`` with the clauses that the attributes of the scope stand for."""
        attrs = stmt.attrs
        if stmt.name_hint and not isinstance(stmt, (S.RuntimeScopeStmt, S.SplitAivScopeStmt)):
            args.append(f"name_hint={string(stmt.name_hint)}")
        for key, name in (("manual_dep_edges", "deps"), ("arg_direction_overrides_vars", "no_dep_args")):
            if key in attrs:
                args.append(f"{name}=[{self.list(attrs[key])}]")
        if attrs.get("dump_vars"):
            args.append(f"dumps=[{self.list(attrs['dump_vars'])}]")
        if attrs.get("allow_early_resolve"):
            args.append("allow_early_resolve=True")
        if attrs.get("windowize"):
            args.append("windowize=True")
        if attrs.get("predicate") is not None:
            args.append(f"predicate={self.predicate(attrs['predicate'])}")
        self._append_attrs(args, {k: v for k, v in attrs.items() if k not in _SCOPE_SYNTAX})
        task_id = attrs.get("task_id_var")
        captured = f" as {self.names.define(task_id)}" if task_id is not None else ""
        self.lines.append(f"{indent}with {self.pl}.{call}({', '.join(args)}){captured}:")

    def _optimizations(self, stmt: S.InCoreScopeStmt) -> list[str]:
        parts = []
        if stmt.split != SplitMode.NONE:
            parts.append(f"{self.pl}.split({self.pl}.SplitMode.{SplitMode(stmt.split).name})")
        if stmt.attrs.get("slot_num") is not None:
            parts.append(f"{self.pl}.cross_core_slot(slot_num={self.value(stmt.attrs['slot_num'])})")
        return [f"optimizations=[{', '.join(parts)}]"] if parts else []

    def _in_core(self, stmt: S.InCoreScopeStmt, indent: str, results: tuple) -> None:
        args = [f"level={self.pl}.Level.CORE_GROUP", *self._optimizations(stmt)]
        self._header(stmt, "at", args, indent)
        self.body(stmt.body, indent + _INDENT, results)

    def _hierarchy(self, stmt: S.HierarchyScopeStmt, indent: str, results: tuple) -> None:
        args = [f"level={self.pl}.Level.{stmt.level.name}"]
        if stmt.role is not None:
            args.append(f"role={self.pl}.Role.{stmt.role.name}")
        self._header(stmt, "at", args, indent)
        self.body(stmt.body, indent + _INDENT, results)

    def _cluster(self, stmt: S.ClusterScopeStmt, indent: str, results: tuple) -> None:
        self._header(stmt, "cluster", [], indent)
        self.body(stmt.body, indent + _INDENT, results)

    def _spmd(self, stmt: S.SpmdScopeStmt, indent: str, results: tuple) -> None:
        args = [self.expr(stmt.core_num)]
        if stmt.sync_start:
            args.append("sync_start=True")
        inner = indent + _INDENT
        kernel = stmt.body
        if not _is_generated_kernel(stmt):
            self._header(stmt, "spmd", args, indent)
            self.body(kernel, inner, results)
            return
        args += self._optimizations(kernel)
        self._header(stmt, "spmd", args, indent)
        first, *rest = S.flatten_to_stmts(kernel.body)
        if "task_id_var" in stmt.attrs or "manual_dep_edges" in stmt.attrs:
            self.body(kernel.body, inner, results)
            return
        header = self.lines.pop().lstrip()[len("with ") :]
        self.lines.append(f"{indent}for {self.names.define(first.var)} in {header}")
        self.body(S.seq(rest), inner, results)

    def _split_aiv(self, stmt: S.SplitAivScopeStmt, indent: str, results: tuple) -> None:
        first, *rest = S.flatten_to_stmts(stmt.body) or [None]
        if _binds(first, "tile.get_subblock_idx"):
            target, body = self.names.define(first.var), S.seq(rest)
        else:
            # The loop form always binds the lane, so reading the text adds the binding that a pass removed.
            target, body = self.names.fresh("aiv_id"), stmt.body
        mode = f"mode={self.pl}.SplitMode.{SplitMode(stmt.split).name}"
        self.lines.append(f"{indent}for {target} in {self.pl}.split_aiv({stmt.count}, {mode}):")
        outer, self.region_split = self.region_split, int(stmt.split)
        self.body(body, indent + _INDENT, results)
        self.region_split = outer

    def _runtime(self, stmt: S.RuntimeScopeStmt, indent: str, results: tuple) -> None:
        args = [f"mode={self.pl}.ScopeMode.MANUAL"] if stmt.manual else []
        self._header(stmt, "scope", args, indent)
        self.body(stmt.body, indent + _INDENT, results)

    def _comm_domain(self, stmt: S.CommDomainScopeStmt, indent: str, results: tuple) -> None:
        devices = self.value(stmt.devices) if stmt.devices else "all"
        slots = ", ".join([self.names.of.get(s.base) or s.base.name_hint for s in stmt.slots])
        self.lines.append(f"{indent}# pld.comm_domain: devices={devices}, slots=[{slots}]")
        self.stmts(S.flatten_to_stmts(stmt.body), indent, results)


def _is_index(expr: Any, value: int) -> bool:
    return type(expr) is E.ConstInt and expr.value == value and expr.dtype == DataType.INDEX


def _binds(stmt: Any, op: str) -> bool:
    return isinstance(stmt, S.AssignStmt) and type(stmt.value) is E.Call and stmt.value.op.name == op


def _seeds_task_id(stmt: S.Stmt, following: S.Stmt) -> bool:
    """True for ``tid = system.task_invalid()`` before the scope whose header, ``as tid``, stands for it."""
    return (
        isinstance(following, S.ScopeStmt)
        and _binds(stmt, "system.task_invalid")
        and following.attrs.get("task_id_var") is stmt.var
    )


def _is_generated_kernel(stmt: S.SpmdScopeStmt) -> bool:
    """True when the body is the InCore scope that the loop form of ``pl.spmd`` generates for itself."""
    kernel = stmt.body
    if not isinstance(kernel, S.InCoreScopeStmt) or set(kernel.attrs) - {"slot_num"}:
        return False
    stmts = S.flatten_to_stmts(kernel.body)
    hint = stmt.name_hint.removesuffix("_spmd")
    return bool(stmts) and _binds(stmts[0], "tile.get_block_idx") and kernel.name_hint in (hint, stmt.name_hint)
