"""How errors of any stage are shown: the source text as a note, and the exception hook for uncaught ones."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import traceback

import pypto.language as pl
import pytest
from pypto.errors import InternalError, user_error
from pypto.language.parser.diagnostics import ParserSyntaxError, attach_reports, located_errors, reports_of
from pypto.language.parser.diagnostics.reports import attached_reports

import pypto
from pypto import ir

SOURCE = "first\n    y = pl.cast(x)\nthird\n"


@pytest.fixture
def place(tmp_path):
    path = tmp_path / "kernel.py"
    path.write_text(SOURCE)
    return ir.Span(str(path), 2, 9)


def caught(error: Exception) -> Exception:
    """The error after it left the compile boundary."""
    with pytest.raises(type(error)) as info, located_errors():
        raise error
    assert info.value is error
    return error


def test_the_class_and_the_text_stay_and_the_source_is_a_note(place):
    error = caught(user_error("no such cast", span=place))
    assert type(error) is ValueError
    assert str(error).splitlines()[0] == f"no such cast [{place}]"
    assert error.__notes__ == [
        textwrap.dedent(f"""\
          --> {place}
          |
        1 | first
        2 |     y = pl.cast(x)
          |         ^^^^^^^ no such cast
        3 | third
          |""")
    ]
    if sys.version_info >= (3, 11):  # older tracebacks show no notes; the exception hook does
        assert "^^^^^^^ no such cast" in "".join(traceback.format_exception(error))


def test_a_report_is_attached_once(place):
    error = user_error("bad", span=place)
    with pytest.raises(ValueError), located_errors(), located_errors():
        raise error
    attach_reports(error)
    assert len(error.__notes__) == 1


def test_errors_without_a_place_stay_as_they_are():
    for error in (ValueError("bad"), user_error("bad"), ParserSyntaxError("bad"), InternalError("bad")):
        caught(error)
        assert not hasattr(error, "__notes__")
        assert attached_reports(error) == []


def test_a_file_that_is_gone_leaves_the_place():
    error = caught(user_error("bad", span=ir.Span("gone.py", 3, 1)))
    assert error.__notes__ == ["  --> gone.py:3:1"]


def test_variables_have_the_names_of_the_user(place):
    error = user_error("operand 'left__ssa_v3' meets 'acc__iter_v0' and 'y__rv_v1'", span=place)
    assert reports_of(error)[0].message == "operand 'left' meets 'acc' and 'y'"


def test_a_verification_shows_every_finding_up_to_five(place):
    class Finding:
        def __init__(self, message, severity="Error"):
            self.message, self.span = message, place
            self.severity = type("Severity", (), {"name": severity})

    many = [Finding("unused", "Warning"), *(Finding(f"wrong {n}") for n in range(7))]
    error = caught(pypto.Error("verification failed", many))
    assert [report.message for report in attached_reports(error)] == [f"wrong {n}" for n in range(5)]
    assert error.__notes__[0].count("-->") == 5
    assert error.__notes__[0].startswith("Error: wrong 0\n")


def test_an_assembler_error_points_at_the_users_line(place):
    from ptoas_bridge import AssemblerError

    error = caught(AssemblerError("row too short", hint="pad it", source_loc=f'"{place.filename}":2:9'))
    report = attached_reports(error)[0]
    assert (report.message, report.hint, report.span["line"]) == ("row too short", "pad it", 2)


def run(script: str, **environment: str) -> str:
    result = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        capture_output=True,
        text=True,
        env={**os.environ, "NO_COLOR": "1", **environment},
        check=False,
    )
    assert result.returncode == 1
    return result.stderr


RAISING = """
    import pypto.language as pl
    from pypto.errors import InternalError, user_error
    from pypto.ir import Span
    from pypto.language.parser.diagnostics import located_errors
    with located_errors():
        raise {error}
"""


def test_an_uncaught_user_error_is_shown_without_a_backtrace(place):
    script = RAISING.replace("{error}", f"user_error('no such cast', span=Span({place.filename!r}, 2, 9))")
    shown = run(script)
    assert shown.startswith(f"Error: no such cast\n  --> {place}\n")
    assert "2 |     y = pl.cast(x)\n  |         ^^^^^^^ no such cast\n" in shown
    assert "Traceback" not in shown
    assert "PTO_BACKTRACE=1" in shown
    assert "Traceback (most recent call last)" in run(script, PTO_BACKTRACE="1")


def test_an_uncaught_fault_of_the_compiler_keeps_its_backtrace(place):
    shown = run(RAISING.replace("{error}", f"InternalError('lost a tile', span=Span({place.filename!r}, 2, 9))"))
    assert "Traceback (most recent call last)" in shown
    assert "lost a tile" in shown
    assert "2 |     y = pl.cast(x)" in shown


def test_parsed_text_is_shown_from_memory():
    with pytest.raises(pypto.language.parser.diagnostics.UndefinedVariableError) as info:
        pl.parse("@pl.function\ndef f(x: pl.Tensor[[8, 8], pl.FP32]):\n    return pl.add(x, z)\n")
    assert "3 |     return pl.add(x, z)" in info.value.__notes__[0]
    assert "^ Undefined variable 'z'" in info.value.__notes__[0]
