"""Evaluates workflow expressions like the hosting side: coercion, comparison without case, implicit success()."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

_TOKEN = re.compile(r"\s*(?:('(?:[^']|'')*')|(-?\d+(?:\.\d+)?)|([A-Za-z_][\w-]*)|(&&|\|\||==|!=|[!().,]))")


def tokens(text: str) -> list:
    """Tokens of an expression; ValueError for anything unknown."""
    found, position = [], 0
    text = text.strip()
    while position < len(text):
        match = _TOKEN.match(text, position)
        if not match:
            raise ValueError(f"unreadable expression at {text[position : position + 20]!r}")
        found.append(match.group().strip())
        position = match.end()
    return found


def truthy(value: Any) -> bool:
    """Null, false, zero and the empty string are false."""
    return bool(value) or isinstance(value, (dict, list))


def equal(left: Any, right: Any) -> bool:
    """Loose equality: same types directly, strings without case, otherwise as numbers."""
    if isinstance(left, str) and isinstance(right, str):
        return left.lower() == right.lower()
    if type(left) is type(right):
        return left == right
    return _number(left) == _number(right)


def _number(value: Any) -> float:
    if value is None or value is False or value == "":
        return 0.0
    if value is True:
        return 1.0
    try:
        return float(value)
    except (TypeError, ValueError):
        return float("nan")


class _Parser:
    def __init__(self, text: str, contexts: dict, functions: dict) -> None:
        self.tokens, self.contexts, self.functions = tokens(text), contexts, functions

    def peek(self) -> Any:
        return self.tokens[0] if self.tokens else None

    def take(self, expected: Any = None) -> Any:
        token = self.tokens.pop(0)
        if expected is not None and token != expected:
            raise ValueError(f"expected {expected}, got {token}")
        return token

    def either(self) -> Any:
        value = self.both()
        while self.peek() == "||":
            self.take()
            right = self.both()
            value = value if truthy(value) else right
        return value

    def both(self) -> Any:
        value = self.comparison()
        while self.peek() == "&&":
            self.take()
            right = self.comparison()
            value = right if truthy(value) else value
        return value

    def comparison(self) -> Any:
        value = self.unary()
        while self.peek() in ("==", "!="):
            operator = self.take()
            value = equal(value, self.unary()) is (operator == "==")
        return value

    def unary(self) -> Any:
        if self.peek() == "!":
            self.take()
            return not truthy(self.unary())
        return self.primary()

    def primary(self) -> Any:
        token = self.take()
        if token == "(":
            value = self.either()
            self.take(")")
            return value
        if token[0] == "'":
            return token[1:-1].replace("''", "'")
        if re.fullmatch(r"-?\d+(\.\d+)?", token):
            return float(token)
        if token in ("true", "false", "null"):
            return {"true": True, "false": False, "null": None}[token]
        if self.peek() == "(":
            self.take()
            self.take(")")
            return self.functions[token]()
        if token not in self.contexts:
            raise ValueError(f"unknown context {token}")
        value = self.contexts[token]
        while self.peek() == ".":
            self.take()
            name = self.take()
            value = value.get(name) if isinstance(value, dict) else None
        return value


def evaluate(text: str, contexts: dict, functions: dict[str, Callable[[], bool]] | None = None) -> Any:
    """Value of one expression, without the ``${{ }}``."""
    parser = _Parser(text, contexts, functions or {})
    value = parser.either()
    if parser.tokens:
        raise ValueError(f"trailing {parser.tokens[:3]}")
    return value


def condition(text: Any, contexts: dict, functions: dict[str, Callable[[], bool]]) -> bool:
    """An ``if:``; without any status function it implies success()."""
    text = "success()" if text is None else str(text).strip()
    wrapped = re.fullmatch(r"\$\{\{(.*)\}\}", text, re.S)
    text = wrapped.group(1) if wrapped else text
    if not re.search(r"\b(success|failure|cancelled|always)\s*\(", text):
        text = f"success() && ({text})"
    return truthy(evaluate(text, contexts, functions))


def expand(text: Any, contexts: dict, functions: dict | None = None) -> str:
    """Text with every ``${{ }}`` replaced."""

    def replace(match: re.Match) -> str:
        value = evaluate(match.group(1), contexts, functions)
        if value is None:
            return ""
        if isinstance(value, bool):
            return str(value).lower()
        return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)

    return re.sub(r"\$\{\{(.*?)\}\}", replace, str(text), flags=re.S)
