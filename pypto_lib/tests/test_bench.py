"""The performance table: figures, verdicts, files, the command line, one group for real."""

from __future__ import annotations

import json

import pytest
from pypto_lib.bench.__main__ import GROUPS, main
from pypto_lib.bench.figures import Figure, cells, number, write_json
from pypto_lib.bench.measure import Effort, run_python, seconds_per_call
from pypto_lib.bench.synthetic import load, source


@pytest.mark.parametrize(
    ("value", "bar", "higher", "met"),
    [(1.0, 2.0, False, True), (3.0, 2.0, False, False), (3.0, 2.0, True, True), (1.0, 2.0, True, False),
     (2.0, 2.0, True, True), (1.0, None, True, None)],
)  # fmt: skip
def test_a_bar_is_a_limit_for_times_and_a_goal_for_rates(value, bar, higher, met):
    assert Figure("g", "n", value, "u", bar, higher).met is met


def test_a_ratio_above_one_is_always_better_than_the_reference():
    assert Figure("g", "time", 2.0, "s", reference=4.0).ratio == 2.0
    assert Figure("g", "rate", 8.0, "GB/s", higher=True, reference=4.0).ratio == 2.0
    assert Figure("g", "none", 8.0, "GB/s").ratio is None


def test_numbers_have_three_digits():
    assert [number(v) for v in (0.01234, 1.5, 123.4, 12345.6)] == ["0.0123", "1.5", "123", "12,346"]


def test_a_row_shows_the_verdict_beside_the_bar():
    row = cells(Figure("g", "add", 50.0, "GB/s", 40.0, True, 25.0, note="n"))
    assert row == ("add", "50 GB/s", "25 (torch)", "2.00x", ">= 40", "met", "n")


def test_the_file_holds_figures_verdicts_and_the_machine(tmp_path):
    target = tmp_path / "bench" / "latest.json"
    write_json(target, [Figure("g", "n", 1.0, "s", 2.0)], {"cores": 2})
    content = json.loads(target.read_text())
    assert content["machine"] == {"cores": 2}
    assert (content["figures"][0]["name"], content["figures"][0]["met"]) == ("n", True)


def test_the_median_call_is_timed():
    calls = []
    assert seconds_per_call(lambda: calls.append(1), 3, 0.003) >= 0.0
    assert len(calls) > 4


def test_a_failing_process_says_why(tmp_path):
    with pytest.raises(RuntimeError, match="no such thing"):
        run_python(["-c", "raise SystemExit('no such thing')"], {}, tmp_path)


def test_an_unknown_group_is_refused(capsys):
    with pytest.raises(SystemExit):
        main(["nothing"])
    assert "no group 'nothing'; known: start" in capsys.readouterr().err


def test_a_group_that_cannot_be_measured_is_reported(monkeypatch, tmp_path, capsys):
    import pypto_lib.bench.tasks

    def fail(effort):
        raise FileNotFoundError("no checkout")

    monkeypatch.setattr(pypto_lib.bench.tasks, "figures", fail)
    assert main(["tasks", "--json", str(tmp_path / "f.json")]) == 1
    assert "tasks: not measured: FileNotFoundError: no checkout" in capsys.readouterr().err


def test_the_synthetic_program_has_as_many_different_kernels_as_asked(tmp_path):
    program = load(5, tmp_path)
    assert len(program.functions) == 6
    assert len({line for line in source(5).splitlines() if "pl.mul(t," in line}) == 5


def test_the_task_group_prints_a_table_and_writes_the_file(tmp_path, capsys):
    target = tmp_path / "latest.json"
    assert main(["tasks", "--quick", "--json", str(target)]) == 0
    names = [figure["name"] for figure in json.loads(target.read_text())["figures"]]
    assert "dependent chain, per link" in names
    assert "bars met" in capsys.readouterr().out


def test_every_group_can_be_imported():
    import importlib

    for group in GROUPS:
        module = importlib.import_module(f"pypto_lib.bench.{group}")
        assert group == module.GROUP
    assert Effort().repeat > 1
