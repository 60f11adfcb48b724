"""Every wrong program gets one error: the documented class, the line, a caret, and what would be right."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
from pypto.language.parser.diagnostics.reports import attached_reports, render_reports
from wrong_programs import WRONG_PROGRAMS, Wrong

from pypto import ir

STAGES = ("decorate", "compile", "run")


def attempt(wrong: Wrong, folder: Path) -> tuple[str, Exception]:
    """Write the program to a file, import it, compile it, run it: the stage that failed, and its error."""
    path = folder / f"{wrong.name}.py"
    path.write_text(wrong.text, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(wrong.name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    stage = "decorate"
    try:
        spec.loader.exec_module(module)
        stage, entry, args = "compile", module.ENTRY, getattr(module, "ARGS", [])
        if isinstance(entry, ir.Function):
            entry = ir.Program([entry], "P", entry.span)
        if isinstance(entry, ir.Program):
            compiled = ir.compile(entry, dump_passes=False)
        else:
            compiled = entry.compile(*args)
        stage = "run"
        compiled(*args)
    except Exception as error:
        return stage, error
    pytest.fail(f"{wrong.name} was accepted")


@pytest.mark.parametrize("wrong", WRONG_PROGRAMS, ids=lambda wrong: wrong.name)
def test_the_error_says_what_where_and_what_would_be_right(wrong, tmp_path):
    stage, error = attempt(wrong, tmp_path)
    assert (stage, type(error).__name__) == (wrong.stage, wrong.error), f"{error}"
    assert wrong.message in str(error)
    reports = attached_reports(error)
    if wrong.line:
        assert [report.span["line"] for report in reports][:1] == [wrong.line]
        assert Path(reports[0].span["filename"]).name == f"{wrong.name}.py"
        source = wrong.text.split("\n")[wrong.line - 1]
        assert source[reports[0].span["column"] - 1 :].startswith(wrong.caret)
        shown = render_reports(error)
        assert source in shown and "^" in shown
    advice = str(error) + "".join(report.hint or "" for report in reports)
    assert wrong.hint in advice


def test_names_and_places_are_given():
    assert len({wrong.name for wrong in WRONG_PROGRAMS}) == len(WRONG_PROGRAMS) >= 60
    assert all(wrong.line for wrong in WRONG_PROGRAMS if wrong.caret)
    assert all(wrong.stage in STAGES for wrong in WRONG_PROGRAMS)
