"""Decides whether a comment asks for a review: a pure function over the Markdown text, total and conservative.

The grammar follows CommonMark's block structure as far as it matters. Whatever is doubtful is *not* a command: a missed
command costs a repetition, a command nobody can see on the page must never run.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from codex_review_common import COMMAND

_BLOCK_TAGS = (
    "address|article|aside|base|basefont|blockquote|body|caption|center|col|colgroup|dd|details|dialog|dir|div|dl|dt|"
    "fieldset|figcaption|figure|footer|form|frame|frameset|h1|h2|h3|h4|h5|h6|head|header|hr|html|iframe|legend|li|link|"
    "main|menu|menuitem|meta|nav|noframes|ol|optgroup|option|p|param|search|section|source|summary|table|tbody|td|"
    "tfoot|th|thead|title|tr|track|ul"
)

_ATTRIBUTE = r"""\s+[A-Za-z_:][A-Za-z0-9_.:-]*(?:\s*=\s*(?:[^\s"'=<>`]+|'[^']*'|"[^"]*"))?"""
_OPEN_TAG = rf"<[A-Za-z][A-Za-z0-9-]*(?:{_ATTRIBUTE})*\s*/?>"
_CLOSE_TAG = r"</[A-Za-z][A-Za-z0-9-]*\s*>"

#: (opening, end) of the HTML blocks of CommonMark kinds 1 to 5; they span blank lines.
_SPANNING_HTML = (
    (
        re.compile(r"<(?:script|pre|style|textarea)(?:[ \t>]|$)", re.I),
        re.compile(r"</(?:script|pre|style|textarea)>", re.I),
    ),
    (re.compile(r"<!--"), re.compile(r"-->")),
    (re.compile(r"<\?"), re.compile(r"\?>")),
    (re.compile(r"<!\[CDATA\["), re.compile(r"\]\]>")),
    (re.compile(r"<![A-Za-z]"), re.compile(r">")),
)
_KIND_6 = re.compile(rf"</?(?:{_BLOCK_TAGS})(?:[ \t]|/?>|$)", re.I)
_KIND_7 = re.compile(rf"(?:{_OPEN_TAG}|{_CLOSE_TAG})[ \t]*", re.A)

_FENCE = re.compile(r"(`{3,}|~{3,})(.*)", re.S)
_LIST_MARKER = re.compile(r"(?:[-*+]|[0-9]{1,9}[.)])(?=[ \t]|$)")
_INLINE_HTML = re.compile(
    rf"<!--.*?-->|<\?.*?\?>|<!\[CDATA\[.*?\]\]>|<![A-Za-z][^>]*>|{_OPEN_TAG}|{_CLOSE_TAG}", re.S | re.A
)
#: Lines after which no paragraph is open, so that an HTML block of kind 7 may start.
_NOT_PARAGRAPH = re.compile(r"#{1,6}(?:[ \t]|$)|=+[ \t]*$|-+[ \t]*$|(?:[-*_][ \t]*){3,}$|\[[^\]]*\]:|\||<")
#: More possible paragraph starts than this in one run of lines: judge hidden text coarsely instead of exactly.
_MAX_STARTS = 32


class _Fence(NamedTuple):
    char: str
    length: int
    column: int  # least indentation of its content when it may belong to a list item, else 0


class _Html(NamedTuple):
    end: re.Pattern | None  # None: ends at a blank line
    column: int
    uncertain: bool = False  # the line may as well have continued a paragraph


def requests_review(body: object) -> bool:
    """Does this comment body hold the review command on a line of its own that a reader sees? Never raises."""
    if not isinstance(body, str) or COMMAND not in body.lower():
        return False
    return any(True for _ in _active_lines(re.split(r"\r\n|\n|\r", body)))


def _active_lines(lines: list[str]):
    """Yield the numbers of the active command lines."""
    block: _Fence | _Html | None = None
    quoted = False
    list_seen = False
    nested = False  # may a block deep inside a list still hide indented lines?
    paragraph = False  # is a paragraph certainly open before this line?
    run_start = 0  # first line of the current run of non-blank inline lines
    for number, line in enumerate(lines):
        indent, text = _indentation(line)
        if block is not None:
            if text and _ambiguous(block, indent, text):
                # Two readings exist and lead to different structures below: nothing after this line is trusted.
                return
            if not text and isinstance(block, _Html) and block.end is None:
                quoted = False  # the blank line that ends this block is outside it
            block = _continue(block, indent, text)
            run_start = number + 1
            paragraph = False
            continue
        if not text:
            quoted = paragraph = False
            run_start = number + 1
            continue
        column, content, marker_seen = _strip_list_markers(indent, text)
        list_seen = list_seen or marker_seen
        if indent <= 3:
            if content.startswith(">"):
                quoted = True
                paragraph = False
                continue
            # Only a block opened on a marker's line, or indented after a list, can belong to a list item.
            owner = column if marker_seen or (list_seen and indent) else 0
            block, opened = _open(content, owner, paragraph and not marker_seen, quoted)
            if opened:
                if isinstance(block, _Html) and block.end is None:
                    block = block._replace(uncertain=number > run_start)
                run_start = number + 1
                paragraph = False
                continue
            visible = not quoted and not (nested and indent)
            if visible and text.lower() == COMMAND and text.isascii():
                run_end = _run_end(lines, number)
                if not _hidden_inline(lines, run_start, number, run_end):
                    yield number
        elif list_seen and _open(content, 0, False, False)[1]:
            nested = True
        # An indented line continues a paragraph but, being code, opens none.
        paragraph = (
            (paragraph if indent > 3 else bool(content))
            and not (quoted or nested)
            and not _NOT_PARAGRAPH.match(content)
        )


def _indentation(line: str) -> tuple[int, str]:
    """Columns of leading white space (tabs stop at multiples of four) and the text after it."""
    columns = 0
    for position, char in enumerate(line):
        if char == " ":
            columns += 1
        elif char == "\t":
            columns += 4 - columns % 4
        else:
            return columns, line[position:].rstrip(" \t")
    return columns, ""


def _strip_list_markers(column: int, text: str) -> tuple[int, str, bool]:
    """Column and text after any sequence of list markers, and whether there was one."""
    seen = False
    match = _LIST_MARKER.match(text)
    while match:
        seen = True
        width, rest = _indentation(" " * ((column + match.end()) % 4) + text[match.end() :])
        width -= (column + match.end()) % 4
        column, text = column + match.end() + width, rest
        if width > 4:  # an indented code block inside the item: not the start of any other block
            return column, "", True
        match = _LIST_MARKER.match(text)
    return column, text, seen


def _open(content: str, column: int, in_paragraph: bool, quoted: bool) -> tuple[_Fence | _Html | None, bool]:
    """The block that this line opens, and whether it opens one (an HTML block may end on its own line)."""
    match = _FENCE.match(content)
    if match and not (match.group(1)[0] == "`" and "`" in match.group(2)):
        return _Fence(match.group(1)[0], len(match.group(1)), column), True
    for start, end in _SPANNING_HTML:
        if start.match(content):
            # The end is looked for in the whole line: `<!-->` is complete.
            return (None if end.search(content, 0 if end.pattern == ">" else 2) else _Html(end, column)), True
    if _KIND_6.match(content):
        return _Html(None, column), True
    if not in_paragraph and not quoted and _KIND_7.fullmatch(content):
        return _Html(None, column), True
    return None, False


def _ambiguous(block: _Fence | _Html, indent: int, text: str) -> bool:
    """May this line be outside the block as well as inside, or close it as well as not?

    The list item that may own the block ends at a line with less indentation; an indented closing fence closes it only
    if the item owns it; an HTML block that may have been paragraph text must not hide the start of another block.
    """
    if indent < block.column:
        return True
    if isinstance(block, _Fence):
        return block.column > 0 and indent > 3 and text[0] == block.char and not text.strip(block.char)
    return block.uncertain and (_open(_strip_list_markers(indent, text)[1], 0, True, False)[1] or text.startswith(">"))


def _continue(block: _Fence | _Html, indent: int, text: str) -> _Fence | _Html | None:
    """The block after one more line, None when that line ended it."""
    if isinstance(block, _Fence):
        run = re.fullmatch(r"(`+|~+)", text)
        closes = run and text[0] == block.char and len(text) >= block.length and indent <= 3
        return None if closes else block
    if block.end is None:
        return block if text else None
    return None if block.end.search(text) else block


def _run_end(lines: list[str], number: int) -> int:
    """One past the last non-blank line of the run that holds line `number`."""
    while number < len(lines) and lines[number].strip(" \t"):
        number += 1
    return number


def _hidden_inline(lines: list[str], start: int, command: int, end: int) -> bool:
    """Could the command line lie inside a code span, raw HTML, a link or an image of its paragraph?

    Headings and list items inside the run start paragraphs of their own; the line counts as hidden when it is hidden
    for any possible start.
    """
    before = "\n".join(lines[start:command])
    if _open_bracket(before):
        return True
    after = "\n".join(lines[command:end])
    if "`" not in before and "<" not in before:
        return False
    starts = [start] + [
        n
        for n in range(start + 1, command)
        if _is_boundary(lines[n]) or _is_boundary(lines[n - 1]) or "<" in lines[n - 1]
    ]
    if len(starts) > _MAX_STARTS or len(before) > 16384:
        return True
    for first in starts:
        head = "\n".join(lines[first:command]) + "\n"
        if _covers(head + after, len(head)):
            return True
    return False


def _is_boundary(line: str) -> bool:
    text = line.strip(" \t")
    return bool(_NOT_PARAGRAPH.match(text) or _LIST_MARKER.match(text) or text.startswith(">"))


def _open_bracket(text: str) -> bool:
    """Is a link text, link target or reference definition still open at the end of `text`? Errs towards yes."""
    if re.search(r"^[ \t]*(?:[-*+>]|[0-9]+[.)]|[ \t])*\[[^\]]*\]:", text, re.M):
        return True
    depth = 0
    for bracket in re.findall(r"[\[\]]", text):
        depth = depth + 1 if bracket == "[" else max(0, depth - 1)
    if depth:
        return True
    target = text.rfind("](")
    return target >= 0 and ")" not in text[target:]


def _covers(text: str, position: int) -> bool:
    """Does a code span or raw HTML of this paragraph text contain `position`?"""
    at = 0
    while at < position:
        char = text[at]
        if char == "\\" and at + 1 < len(text):
            at += 2
        elif char == "`":
            run = re.compile("`+").match(text, at)
            assert run is not None
            closing = re.compile(rf"(?<!`){'`' * len(run.group())}(?!`)").search(text, run.end())
            at = closing.end() if closing else run.end()
        elif char == "<":
            html = _INLINE_HTML.match(text, at)
            at = html.end() if html else at + 1
        else:
            at += 1
        if at > position:
            return True
    return False
