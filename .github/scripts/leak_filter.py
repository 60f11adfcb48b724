"""Finds exact credential values in what a review is about to show; raw bytes and every decoded JSON string.

Encoded, split or partial values pass: this filter is a last net, not a boundary.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

#: Shorter values are no secrets worth the false alarms.
MINIMUM = 16


def leak_patterns(credential: Any) -> list[str]:
    """Every string value of at least 16 characters anywhere in the credential; ValueError when there is none."""
    patterns = sorted({text for text in _strings(credential, keys=False) if len(text) >= MINIMUM})
    if not patterns:
        raise ValueError("the credential holds no long value: the leak filter would be void")
    return patterns


def leaks(data: bytes, patterns: list[str]) -> bool:
    """Does `data` hold a pattern, as raw bytes or inside any JSON string of any line or of the whole?"""
    if any(pattern.encode("utf-8", "surrogatepass") in data for pattern in patterns):
        return True
    text = data.decode("utf-8", "replace")
    if any(pattern in text for pattern in patterns):
        return True
    return any(pattern in string for string in _decoded(text, 0) for pattern in patterns)


def _decoded(text: str, depth: int) -> Iterator[str]:
    """Strings of the JSON documents in the text, also of documents written inside strings (tool output)."""
    documents = []
    for part in [text, *text.split("\n")]:
        part = part.strip()
        if part[:1] in ("{", "[", '"'):
            try:
                documents.append(json.loads(part))
            except (ValueError, RecursionError):
                continue
            if part == text.strip():
                break
    for document in documents:
        for string in _strings(document):
            yield string
            if depth < 3 and ("\\" in string or '"' in string):
                yield from _decoded(string, depth + 1)
    if "\\" in text:
        yield _unescaped(text)


def _unescaped(text: str) -> str:
    """The text with JSON escapes resolved where they stand, for fragments that are no whole JSON document."""
    pieces = []
    position = 0
    while position < len(text):
        cut = text.find("\\", position)
        if cut < 0 or cut + 1 >= len(text):
            break
        pieces.append(text[position:cut])
        width = 6 if text[cut + 1] == "u" else 2
        try:
            pieces.append(json.loads(f'"{text[cut : cut + width]}"'))
        except ValueError:
            pieces.append(text[cut : cut + width])
        position = cut + width
    return "".join(pieces) + text[position:]


def _strings(value: Any, keys: bool = True) -> Iterator[str]:
    """Every string inside a JSON value; without recursion, so that depth cannot hurt."""
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            yield item
        elif isinstance(item, dict):
            stack.extend(item.values())
            if keys:
                stack.extend(item.keys())
        elif isinstance(item, list):
            stack.extend(item)
