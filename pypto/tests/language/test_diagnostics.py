"""How errors look: rendering, near names, concise messages, the exception hook."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pypto.language as pl
import pytest
from language_support import rejected
from pypto.language.parser.diagnostics import (
    ErrorRenderer,
    InvalidOperationError,
    ParserError,
    ParserSyntaxError,
    SSAViolationError,
    UndefinedVariableError,
    concise_error_message,
    did_you_mean,
)

SOURCE = ["one\n", "two\n", "    y = pl.foo(x)\n", "four\n", "five\n", "six\n"]


def render(error: ParserError) -> str:
    return ErrorRenderer(use_color=False).render(error)


def span(line: int, column: int, filename: str = "<text>") -> dict:
    return {
        "filename": filename, "file": filename, "line": line, "column": column, "begin_line": line,
        "begin_column": column,
    }  # fmt: skip


def test_the_whole_layout():
    error = ParserSyntaxError("Unknown op. More words.", span(3, 9), "use pl.add", "a note", SOURCE)
    assert render(error) == textwrap.dedent("""\
        Error: Unknown op. More words.
          --> <text>:3:9
          |
        1 | one
        2 | two
        3 |     y = pl.foo(x)
          |         ^^^^^^ Unknown op
        4 | four
        5 | five
          |
          = help: use pl.add
          = note: a note""")


def test_gutter_is_as_wide_as_the_last_line():
    error = ParserSyntaxError("bad", span(9, 1), source_lines=[f"line{i}\n" for i in range(1, 20)])
    lines = render(error).split("\n")
    assert " 7 | line7" in lines
    assert "11 | line11" in lines
    assert "   | ^^^^^ bad" in lines


@pytest.mark.parametrize("line", [0, 99])
def test_lines_outside_the_source(line):
    assert render(ParserSyntaxError("bad", span(line, 1), "help", source_lines=SOURCE)).startswith("Error: bad\n  --> ")


def test_without_a_location():
    assert render(ParserError("bad")) == "Error: bad"
    assert render(ParserError("bad", hint="do this")) == "Error: bad\n = help: do this"


def test_column_zero_is_not_printed():
    text = render(ParserSyntaxError("bad", span(3, 0), source_lines=SOURCE))
    assert "--> <text>:3\n" in text
    assert "^" not in text


def test_long_messages_are_not_repeated_at_the_caret():
    text = render(ParserSyntaxError("word " * 12, span(3, 9), source_lines=SOURCE))
    assert "  |         ^^^^^^\n" in text


def test_dotted_names_in_messages_are_not_cut():
    text = render(ParserSyntaxError("use pl.add here. Second", span(3, 9), source_lines=SOURCE))
    assert "^^^^^^ use pl.add here\n" in text


def test_tabs_count_four_columns():
    text = render(ParserSyntaxError("bad", span(1, 2), source_lines=["\tx = 1\n"]))
    assert "  |     ^ bad" in text


def test_the_file_wins_over_the_carried_lines(tmp_path):
    path = tmp_path / "user.py"
    path.write_text("from_the_file = 1\n")
    text = render(ParserSyntaxError("bad", span(1, 1, str(path)), source_lines=["carried\n"]))
    assert "from_the_file" in text
    assert "carried" not in text


def test_a_second_binding_shows_the_first():
    error = SSAViolationError("again", span(3, 1), previous_span=span(1, 1), source_lines=SOURCE, hint="rename")
    assert render(error).endswith(
        "\n\n   = note: Previous definition was here:\n     --> <text>:1:1\n       |\n     1 | one\n       | ^\n"
        "     2 | two\n  = help: rename"
    )


@pytest.mark.parametrize(
    ("environment", "tty", "expected"),
    [
        ({}, True, True), ({}, False, False), ({"NO_COLOR": ""}, True, False), ({"TERM": "dumb"}, True, False),
        ({"TERM": "dumb", "FORCE_COLOR": "1"}, True, True), ({"FORCE_COLOR": "1"}, False, False),
    ],
)  # fmt: skip
def test_colour_follows_terminal_and_environment(monkeypatch, environment, tty, expected):
    for name in ("NO_COLOR", "FORCE_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "stderr", type("Stream", (), {"isatty": lambda self: tty})())
    assert ErrorRenderer().use_color is expected


def test_colour_adds_only_escapes():
    error = ParserSyntaxError("bad", span(3, 9), "help", source_lines=SOURCE)
    import re

    coloured = ErrorRenderer(use_color=True).render(error)
    assert coloured != render(error)
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == render(error)


# -- texts -------------------------------------------------------------------------------------------------------


def test_near_names():
    assert did_you_mean("lod", ["load", "store"]) == "Did you mean 'load'?"
    assert did_you_mean("zzz", ["load", "store"]) is None


def test_misspelt_names_and_operations_are_explained():
    error = rejected(UndefinedVariableError, "Undefined variable 'valeu'", "value = pl.add(x, 1.0)\ny = valeu")
    assert "Did you mean 'value'?" in error.hint
    error = rejected(InvalidOperationError, "Unknown", "y = pl.tensor.ad(x, x)")
    assert "Did you mean" in error.hint


def test_names_that_differ_in_case_only_are_explained():
    error = rejected(UndefinedVariableError, "Undefined variable 'value'", "Value = pl.add(x, 1.0)\ny = value")
    assert error.hint is not None


def test_concise_messages():
    assert concise_error_message(ValueError("bad shape [f.py:3:4]\nCheck failed: a == b")) == "bad shape [f.py:3:4]"
    text = ValueError("bad shape [f.py:3:4]\nCheck failed: a == b")
    assert concise_error_message(text, strip_trailing_span=True) == "bad shape"
    assert concise_error_message(ValueError("kept [f.py:3:4]"), strip_trailing_span=True) == "kept [f.py:3:4]"
    assert "reported no message" in concise_error_message(ValueError("Check failed: a == b"))
    assert concise_error_message(ValueError("bad\n\nC++ Traceback (most recent call last):\n x")) == "bad"


# -- the hook ----------------------------------------------------------------------------------------------------

SCRIPT = """
import pypto.language as pl

