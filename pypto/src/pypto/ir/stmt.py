"""Statements. ``leading_comments`` are kept by mutators and serialisation and never compared."""

from __future__ import annotations

from typing import Any, ClassVar

import msgspec

from pypto.errors import InternalError
from pypto.ir.enums import ForKind, InlineLanguage, Level, Role, ScopeKind, SplitMode
from pypto.ir.expr import as_dim
from pypto.ir.node import IRNode, NodeTuple, OverloadedMeta, freeze, make
from pypto.ir.span import UNKNOWN_SPAN, Span


def _comments() -> Any:
    return msgspec.field(default_factory=list)


def _freeze_carried(loop: Any) -> None:
    for name in ("iter_args", "return_vars"):
        if type(getattr(loop, name)) is not NodeTuple:
            freeze(loop, name)


class Stmt(IRNode, frozen=True, eq=False, gc=False):
    """Base of statements."""


class AssignStmt(Stmt, frozen=True, eq=False, gc=False):
    """``var = value``; defines ``var``."""

    DEFS: ClassVar[tuple[str, ...]] = ("var",)

    var: Any
    value: Any
    span: Span = UNKNOWN_SPAN
    leading_comments: list = _comments()


class IfStmt(Stmt, frozen=True, eq=False, gc=False):
    """Branch; with ``return_vars`` both bodies end in a YieldStmt of the same arity."""

    DEFS: ClassVar[tuple[str, ...]] = ("return_vars",)

    condition: Any
    then_body: Any
    else_body: Any
    return_vars: tuple
    span: Span = UNKNOWN_SPAN
    leading_comments: list = _comments()

    def __post_init__(self) -> None:
        if type(self.return_vars) is not NodeTuple:
            freeze(self, "return_vars")


class ForStmt(Stmt, frozen=True, eq=False, gc=False):
    """Counted loop over ``[start, stop)``; ``iter_args`` carry values, ``return_vars`` hold them afterwards."""

    DEFS: ClassVar[tuple[str, ...]] = ("loop_var", "iter_args", "return_vars")

    loop_var: Any
    start: Any
    stop: Any
    step: Any
    iter_args: tuple
    body: Any
    return_vars: tuple
    span: Span = UNKNOWN_SPAN
    kind: ForKind = ForKind.Sequential
    attrs: dict | None = None
    leading_comments: list = _comments()

    def __post_init__(self) -> None:
        for name in ("start", "stop", "step"):
            if isinstance(getattr(self, name), int):
                freeze(self, name, as_dim)
        _freeze_carried(self)
        freeze(self, "attrs", lambda attrs: dict(attrs or {}))


class WhileStmt(Stmt, frozen=True, eq=False, gc=False):
    """Loop while ``condition`` holds; the condition may use the iter_args."""

    DEFS: ClassVar[tuple[str, ...]] = ("iter_args", "return_vars")

    condition: Any
    iter_args: tuple
    body: Any
    return_vars: tuple
    span: Span = UNKNOWN_SPAN
    leading_comments: list = _comments()

    def __post_init__(self) -> None:
        _freeze_carried(self)


class _ValuesStmt(Stmt, frozen=True, eq=False, gc=False, metaclass=OverloadedMeta):
    """Base of statements that carry a list of values."""

    value: tuple
    span: Span = UNKNOWN_SPAN
    leading_comments: list = _comments()

    def __post_init__(self) -> None:
        if type(self.value) is not NodeTuple:
            freeze(self, "value")

    @staticmethod
    def _normalize(values=(), span=UNKNOWN_SPAN, leading_comments=None) -> tuple:
        if isinstance(values, Span):
            values, span = (), values
        return NodeTuple(values), span, list(leading_comments or ())


class YieldStmt(_ValuesStmt, frozen=True, eq=False, gc=False):
    """Gives the values of the enclosing loop iteration or branch."""


class ReturnStmt(_ValuesStmt, frozen=True, eq=False, gc=False):
    """Returns from the function."""


class EvalStmt(Stmt, frozen=True, eq=False, gc=False):
    """An expression evaluated for its effect."""

    expr: Any
    span: Span = UNKNOWN_SPAN
    leading_comments: list = _comments()


