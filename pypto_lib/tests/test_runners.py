"""The script runner, the conformance report and the example catalogue."""

from __future__ import annotations

import textwrap

import pytest
from pypto_lib.conformance import outcomes, select_files
from pypto_lib.e2e.catalogue import example_names, load_example, select
from pypto_lib.run_scripts import find_scripts, run_script


def test_scripts_are_found_below_folders_without_private_files(tmp_path):
    for name in ("a.py", "__init__.py", "_helper.py", "sub/b.py", "notes.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("")
    assert [p.name for p in find_scripts([tmp_path])] == ["a.py", "b.py"]
    with pytest.raises(ValueError, match="no such file"):
        find_scripts([tmp_path / "missing"])


@pytest.mark.parametrize(
    ("body", "ok", "detail"),
    [
        ("print('first'); print('OK')", True, "OK"),
        ("raise SystemExit('went wrong')", False, "went wrong"),
        ("import time; time.sleep(60)", False, "no end after"),
        ("import os; os.kill(os.getpid(), 9)", False, ""),
    ],
)
def test_a_script_is_judged_by_how_it_ends(tmp_path, body, ok, detail):
    script = tmp_path / "script.py"
    script.write_text(body)
    result = run_script(script, timeout=3.0, platform=None)
    assert (result.ok, detail in result.detail) == (ok, True)


def test_the_platform_reaches_only_scripts_that_know_it(tmp_path):
    knows, ignores = tmp_path / "knows.py", tmp_path / "ignores.py"
    knows.write_text("import sys\nprint(sys.argv[1:])  # --platform")
    ignores.write_text("import sys\nprint(sys.argv[1:])")
    assert run_script(knows, 20.0, "a5sim").detail == "['--platform', 'a5sim']"
    assert run_script(ignores, 20.0, "a5sim").detail == "[]"


def test_conformance_counts_by_area(tmp_path):
    report = tmp_path / "report.xml"
    report.write_text(
        textwrap.dedent("""
        <testsuites><testsuite>
        <testcase classname="tests.ut.ir.core.test_x" name="a"/>
        <testcase classname="tests.ut.ir.core.test_x" name="b"><failure/></testcase>
        <testcase classname="tests.ut.jit.test_y" name="c"><skipped/></testcase>
        </testsuite></testsuites>""").strip()
    )
    table = outcomes(report)
    assert table["ir/core"] == {"passed": 1, "failed": 1}
    assert table["jit"] == {"skipped": 1}


def test_conformance_selects_files_by_area(tmp_path):
    for name in ("tests/ut/ir/core/test_a.py", "tests/ut/jit/test_b.py", "tests/st/test_c.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    assert select_files(tmp_path, ["ir/core"]) == ["tests/ut/ir/core/test_a.py"]
    assert len(select_files(tmp_path, [])) == 2


def test_every_example_has_the_common_shape():
    for name in example_names():
        module = load_example(name)
        args = module.inputs()
        assert module.__doc__, name
        assert max(module.OUTPUTS) < len(args), name
        assert module.ATOL >= 0, name
        expected = module.reference(*[a.clone() if hasattr(a, "clone") else a for a in args])
        assert len(expected) == len(module.OUTPUTS), name


def test_examples_are_selected_by_program_or_group():
    assert select(["patch_sum"]) == ["vector.patch_sum"]
    assert set(select(["matmul"])) == {n for n in example_names() if n.startswith("matmul.")}
    with pytest.raises(ValueError, match="no example or group 'nothing'"):
        select(["nothing"])
