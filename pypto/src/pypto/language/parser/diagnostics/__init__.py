"""Errors of the language and how they are shown."""

from __future__ import annotations

from pypto.language.parser.diagnostics.exceptions import (
    BUG_CLASS_EXCEPTIONS,
    ErrorCode,
    InvalidOperationError,
    ParserError,
    ParserSyntaxError,
    ParserTypeError,
    ScopeIsolationError,
    SSAViolationError,
    UndefinedVariableError,
    UnsupportedFeatureError,
)
from pypto.language.parser.diagnostics.hook import install_excepthook
from pypto.language.parser.diagnostics.messages import concise_error_message, did_you_mean
from pypto.language.parser.diagnostics.renderer import ErrorRenderer
from pypto.language.parser.diagnostics.reports import attach_reports, located_errors, reports_of