class SeqStmts(Stmt, frozen=True, eq=False, gc=False):
    """A sequence; it does not flatten nested ones and carries no comments."""

    stmts: tuple
    span: Span = UNKNOWN_SPAN

    def __post_init__(self) -> None:
        if type(self.stmts) is not NodeTuple:
            freeze(self, "stmts")

    @property
    def leading_comments(self) -> list:
        return []

    def __getitem__(self, index: int) -> Stmt:
        if not -len(self.stmts) <= index < len(self.stmts):
            raise IndexError(f"statement index {index} out of range for {len(self.stmts)} statements")
        return self.stmts[index]

    def __len__(self) -> int:
        return len(self.stmts)

    def __iter__(self):
        return iter(self.stmts)


class BreakStmt(Stmt, frozen=True, eq=False, gc=False):
    """Leaves the innermost loop."""

    span: Span = UNKNOWN_SPAN
    leading_comments: list = _comments()


class ContinueStmt(Stmt, frozen=True, eq=False, gc=False):
    """Next iteration of the innermost loop."""

    span: Span = UNKNOWN_SPAN
    leading_comments: list = _comments()


class InlineStmt(Stmt, frozen=True, eq=False, gc=False):
    """Opaque source text."""

    body: str
    language: InlineLanguage = InlineLanguage.Python
    span: Span = UNKNOWN_SPAN
    leading_comments: list = _comments()


class ScopeStmt(Stmt, frozen=True, eq=False, gc=False):
    """Base of scopes: run once, their definitions stay visible. Abstract.

    Reserved attrs: ``task_id_var``, ``manual_dep_edges``, ``arg_direction_overrides_vars``, ``dump_vars``,
    ``slot_num``, ``allow_early_resolve``, ``predicate``, ``cache_policy_vars``.
    """

    def __post_init__(self) -> None:
        if type(self) is ScopeStmt:
            raise TypeError("ScopeStmt is abstract")

    scope_kind: ClassVar[ScopeKind]


def _scope_fields(name_hint: str, body: Any, span: Any, attrs: Any, leading_comments: Any) -> tuple:
    if body is None:
        raise TypeError("a scope needs a body")
    return name_hint, body, span or UNKNOWN_SPAN, dict(attrs or {}), list(leading_comments or ())


class InCoreScopeStmt(ScopeStmt, frozen=True, eq=False, gc=False, metaclass=OverloadedMeta):
    """Statements that run on one core group."""

    scope_kind: ClassVar[ScopeKind] = ScopeKind.InCore
    split: SplitMode
    name_hint: str
    body: Any
    span: Span
    attrs: dict
    leading_comments: list

    @staticmethod
    def _normalize(split=SplitMode.NONE, name_hint="", *, body, span=None, attrs=None, leading_comments=None) -> tuple:
        split = SplitMode.NONE if split is None else split
        return (split, *_scope_fields(name_hint, body, span, attrs, leading_comments))


class ClusterScopeStmt(ScopeStmt, frozen=True, eq=False, gc=False, metaclass=OverloadedMeta):
    """Statements that run together on one cluster (one cube core and its vector cores)."""

    scope_kind: ClassVar[ScopeKind] = ScopeKind.Cluster
    name_hint: str
    body: Any
    span: Span
    attrs: dict
    leading_comments: list

    @staticmethod
    def _normalize(name_hint="", *, body, span=None, attrs=None, leading_comments=None) -> tuple:
        return _scope_fields(name_hint, body, span, attrs, leading_comments)


class HierarchyScopeStmt(ScopeStmt, frozen=True, eq=False, gc=False, metaclass=OverloadedMeta):
    """Statements placed at a level of the machine."""

    scope_kind: ClassVar[ScopeKind] = ScopeKind.Hierarchy
    level: Level
    role: Role | None
    name_hint: str
    body: Any
    span: Span
    attrs: dict
    leading_comments: list

    @staticmethod
    def _normalize(level, role=None, name_hint="", *, body, span=None, attrs=None, leading_comments=None) -> tuple:
        return (level, role, *_scope_fields(name_hint, body, span, attrs, leading_comments))


