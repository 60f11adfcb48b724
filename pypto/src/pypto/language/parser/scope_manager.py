"""Names of a body: a stack of scopes from names to values."""

from __future__ import annotations

from typing import Any

from pypto.language.parser.diagnostics.exceptions import SSAViolationError


class ScopeManager:
    """Innermost-out lookup over a stack whose bottom is the ``global`` scope.

    With ``strict_ssa`` a second definition of a name in one scope is an :class:`SSAViolationError`.
    """

    def __init__(self, strict_ssa: bool = False):
        self.strict_ssa = strict_ssa
        self.scopes: list[dict[str, Any]] = [{}]
        self._types: list[str] = ["global"]
        self._spans: dict[str, Any] = {}
        self._yielded: list[list[str]] = [[]]

    def enter_scope(self, scope_type: str) -> None:
        self.scopes.append({})
        self._types.append(scope_type)
        self._yielded.append([])

    def exit_scope(self, leak_vars: bool = False) -> dict[str, Any]:
        """Leave the innermost scope and return its names; ``leak_vars`` makes them visible outside."""
        if len(self.scopes) == 1:
            raise RuntimeError("Cannot exit global scope")
        names = self.scopes.pop()
        self._types.pop()
        self._yielded.pop()
        if leak_vars:
            self.scopes[-1].update(names)
        return names

    def define_var(self, name: str, value: Any, allow_redef: bool = False, span: Any = None) -> None:
        """Bind ``name`` in the innermost scope."""
        if self.strict_ssa and not allow_redef and name in self.scopes[-1]:
            raise SSAViolationError(
                f"Variable '{name}' is already defined",
                span,
                previous_span=self._spans.get(name),
                hint="Use a new name for the new value, or drop strict_ssa=True",
            )
        self.scopes[-1][name] = value
        if span is not None:
            self._spans[name] = span

    def lookup_var(self, name: str) -> Any:
        """The value of ``name``, None when it is not defined."""
        for scope in reversed(self.scopes):
            if name in scope:
                return scope[name]
        return None

    def previous_span(self, name: str) -> Any:
        """Where ``name`` was last defined, None when unknown."""
        return self._spans.get(name)

    def is_defined(self, name: str) -> bool:
        return any(name in scope for scope in self.scopes)

    def is_local(self, name: str) -> bool:
        """True when the innermost scope itself binds ``name``."""
        return name in self.scopes[-1]

    def visible_names(self) -> set[str]:
        """Every name that :meth:`lookup_var` finds."""
        return {name for scope in self.scopes for name in scope}

    def mark_yielded(self, name: str) -> None:
        self._yielded[-1].append(name)

    def get_yielded_vars(self) -> list[str]:
        return self._yielded[-1]

    def current_scope_type(self) -> str:
        return self._types[-1]

    def in_scope_type(self, scope_type: str) -> bool:
        return scope_type in self._types
