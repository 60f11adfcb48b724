"""``#`` comments of a source text, by line."""

from __future__ import annotations

import io
import tokenize


def extract_line_comments(source: str) -> dict[int, list[tuple[int, str]]]:
    """Line -> [(column, text)] of every comment; one ``#`` and one following space are stripped.

    A text that cannot be tokenised to its end gives the comments found so far.
    """
    found: dict[int, list[tuple[int, str]]] = {}
    if "#" not in source:
        return found
    try:
        for token in tokenize.generate_tokens(io.StringIO(source).readline):
            if token.type == tokenize.COMMENT:
                text = token.string[1:]
                found.setdefault(token.start[0], []).append((token.start[1], text.removeprefix(" ").rstrip()))
    except (tokenize.TokenError, IndentationError, SyntaxError):
        pass
    return found