class SpmdScopeStmt(ScopeStmt, frozen=True, eq=False, gc=False, metaclass=OverloadedMeta):
    """The body runs as ``core_num`` blocks of one task."""

    scope_kind: ClassVar[ScopeKind] = ScopeKind.Spmd
    core_num: Any
    sync_start: bool
    name_hint: str
    body: Any
    span: Span
    attrs: dict
    leading_comments: list

    @staticmethod
    def _normalize(
        core_num, sync_start=False, name_hint="", *, body, span=None, attrs=None, leading_comments=None
    ) -> tuple:
        return (as_dim(core_num), sync_start, *_scope_fields(name_hint, body, span, attrs, leading_comments))


class SplitAivScopeStmt(ScopeStmt, frozen=True, eq=False, gc=False, metaclass=OverloadedMeta):
    """The body runs on both vector lanes, split by rows or columns, or task-parallel (``NONE``)."""

    scope_kind: ClassVar[ScopeKind] = ScopeKind.SplitAiv
    split: SplitMode
    count: int
    name_hint: str
    body: Any
    span: Span
    attrs: dict
    leading_comments: list

    @staticmethod
    def _normalize(split, count=2, name_hint="", *, body, span=None, attrs=None, leading_comments=None) -> tuple:
        if count != 2:
            raise InternalError(f"SplitAivScopeStmt count must be 2, got {count}")
        return (split, count, *_scope_fields(name_hint, body, span, attrs, leading_comments))


class RuntimeScopeStmt(ScopeStmt, frozen=True, eq=False, gc=False, metaclass=OverloadedMeta):
    """Scope of the task runtime; ``manual`` means that only declared dependencies count."""

    scope_kind: ClassVar[ScopeKind] = ScopeKind.Runtime
    manual: bool
    name_hint: str
    body: Any
    span: Span
    attrs: dict
    leading_comments: list

    @staticmethod
    def _normalize(manual=False, name_hint="", *, body, span=None, attrs=None, leading_comments=None) -> tuple:
        return (manual, *_scope_fields(name_hint, body, span, attrs, leading_comments))


class CommDomainScopeStmt(ScopeStmt, frozen=True, eq=False, gc=False, metaclass=OverloadedMeta):
    """Windows (``slots``) live for the body on ``devices``, ints or expressions, empty for all. Made by a pass only."""

    DEFS: ClassVar[tuple[str, ...]] = ("slots",)
    scope_kind: ClassVar[ScopeKind] = ScopeKind.CommDomain
    devices: tuple
    slots: tuple
    name_hint: str
    body: Any
    span: Span
    attrs: dict
    leading_comments: list

    def __post_init__(self) -> None:
        freeze(self, "devices")
        freeze(self, "slots")

    @staticmethod
    def _normalize(devices, slots, name_hint="", *, body, span=None, attrs=None, leading_comments=None) -> tuple:
        return (devices, slots, *_scope_fields(name_hint, body, span, attrs, leading_comments))


SCOPE_CLASSES: tuple[type, ...] = (
    InCoreScopeStmt, ClusterScopeStmt, HierarchyScopeStmt, SpmdScopeStmt, SplitAivScopeStmt, RuntimeScopeStmt,
    CommDomainScopeStmt,
)  # fmt: skip


def attach_leading_comments(stmt: Stmt, comments: list[str]) -> Stmt:
    """Replace the leading comments of ``stmt`` in place (the only sanctioned mutation) and return it.

    Raises:
        ValueError: for a SeqStmts.
    """
    if isinstance(stmt, SeqStmts):
        raise ValueError("a SeqStmts may not carry comments")
    stmt.leading_comments[:] = comments
    return stmt


def seq(stmts: Any, span: Span = UNKNOWN_SPAN) -> Stmt:
    """Statements as a body: nested sequences are flattened, a single one stands for itself."""
    flat: list[Stmt] = []
    for stmt in stmts:
        if isinstance(stmt, SeqStmts):
            flat.extend(flatten_to_stmts(stmt))
        else:
            flat.append(stmt)
    return flat[0] if len(flat) == 1 else make(SeqStmts, NodeTuple(flat), span)


def flatten_to_stmts(stmt: Stmt | None) -> list[Stmt]:
    """The children of a SeqStmts (nested ones flattened), ``[stmt]``, or ``[]`` for None."""
    if stmt is None:
        return []
    if not isinstance(stmt, SeqStmts):
        return [stmt]
    flat: list[Stmt] = []
    for child in stmt.stmts:
        flat.extend(flatten_to_stmts(child))
    return flat
