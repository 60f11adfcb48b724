"""Sessions and commands across packages: order, what is affected, grouped output, differences."""

from __future__ import annotations

import sys
import threading

import pytest
from ptows.graph import draw, find_cycle, in_order, with_dependants
from ptows.manifest import load
from ptows.runner.sessions import Ended, run_command, run_graph


def order_of(world) -> list[str]:
    path = world.root / "order.txt"
    return [line.split()[0] for line in path.read_text().splitlines()] if path.exists() else []


def test_a_session_runs_per_package_in_dependency_order(five):
    answer = five.run("run", "tests", "--jobs", "2")
    assert answer.code == 0, answer.out
    order = order_of(five)
    assert sorted(order) == ["ptoas_bridge", "ptows", "pypto", "pypto_lib", "simpler_runtime"]
    assert order.index("pypto") > max(order.index("ptoas_bridge"), order.index("simpler_runtime"))
    assert order.index("pypto_lib") > order.index("pypto")
    assert "testing pypto_lib/tests" in answer.out
    assert "pypto: started; progress is in .ptows/logs/tests/pypto.log" in answer.err
    assert (five.root / ".ptows" / "logs" / "tests" / "pypto.log").read_text().count("testing pypto/tests") == 1


def test_a_log_can_be_followed_and_need_not_be_writable(tmp_path):
    log = tmp_path / "logs" / "x.log"
    code = f"print('before', flush=True)\nwhile 'before' not in open({str(log)!r}).read(): pass\nprint('after')"
    stop = threading.Event()
    ended = run_command("x", [sys.executable, "-c", code], tmp_path, log, stop, {})
    assert ended.state == "passed" and ended.output == log.read_text() == "before\nafter\n"
    (tmp_path / "file").write_text("")
    many = [sys.executable, "-c", "print('x' * 200_000)"]
    ended = run_command("x", many, tmp_path, tmp_path / "file" / "x.log", stop, {})
    assert ended.state == "passed" and len(ended.output) == 200_001


def test_a_failing_package_stops_only_its_dependants(five):
    (five.root / "simpler_runtime" / "fails").touch()
    answer = five.run("run", "tests", "--json")
    assert answer.code == 1
    states = {item["name"]: item["state"] for item in answer.json["packages"]}
    assert states == {
        "ptoas_bridge": "passed",
        "simpler_runtime": "failed",
        "pypto": "skipped",
        "pypto_lib": "skipped",
        "ptows": "passed",
    }
    shown = five.run("run", "tests")
    assert "needs 'simpler_runtime', which did not pass" in shown.out and "told to fail" in shown.out


@pytest.mark.parametrize(
    ("file", "packages"),
    [
        ("ptoas_bridge/code.py", ["ptoas_bridge", "pypto", "pypto_lib"]),
        ("simpler_runtime/code.py", ["pypto", "pypto_lib", "simpler_runtime"]),
        ("pypto_lib/new.py", ["pypto_lib"]),
        ("ptows/code.py", ["ptows"]),
        ("README.md", []),
        ("constraints.txt", ["ptoas_bridge", "ptows", "pypto", "pypto_lib", "simpler_runtime"]),
    ],
)
@pytest.mark.parametrize("is_committed", [True, False])
def test_affected_packages(five, file, packages, is_committed):
    (five.root / file).write_text("changed\n")
    if is_committed:
        five.git(".", "add", "-A")
        five.git(".", "commit", "-qm", "second")
    since = "HEAD~1" if is_committed else "HEAD"
    answer = five.run("run", "tests", "--affected-since", since, "--dry-run", "--json")
    assert answer.code == 0, answer.err
    assert sorted(item["name"] for item in answer.json["packages"]) == packages


def test_acceptance_of_affected_since(five):
    (five.root / "ptoas_bridge" / "code.py").write_text("x = 2\n")
    five.git(".", "commit", "-qam", "second")
    answer = five.run("run", "tests", "--affected-since", "HEAD~1")
    assert answer.code == 0, answer.out
    assert sorted(order_of(five)) == ["ptoas_bridge", "pypto", "pypto_lib"]


def test_a_removed_or_renamed_file_affects_its_package(five):
    five.git(".", "mv", "ptows/code.py", "pypto_lib/moved.py")
    found = five.run("run", "tests", "--affected-since", "HEAD", "--dry-run", "--json").json
    assert sorted(item["name"] for item in found["packages"]) == ["ptows", "pypto_lib"]


def test_nothing_affected(five):
    answer = five.run("run", "tests", "--affected-since", "HEAD")
    assert answer.code == 0 and "no package is affected" in answer.out


def test_the_workspace_may_be_a_folder_of_a_larger_repository(five):
    inner = five.root / "inner"
    inner.mkdir()
    for name in ["workspace.yaml", "noxfile.py", *(entry.path for entry in load(five.root).packages)]:
        (five.root / name).rename(inner / name)
    five.git(".", "add", "-A")
    five.git(".", "commit", "-qm", "moved")
    five.root = inner
    (inner / "ptows" / "code.py").write_text("x = 3\n")
    found = five.run("run", "tests", "--affected-since", "HEAD", "--dry-run", "--json").json
    assert [item["name"] for item in found["packages"]] == ["ptows"]
    states = {item["name"]: item["state"] for item in five.run("status", "--json").json["entries"]}
    assert states["ptows"] == "dirty" and states["pypto"] == "ok"


