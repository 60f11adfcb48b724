"""Errors of every stage as located reports: the user's line with a caret, whatever class was raised.

A pass raises ``ValueError``, a verifier ``pypto.Error``, the assembler its own error, and a caller's ``except`` relies
on those classes. So the place is not put into a new exception: at the compile boundary the report becomes a note of
the exception that is in flight, and the exception hook prints it like a language error.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pypto.errors import InternalError
from pypto.language.parser.diagnostics.exceptions import ParserError
from pypto.language.parser.diagnostics.messages import concise_error_message
from pypto.language.parser.diagnostics.renderer import ErrorRenderer

#: Findings of one verification that are shown with their source; the message lists all of them.
_SHOWN = 5
_ATTRIBUTE = "_pypto_reports"
_TRAILING_PLACE = re.compile(r"\[(?P<file>[^\[\]\n]+):(?P<line>\d+):(?P<column>\d+)\]$")
_ASSEMBLER_LOC = re.compile(r'^"(?P<file>.*)":(?P<line>\d+):(?P<column>\d+)$')
_VERSION = re.compile(r"\b([A-Za-z]\w*?)__(?:ssa|iter|rv|phi)_v\d+\b")


@contextmanager
def located_errors() -> Iterator[None]:
    """Exceptions that leave the block carry the source text of the places they name."""
    try:
        yield
    except Exception as error:
        attach_reports(error)
        raise


def attach_reports(error: BaseException) -> None:
    """Add the located reports of ``error`` to it as a note, once; errors that name no place stay as they are."""
    if getattr(error, _ATTRIBUTE, None) is not None:
        return
    reports = reports_of(error)
    if not any(report.span for report in reports):
        return
    setattr(error, _ATTRIBUTE, reports)
    alone = len(reports) == 1
    _add_note(error, "\n".join(_section(report, with_message=not alone) for report in reports))


def attached_reports(error: BaseException) -> list[ParserError]:
    """What :func:`attach_reports` found, or nothing."""
    return getattr(error, _ATTRIBUTE, None) or []


def rename(error: BaseException, renamed: Any) -> None:
    """Apply ``renamed(text)`` to what was attached."""
    for report in attached_reports(error):
        if report is not error:
            report.message = renamed(report.message)
    if getattr(error, "__notes__", None):
        error.__notes__ = [renamed(note) if isinstance(note, str) else note for note in error.__notes__]


def reports_of(error: BaseException) -> list[ParserError]:
    """The places that an error names.

    Understood are language errors, verification errors (``diagnostics``), failed code generation (``failures``, pairs
    of unit and exception), assembler errors (``source_loc``) and anything with a ``span`` or whose first line ends in
    ``[file:line:column]``, as the errors of a run do.
    """
    if isinstance(error, ParserError):
        return [error]
    failures = getattr(error, "failures", None)
    if failures:
        return [report for name, cause in failures[:_SHOWN] for report in _of_unit(name, cause)]
    diagnostics = getattr(error, "diagnostics", None)
    if diagnostics:
        wrong = [d for d in diagnostics if d.severity.name == "Error"]
        return [ParserError(_user_names(d.message), d.span) for d in wrong[:_SHOWN]]
    message = _user_names(concise_error_message(error, strip_trailing_span=True))
    hint = getattr(error, "hint", None) or None
    place = getattr(error, "source_loc", None)
    if isinstance(place, str) and (match := _ASSEMBLER_LOC.match(place)):
        return [ParserError(getattr(error, "message", message), _span(match), hint)]
    span = getattr(error, "span", None)
    if span is None and (match := _TRAILING_PLACE.search(message.split("\n", 1)[0])):
        span = _span(match)
    return [ParserError(message, span, hint)]


def render_reports(error: BaseException) -> str:
    """The attached reports as the exception hook prints them."""
    renderer = ErrorRenderer()
    return "\n\n".join(renderer.render(report) for report in attached_reports(error))


def is_user_error(error: BaseException) -> bool:
    """Whether the attached reports tell the user everything; a fault of the compiler needs its traceback."""
    return bool(attached_reports(error)) and not isinstance(error, InternalError)


def _of_unit(name: str, cause: BaseException) -> list[ParserError]:
    reports = reports_of(cause)
    return [ParserError(f"{name}: {r.message}", r.span, r.hint, r.note, r.source_lines) for r in reports]


def _section(report: ParserError, *, with_message: bool) -> str:
    text = ErrorRenderer(use_color=False).render(report)
    if with_message or "\n  --> " not in text:
        return text
    _, arrow, place = text.partition("  --> ")
    return arrow + place


def _span(match: re.Match) -> dict[str, Any]:
    line, column = int(match["line"]), int(match["column"])
    return {
        "filename": match["file"], "file": match["file"], "line": line, "column": column, "begin_line": line,
        "begin_column": column,
    }  # fmt: skip


def _user_names(text: str) -> str:
    """Variables under the names the user gave them (``x`` for ``x__ssa_v3``)."""
    return _VERSION.sub(r"\1", text)


def _add_note(error: BaseException, note: str) -> None:
    if hasattr(error, "add_note"):
        error.add_note(note)
    else:  # Python 3.10 has no notes in tracebacks; the exception hook shows the report there
        error.__notes__ = [*getattr(error, "__notes__", []), note]  # type: ignore[attr-defined]