@pl.function
def f(x: pl.Tensor[[8], pl.FP32]):
    y = pl.add(x, missing)
    return y
"""


def run(tmp_path, **environment) -> str:
    import os

    path = tmp_path / "script.py"
    path.write_text(SCRIPT)
    env = {k: v for k, v in os.environ.items() if k != "PTO_BACKTRACE"} | environment
    return subprocess.run([sys.executable, str(path)], capture_output=True, text=True, env=env, check=False).stderr


def test_uncaught_errors_are_rendered(tmp_path):
    text = run(tmp_path)
    assert text.startswith("Error: Undefined variable 'missing'")
    assert "script.py:6:19" in text
    assert "PTO_BACKTRACE=1" in text
    assert "Traceback" not in text


def test_the_backtrace_is_shown_on_demand(tmp_path):
    text = run(tmp_path, PTO_BACKTRACE="1")
    assert text.startswith("Error: Undefined variable 'missing'")
    assert "Traceback (most recent call last)" in text


def test_other_backtrace_values_are_errors(tmp_path):
    assert "PTO_BACKTRACE must be 0 or 1, got 'yes'" in run(tmp_path, PTO_BACKTRACE="yes")


def test_unexpected_exceptions_become_parser_errors():
    class Bad:
        def __index__(self):
            raise KeyError("inside")

    bad = Bad()
    with pytest.raises(ParserError):

        @pl.function
        def f(x: pl.Tensor[[8], pl.FP32]):
            y = pl.slice(x, [bad], [0])
            return y  # noqa: RET504


def test_tensor_operations_on_scalars_point_at_python_operators():
    error = rejected(InvalidOperationError, r"pl\.exp", "s = pl.tensor.read(x, [0, 0])\ny = pl.exp(s)")
    assert "Python operators" in error.hint


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("pl.tensor.exp(x, x, x)", r"exp\(\) takes 1 positional argument but 3 were given"),
        ("pl.tensor.reshape(x)", r"reshape\(\) missing 1 required positional argument: 'shape'"),
    ],
)
def test_argument_counts_are_worded_like_python(call, message):
    rejected(InvalidOperationError, message, f"y = {call}")
