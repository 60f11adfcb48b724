"""The builder with explicit begin and end calls: a stack of open constructs, every call with its own span."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from pypto.errors import user_error
from pypto.ir import stmt as S
from pypto.ir.enums import ForKind, FunctionType, InlineLanguage, Level, ParamDirection, Role, ScopeKind, SplitMode
from pypto.ir.expr import Expr, GlobalVar, IterArg, Var, as_expr
from pypto.ir.node import make
from pypto.ir.program import Function, Program
from pypto.ir.span import UNKNOWN_SPAN, Span
from pypto.ir.types import Type


class _Context(msgspec.Struct, gc=False):
    """An open construct; ``fields`` holds what its node will be made of."""

    kind: str
    span: Span
    fields: dict[str, Any]
    comments: list[str] = []
    stmts: list[S.Stmt] = []


#: Constructs that hold statements.
_BODIES = ("function", "for loop", "while loop", "if statement", "scope")
_RESULTS = {"for loop": "return_vars", "while loop": "return_vars", "if statement": "return_vars"}


def combine_spans(begin: Span, end: Span) -> Span:
    """From the begin of one span to the end of another."""
    if end.end_line != -1:
        return Span(begin.filename, begin.begin_line, begin.begin_column, end.end_line, end.end_column)
    return Span(begin.filename, begin.begin_line, begin.begin_column, end.begin_line, end.begin_column)


def _body(stmts: list[S.Stmt], span: Span) -> S.Stmt:
    return stmts[0] if len(stmts) == 1 else make(S.SeqStmts, tuple(stmts), span)


class IRBuilder:
    """Builds functions and programs statement by statement."""

    def __init__(self) -> None:
        self._stack: list[_Context] = []
        self._pending_comments: list[list[str]] = []

    # -- state ------------------------------------------------------------------------------------------------------

    def _inside(self, kind: str) -> bool:
        return any(context.kind == kind for context in self._stack)

    def in_function(self) -> bool:
        return self._inside("function")

    def in_loop(self) -> bool:
        return self._inside("for loop") or self._inside("while loop")

    def in_if(self) -> bool:
        return self._inside("if statement")

    def in_program(self) -> bool:
        return self._inside("program")

    def _find(self, kind: str) -> _Context | None:
        return next((context for context in reversed(self._stack) if context.kind == kind), None)

    def _top(self, *kinds: str, what: str) -> _Context:
        """The innermost open construct, which must be one of ``kinds``."""
        top = self._stack[-1] if self._stack else None
        if top is None or top.kind not in kinds:
            where = "outside any construct" if top is None else f"inside a {top.kind}"
            raise user_error(f"Cannot {what}: {where}, not inside a {' or '.join(kinds)}", kind=RuntimeError)
        return top

    def _push(self, kind: str, span: Span, **fields: Any) -> None:
        self._stack.append(_Context(kind, span, fields, self._take_comments(), []))

    def _pop(self, kind: str, what: str) -> _Context:
        self._top(kind, what=what)
        return self._stack.pop()

    def discard(self, depth: int) -> None:
        """Drop every construct opened after the stack had ``depth`` entries, for use when an exception passes."""
        del self._stack[depth:]

    @property
    def depth(self) -> int:
        return len(self._stack)

    # -- statements -------------------------------------------------------------------------------------------------

    def emit(self, stmt: S.Stmt) -> S.Stmt:
        """Append a statement to the innermost open construct; it takes the pending comments."""
        top = self._stack[-1] if self._stack else None
        if top is None or top.kind not in _BODIES:
            raise user_error(
                "Cannot emit a statement: not inside a function or another valid context", kind=RuntimeError
            )
        if not isinstance(stmt, S.SeqStmts):
            comments = self._take_comments()
            if comments:
                S.attach_leading_comments(stmt, comments)
        top.stmts.append(stmt)
        return stmt

    def _emit_closed(self, context: _Context, stmt: S.Stmt) -> S.Stmt:
        if context.comments:
            S.attach_leading_comments(stmt, context.comments)
        if self._stack and self._stack[-1].kind in _BODIES:
            self._stack[-1].stmts.append(stmt)
        return stmt

    def push_pending_leading_comments(self, comments: Sequence[str]) -> None:
        """Comments for the next statement that is emitted."""
        self._pending_comments.append(list(comments))

    def pop_pending_leading_comments(self) -> list[str]:
        """The comments of the last push that no statement took yet."""
        return self._pending_comments.pop() if self._pending_comments else []

    def _take_comments(self) -> list[str]:
        if not self._pending_comments or not self._pending_comments[-1]:
            return []
        comments = self._pending_comments[-1]
        self._pending_comments[-1] = []
        return comments

    def var(self, name: str, type: Type, span: Span = UNKNOWN_SPAN) -> Var:
        return Var(name, type, span)

    def assign(self, var: Var, value: Any, span: Span = UNKNOWN_SPAN) -> S.Stmt:
        return self.emit(S.AssignStmt(var, as_expr(value, span), span))

    def return_(self, values: Sequence[Any] = (), span: Span = UNKNOWN_SPAN) -> S.Stmt:
        return self.emit(S.ReturnStmt([as_expr(v, span) for v in values], span))

    def yield_(self, values: Sequence[Any] = (), span: Span = UNKNOWN_SPAN) -> S.Stmt:
        return self.emit(S.YieldStmt([as_expr(v, span) for v in values], span))

    def eval_stmt(self, expr: Expr, span: Span = UNKNOWN_SPAN) -> S.Stmt:
        return self.emit(S.EvalStmt(expr, span))

    def break_stmt(self, span: Span = UNKNOWN_SPAN) -> S.Stmt:
        return self.emit(S.BreakStmt(span))

    def continue_stmt(self, span: Span = UNKNOWN_SPAN) -> S.Stmt:
        return self.emit(S.ContinueStmt(span))

    def inline_stmt(
        self, body: str, language: InlineLanguage = InlineLanguage.Python, span: Span = UNKNOWN_SPAN
    ) -> S.Stmt:
        return self.emit(S.InlineStmt(body, language, span))

    # -- functions --------------------------------------------------------------------------------------------------

    def begin_function(
        self,
        name: str,
        span: Span = UNKNOWN_SPAN,
        type: FunctionType = FunctionType.Opaque,
        level: Level | None = None,
        role: Role | None = None,
        attrs: dict[str, Any] | None = None,
        requires_runtime_binding: bool = False,
    ) -> None:
        """Open a function.

        Raises:
            RuntimeError: inside another function.
        """
        outer = self._find("function")
        if outer is not None:
            raise user_error(
                f"Cannot begin function '{name}': already inside function '{outer.fields['name']}' at {outer.span}",
                kind=RuntimeError,
            )
        self._push(
            "function", span, name=name, params=[], return_types=[], type=type, level=level, role=role,
            attrs=dict(attrs or {}), requires_runtime_binding=requires_runtime_binding,
        )  # fmt: skip

    def func_arg(
        self, name: str, type: Type, span: Span = UNKNOWN_SPAN, direction: ParamDirection = ParamDirection.In
    ) -> Var:
        """Add a parameter to the open function."""
        var = Var(name, type, span)
        self._top("function", what=f"add parameter '{name}'").fields["params"].append((var, direction))
        return var

    def return_type(self, type: Type) -> None:
        """Add a return type to the open function."""
        self._top("function", what="add a return type").fields["return_types"].append(type)

    def add_function_attrs(self, attrs: dict[str, Any]) -> None:
        """Merge attributes into the open function.

        Raises:
            ValueError: outside a function, or an attribute that is already set.
        """
        function = self._find("function")
        if function is None:
            raise user_error("Cannot add function attributes: not inside a function")
        present = function.fields["attrs"]
        for key in attrs:
            if key in present:
                raise user_error(f"function attribute '{key}' is already set")
        present.update(attrs)

    def end_function(self, end_span: Span = UNKNOWN_SPAN) -> Function:
        """Close the function and return it."""
        context = self._pop("function", "end a function")
        fields, span = context.fields, combine_spans(context.span, end_span)
        return Function(
            fields["name"], fields["params"], fields["return_types"], _body(context.stmts, span), span,
            type=fields["type"], level=fields["level"], role=fields["role"], attrs=fields["attrs"],
            requires_runtime_binding=fields["requires_runtime_binding"],
        )  # fmt: skip

    # -- loops ------------------------------------------------------------------------------------------------------

    def _check_body_context(self, what: str, span: Span, kind: type[Exception]) -> None:
        if not self._stack or self._stack[-1].kind not in _BODIES:
            raise user_error(
                f"Cannot begin {what}: not inside a function or another valid context at {span}", kind=kind
            )

    def begin_for_loop(
        self,
        loop_var: Var,
        start: Any,
        stop: Any,
        step: Any,
        span: Span = UNKNOWN_SPAN,
        kind: ForKind = ForKind.Sequential,
        attrs: dict[str, Any] | None = None,
    ) -> None:
        """Open a counted loop; RuntimeError outside a function."""
        self._check_body_context("for loop", span, RuntimeError)
        bounds = [as_expr(bound, span) for bound in (start, stop, step)]
        self._push(
            "for loop", span, loop_var=loop_var, bounds=bounds, iter_args=[], return_vars=[], loop_kind=kind,
            attrs=dict(attrs or {}),
        )  # fmt: skip

    def begin_while_loop(self, condition: Any, span: Span = UNKNOWN_SPAN) -> None:
        """Open a while loop; RuntimeError outside a function."""
        self._check_body_context("while loop", span, RuntimeError)
        self._push("while loop", span, condition=as_expr(condition, span), iter_args=[], return_vars=[])

    def add_iter_arg(self, iter_arg: IterArg) -> None:
        """Add a carried value to the open loop."""
        self._top("for loop", "while loop", what="add an iter_arg").fields["iter_args"].append(iter_arg)

    def add_return_var(self, var: Var) -> None:
        """Add a result to the open loop or branch."""
        self._top(*_RESULTS, what="add a return_var").fields["return_vars"].append(var)

    add_while_iter_arg = add_iter_arg
    add_while_return_var = add_return_var
    add_if_return_var = add_return_var

    def set_while_loop_condition(self, condition: Any) -> None:
        """Replace the condition of the open while loop, for conditions on its iter_args."""
        context = self._top("while loop", what="set a condition")
        context.fields["condition"] = as_expr(condition, context.span)

    def _check_carried(self, context: _Context) -> None:
        carried, results = len(context.fields["iter_args"]), len(context.fields["return_vars"])
        if carried != results:
            raise user_error(
                f"the {context.kind} has {carried} iter_args but {results} return_vars", span=context.span,
                kind=RuntimeError,
            )  # fmt: skip

    def end_for_loop(self, end_span: Span = UNKNOWN_SPAN) -> S.Stmt:
        """Close the loop, emit it and return it; RuntimeError unless iter_args and return_vars are equally many."""
        context = self._pop("for loop", "end a for loop")
        self._check_carried(context)
        fields, span = context.fields, combine_spans(context.span, end_span)
        loop = S.ForStmt(
            fields["loop_var"], *fields["bounds"], tuple(fields["iter_args"]), _body(context.stmts, span),
            tuple(fields["return_vars"]), span, fields["loop_kind"], fields["attrs"],
        )  # fmt: skip
        return self._emit_closed(context, loop)

    def end_while_loop(self, end_span: Span = UNKNOWN_SPAN) -> S.Stmt:
        """Close the loop, emit it and return it; RuntimeError unless iter_args and return_vars are equally many."""
        context = self._pop("while loop", "end a while loop")
        self._check_carried(context)
        fields, span = context.fields, combine_spans(context.span, end_span)
        loop = S.WhileStmt(
            fields["condition"], tuple(fields["iter_args"]), _body(context.stmts, span), tuple(fields["return_vars"]),
            span,
        )  # fmt: skip
        return self._emit_closed(context, loop)

    # -- branches ---------------------------------------------------------------------------------------------------

    def begin_if(self, condition: Any, span: Span = UNKNOWN_SPAN) -> None:
        """Open a branch; ValueError outside a function."""
        self._check_body_context("if statement", span, ValueError)
        self._push("if statement", span, condition=as_expr(condition, span), return_vars=[], then=None)

    def begin_else(self, span: Span = UNKNOWN_SPAN) -> None:
        """Start the else part; ValueError when it was started before."""
        context = self._top("if statement", what="begin an else part")
        if context.fields["then"] is not None:
            raise user_error("the if statement already has an else part", span=span)
        context.fields["then"] = _body(context.stmts, context.span)
        context.stmts = []

    def end_if(self, end_span: Span = UNKNOWN_SPAN) -> S.Stmt:
        """Close the branch, emit it and return it."""
        context = self._pop("if statement", "end an if statement")
        fields, span = context.fields, combine_spans(context.span, end_span)
        last = _body(context.stmts, span)
        then_body, else_body = (last, None) if fields["then"] is None else (fields["then"], last)
        branch = S.IfStmt(fields["condition"], then_body, else_body, tuple(fields["return_vars"]), span)
        return self._emit_closed(context, branch)

    # -- scopes -----------------------------------------------------------------------------------------------------

    def begin_scope(
        self,
        scope_kind: ScopeKind,
        span: Span = UNKNOWN_SPAN,
        level: Level | None = None,
        role: Role | None = None,
        split: SplitMode | None = None,
        name_hint: str = "",
        core_num: Any = None,
        sync_start: bool | None = None,
        manual: bool | None = None,
        attrs: dict[str, Any] | None = None,
    ) -> None:
        """Open a scope; ValueError when the argument that its kind needs is missing."""
        needed = {
            ScopeKind.Hierarchy: ("level", level), ScopeKind.Spmd: ("core_num", core_num),
            ScopeKind.SplitAiv: ("split", split), ScopeKind.Runtime: ("manual", manual),
        }.get(scope_kind)  # fmt: skip
        if needed is not None and needed[1] is None:
            raise user_error(f"a scope of kind {scope_kind.name} needs {needed[0]}", span=span)
        if scope_kind is ScopeKind.CommDomain:
            raise user_error("CommDomain scopes are created by a pass only", span=span)
        self._push(
            "scope", span, scope_kind=scope_kind, level=level, role=role, split=split, name_hint=name_hint,
            core_num=core_num, sync_start=bool(sync_start), manual=manual, attrs=dict(attrs or {}),
        )  # fmt: skip

    def end_scope(self, end_span: Span = UNKNOWN_SPAN) -> S.Stmt:
        """Close the scope, emit it and return it."""
        context = self._pop("scope", "end a scope")
        fields, span = context.fields, combine_spans(context.span, end_span)
        common = {
            "name_hint": fields["name_hint"], "body": _body(context.stmts, span), "span": span,
            "attrs": fields["attrs"],
        }  # fmt: skip
        match fields["scope_kind"]:
            case ScopeKind.InCore:
                scope = S.InCoreScopeStmt(fields["split"], **common)
            case ScopeKind.Cluster:
                scope = S.ClusterScopeStmt(**common)
            case ScopeKind.Hierarchy:
                scope = S.HierarchyScopeStmt(fields["level"], fields["role"], **common)
            case ScopeKind.Spmd:
                scope = S.SpmdScopeStmt(fields["core_num"], fields["sync_start"], **common)
            case ScopeKind.SplitAiv:
                scope = S.SplitAivScopeStmt(fields["split"], **common)
            case _:
                scope = S.RuntimeScopeStmt(fields["manual"], **common)
        return self._emit_closed(context, scope)

    # -- programs ---------------------------------------------------------------------------------------------------

    def begin_program(self, name: str, span: Span = UNKNOWN_SPAN) -> None:
        """Open a program; RuntimeError inside another construct."""
        if self._stack:
            raise user_error(f"Cannot begin program '{name}': inside a {self._stack[-1].kind}", kind=RuntimeError)
        self._push("program", span, name=name, declared={}, functions={})

    def declare_function(self, name: str) -> GlobalVar:
        """A reference to a function of the open program, which may be added later."""
        return self._program(f"declare function '{name}'").fields["declared"].setdefault(name, GlobalVar(name))

    def get_global_var(self, name: str) -> GlobalVar:
        """The reference to a declared function; RuntimeError when it was not declared."""
        found = self._program(f"look up function '{name}'").fields["declared"].get(name)
        if found is None:
            raise user_error(f"function '{name}' is not declared in the program", kind=RuntimeError)
        return found

    def add_function(self, function: Function) -> None:
        """Add a function to the open program; ValueError when its name is taken."""
        program = self._program(f"add function '{function.name}'")
        if function.name in program.fields["functions"]:
            raise user_error(f'Duplicate function name "{function.name}"')
        program.fields["declared"].setdefault(function.name, GlobalVar(function.name))
        program.fields["functions"][function.name] = function

    def get_function_return_types(self, op: GlobalVar) -> list[Type] | None:
        """Declared return types of a function added to the open program, None when it is not there yet."""
        program = self._find("program")
        function = None if program is None else program.fields["functions"].get(op.name)
        return None if function is None else list(function.return_types)

    def end_program(self, end_span: Span = UNKNOWN_SPAN) -> Program:
        """Close the program and return it."""
        context = self._pop("program", "end a program")
        functions = list(context.fields["functions"].values())
        return Program(functions, context.fields["name"], combine_spans(context.span, end_span))

    def _program(self, what: str) -> _Context:
        program = self._find("program")
        if program is None:
            raise user_error(f"Cannot {what}: not inside a program", kind=RuntimeError)
        return program
