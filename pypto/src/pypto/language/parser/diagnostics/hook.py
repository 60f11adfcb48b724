"""The exception hook that shows an uncaught error of the language or of a compile as a rendered report."""

from __future__ import annotations

import os
import sys
import traceback
from types import TracebackType

from pypto.language.parser.diagnostics.exceptions import ParserError
from pypto.language.parser.diagnostics.renderer import ErrorRenderer
from pypto.language.parser.diagnostics.reports import is_user_error, render_reports

_BACKTRACE_NOTE = "note: run with `PTO_BACKTRACE=1` environment variable to display a backtrace."


def install_excepthook() -> None:
    """Chain the hook in front of the current ``sys.excepthook``; calling it twice changes nothing."""
    previous = sys.excepthook
    if getattr(previous, "_renders_parser_errors", False):
        return

    def hook(kind: type[BaseException], value: BaseException, trace: TracebackType | None) -> None:
        if isinstance(value, ParserError):
            report = ErrorRenderer().render(value)
        elif is_user_error(value):
            report = render_reports(value)
        else:
            previous(kind, value, trace)
            return
        mode = os.environ.get("PTO_BACKTRACE", "0") or "0"
        if mode not in ("0", "1"):
            raise ValueError(f"PTO_BACKTRACE must be 0 or 1, got {mode!r}")
        print(report, file=sys.stderr)
        if mode == "1":
            print("".join(traceback.format_exception(kind, value, trace)), file=sys.stderr)
        else:
            print(_BACKTRACE_NOTE, file=sys.stderr)

    hook._renders_parser_errors = True  # type: ignore[attr-defined]
    sys.excepthook = hook
