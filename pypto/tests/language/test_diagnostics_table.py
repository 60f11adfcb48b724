"""Wrong programs and the exact answers: class, message, line, caret column and hint."""

from __future__ import annotations

import pytest
from wrong_programs_reader import FOLDER, Answer, Case, cases, run, shown

TABLES = sorted(path.stem for path in FOLDER.glob("*.txt"))
CASES = {f"{table}: {case.name}": case for table in TABLES for case in cases(table)}

#: Python's own words, which differ between versions: only the class and the place are compared.
PYTHON_WORDS = {"outside: text that is no Python", "outside: a file that does not exist"}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.filterwarnings("ignore")
def test_answers(name, tmp_path):
    case = CASES[name]
    if name.startswith("jit: ") or "torch" in case.source():
        pytest.importorskip("torch")
    answer = run(case, tmp_path)
    if name in PYTHON_WORDS and answer is not None and case.answer is not None:
        answer = Answer(answer.error, case.answer.message, answer.line, answer.column, answer.hint)
    assert shown(case, answer) == shown(case, case.answer)


def test_there_are_enough_of_them_and_names_are_unique():
    assert len(CASES) == sum(len(cases(table)) for table in TABLES) >= 150


def test_every_case_has_an_answer_and_most_have_a_place():
    assert [name for name, case in CASES.items() if case.answer is None] == []
    inside = [case for name, case in CASES.items() if not name.startswith(("outside: ", "jit: "))]
    assert sum(case.answer.line > 0 for case in inside) >= 0.95 * len(inside)


def test_the_caret_points_at_a_token():
    for name, case in CASES.items():
        answer = case.answer
        if answer is not None and answer.line:
            line = case.lines[answer.line - 1]
            assert answer.column <= len(line) and not line[answer.column - 1].isspace(), name


def test_the_reader_shows_what_it_read():
    text = "=== one\ny = pl.add(x)\n    ^ SomeError: no: colon\n    = do\n    = this\nreturn y\n"
    from wrong_programs_reader import _case

    case = _case(text.removeprefix("=== "))
    assert case == Case("one", ("y = pl.add(x)", "return y"), False, Answer("SomeError", "no: colon", 1, 5, "do this"))
    assert case.source().endswith("    y = pl.add(x)\n    return y\n")
    assert shown(case, case.answer).split("\n")[3] == "    = do this"