def test_a_session_of_named_packages_gets_no_paths(five):
    answer = five.run("run", "e2e", "--pass", "softmax")
    assert answer.code == 0 and "end to end of pypto_lib ['softmax']" in answer.out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["run", "test"], "did you mean 'tests'?"),
        (["run", "e2e", "pypto"], "session 'e2e' does not cover 'pypto'"),
        (["run", "tests", "pyto"], "did you mean 'pypto'?"),
        (["run", "tests", "--affected-since", "nowhere"], "'nowhere' names no commit"),
        (["graph", "--format", "png"], "png"),
        (["bump", "pypto", "huge"], "huge"),
        (["nothing"], "nothing"),
    ],
)
def test_wrong_usage_ends_with_2(five, words, message):
    answer = five.run(*words)
    assert answer.code == 2 and message in answer.err


def test_a_package_with_its_own_noxfile_runs_that(five):
    (five.root / "ptows" / "noxfile.py").write_text(
        "import nox\nnox.options.default_venv_backend = 'none'\n"
        "@nox.session\ndef tests(session):\n    print('own file')\n"
    )
    answer = five.run("run", "tests", "ptows")
    assert answer.code == 0 and "own file" in answer.out


def test_the_drawn_graph(five):
    assert "pypto -> ptoas_bridge, simpler_runtime" in five.run("graph").out
    assert '"pypto_lib" -> "pypto";' in five.run("graph", "--format", "dot").out
    assert five.run("graph", "--format", "mermaid").out.startswith("graph LR\n")
    assert five.run("graph", "--json").json["order"][-1] == "ptows"


def test_graph_functions():
    graph = {"a": ["b"], "b": ["c"], "c": ["a"], "d": []}
    assert find_cycle(graph) == ["a", "b", "c", "a"]
    assert find_cycle({"a": ["b", "c"], "b": ["c"], "c": []}) == []
    assert in_order({"a": ["c"], "b": [], "c": []}) == ["c", "a", "b"]
    assert with_dependants({"a": ["b"], "b": [], "c": []}, ["b"]) == {"a", "b"}
    assert draw({}, "text") == ""
    deep = {str(number): [str(number + 1)] for number in range(5000)}
    assert find_cycle(deep) == []


def test_independent_packages_run_at_the_same_time(five):
    """Both packages wait for each other: in turn they would wait for ever."""
    barrier = threading.Barrier(2, timeout=20)
    packages = [load(five.root).entry(name) for name in ("ptoas_bridge", "simpler_runtime")]

    def action(entry) -> Ended:
        barrier.wait()
        return Ended(entry.name, "passed")

    depends = {entry.name: entry.depends for entry in packages}
    results, interrupted = run_graph(packages, depends, action, 2, lambda ended: None, threading.Event())
    assert [ended.state for ended in results] == ["passed", "passed"] and not interrupted


# foreach and diff


def test_foreach_groups_output_and_knows_the_entry(five):
    answer = five.run("foreach", "--", sys.executable, "-c", "import os; print(os.environ['PTOWS_NAME'], os.getcwd())")
    assert answer.code == 0
    assert f"== pypto\npypto {five.root / 'pypto'}\n" in answer.out


def test_the_first_failure_in_manifest_order_decides_the_exit_code(five):
    line = "case $PTOWS_NAME in simpler_runtime) sleep 0.3; exit 5;; ptows) exit 7;; esac"
    answer = five.run("foreach", "--", line)
    assert answer.code == 5
    assert "simpler_runtime: ended with 5" in answer.err and "ptows: ended with 7" in answer.err
    assert five.run("foreach", "--", "no-such-program-at-all").code == 127


def test_diff_of_git_and_tree_entries(five):
    remote, first = five.remote("alpha")
    url = remote.url
    five.manifest(
        (five.root / "workspace.yaml").read_text()
        + f'repos:\n  alpha: {{url: "{url}", rev: "{first}", path: ext/alpha}}\n'
    )
    assert five.run("diff", "alpha", "--json").json["entries"][0]["note"] == "not checked out"
    assert five.sync("alpha").code == 0
    (five.path("ext/alpha") / "a.txt").write_text("mine\n")
    (five.path("ext/alpha") / "new.txt").write_text("new\n")
    five.git("ext/alpha", "commit", "-qam", "mine")
    (five.root / "ptows" / "code.py").unlink()
    found = {item["name"]: item["files"] for item in five.run("diff", "--json").json["entries"]}
    assert found["alpha"] == [{"status": "M", "name": "a.txt"}, {"status": "?", "name": "new.txt"}]
    assert found["ptows"] == [{"status": "D", "name": "code.py"}] and found["pypto"] == []
    text = five.run("diff", "alpha").out
    assert "--- a/ext/alpha/a.txt" in text and "+mine" in text
