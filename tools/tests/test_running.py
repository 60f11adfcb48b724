"""run, foreach, diff, clean, review, doctor, install, and what every command promises: JSON, options, completion."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import venv
from pathlib import Path

import pytest
from ptows.commands.context import hoist
from ptows.graph import draw, find_cycle, in_order, with_dependants
from ptows.manifest import load
from ptows.runner.sessions import Ended, run_graph

NOXFILE = """\
import os, pathlib, nox
nox.options.default_venv_backend = "none"

@nox.session
def tests(session):
    for path in session.posargs:
        folder = pathlib.Path(path)
        if path == ".":
            continue
        log = pathlib.Path("order.txt")
        with log.open("a") as stream:
            stream.write(os.environ["PTOWS_PACKAGE"] + " " + path + "\\n")
        print("testing", path)
        if (folder.parent / "fails").exists():
            session.error("told to fail")

@nox.session
def e2e(session):
    print("end to end of", os.environ.get("PTOWS_PACKAGE"), session.posargs)
"""


@pytest.fixture
def five(world):
    """The shape of the real workspace: five tree packages in a repository with one commit."""
    graph = {"ptoas_bridge": [], "simpler_runtime": [], "pypto": ["ptoas_bridge", "simpler_runtime"]}
    graph |= {"pypto_lib": ["pypto"], "ptows": []}
    lines = ["workspace: 1", "name: pto", "packages:"]
    for name, needs in graph.items():
        (world.root / name / "tests").mkdir(parents=True)
        (world.root / name / "code.py").write_text("x = 1\n")
        (world.root / name / "tests" / "test_x.py").write_text("")
        project = f'[project]\nname = "{name}"\nversion = "0.1.0"\n'
        (world.root / name / "pyproject.toml").write_text(project)
        lines.append(f'  {name}: {{path: {name}, version: "0.1.0", depends: [{", ".join(needs)}]}}')
    lines += ["sessions:", "  tests: {packages: all}", "  e2e: {packages: [pypto_lib]}"]
    world.manifest("\n".join(lines) + "\n")
    (world.root / "noxfile.py").write_text(NOXFILE)
    (world.root / ".gitignore").write_text("order.txt\n.nox/\nbuild/\n__pycache__/\n")
    subprocess.run(["git", "init", "-q"], cwd=world.root, check=True)
    world.git(".", "add", "-A")
    world.git(".", "commit", "-qm", "first")
    return world


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
    assert (five.root / ".ptows" / "logs" / "tests" / "pypto.log").read_text().count("testing pypto/tests") == 1


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


# clean


def test_clean_lists_and_removes_only_what_is_asked_for_and_ignored(five):
    for name in ("pypto/build", "ptows/__pycache__", ".nox"):
        (five.root / name).mkdir()
        (five.root / name / "x").write_bytes(b"x" * 2048)
    (five.root / "pypto_lib" / "dist").mkdir()
    (five.root / "pypto_lib" / "dist" / "source.py").write_text("not ignored")
    (five.root / ".ptows" / "store").mkdir(parents=True)
    listed = five.run("clean", "--json").json
    assert {item["path"] for item in listed["caches"]} == {"pypto/build", "ptows/__pycache__", ".nox", ".ptows/store"}
    assert not listed["removed"] and (five.root / "pypto" / "build").exists()
    refused = five.run("clean", "--builds")
    assert refused.code == 2 and "--yes" in refused.err and (five.root / "pypto" / "build").exists()
    assert five.run("clean", "--builds", "--yes").code == 0
    assert not (five.root / "pypto" / "build").exists() and not (five.root / ".nox").exists()
    assert (five.root / ".ptows" / "store").exists() and (five.root / "pypto_lib" / "dist").exists()
    assert five.run("clean", "--store", "-y").code == 0 and not (five.root / ".ptows" / "store").exists()


# review


def test_review_hands_everything_to_the_script(five):
    folder = five.root / ".github" / "scripts"
    folder.mkdir(parents=True)
    (folder / "publish_codex_review.py").write_text("import sys\nprint(sys.argv[1:])\nsys.exit(4)\n")
    answer = five.process("review", "publish", "--json", "-v", "--workspace", "x", "--help")
    assert answer.code == 4 and answer.out == "['--json', '-v', '--workspace', 'x', '--help']\n"


def test_review_without_the_script_says_what_is_missing(five):
    answer = five.run("review", "simulate")
    assert answer.code == 1 and ".github/scripts/simulate.py" in answer.err
    wrong = five.run("review", "publsh")
    assert wrong.code == 2 and "did you mean 'publish'?" in wrong.err
    assert "prepare" in five.run("review").out


# doctor


def test_doctor_compiles_a_program_and_names_what_is_missing(five, monkeypatch, tmp_path):
    answer = five.run("doctor", "--json")
    checks = {item["name"]: item for item in answer.json["checks"]}
    assert {"python", "git", "c++", "torch", "ptoas", "nox", "docker", "gh", "codex", "disk", "manifest"} <= set(checks)
    assert checks["git"]["verdict"] == "ok"
    assert all(item["fix"] for item in checks.values() if item["verdict"] != "ok")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    answer = five.run("doctor", "--json")
    assert answer.code == 1
    checks = {item["name"]: item for item in answer.json["checks"]}
    assert checks["git"]["verdict"] == "fail" and checks["docker"]["verdict"] == "warn"


def test_a_compiler_that_does_not_work_is_found_out(tmp_path, monkeypatch):
    from ptows.doctor.compiler import compile_and_run, probe_compiler
    from ptows.manifest import Tool

    broken = tmp_path / "broken++"
    broken.write_text("#!/bin/sh\necho 'broken++: cannot compile' >&2\nexit 1\n")
    broken.chmod(0o755)
    assert compile_and_run([str(broken)], 17) == "broken++: cannot compile"
    monkeypatch.setenv("CXX", str(broken))
    check = probe_compiler(Tool("cxx", candidates=("none++",)), lambda name: None)
    assert check.verdict == "fail" and "cannot compile" in check.found and check.fix


# installation


BACKEND = '''
"""A build backend that needs nothing: one wheel with one path file."""
import base64, hashlib, pathlib, zipfile

def build_editable(folder, config_settings=None, metadata_directory=None):
    text = pathlib.Path("pyproject.toml").read_text()
    field = lambda key: text.split(f'{key} = "')[1].split('"')[0]
    name, version = field("name"), field("version")
    info = f"{name}-{version}.dist-info"
    files = {
        f"{name}.pth": str(pathlib.Path.cwd()) + "\\n",
        f"{info}/METADATA": f"Metadata-Version: 2.1\\nName: {name}\\nVersion: {version}\\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\\nGenerator: x\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n",
    }
    record = "".join(f"{path},,\\n" for path in files) + f"{info}/RECORD,,\\n"
    wheel = f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(pathlib.Path(folder, wheel), "w") as archive:
        for path, content in {**files, f"{info}/RECORD": record}.items():
            archive.writestr(path, content)
    return wheel

build_wheel = build_editable
'''


def test_packages_are_installed_editable_once_and_again_when_they_change(world, tmp_path, monkeypatch):
    for name in ("core", "user"):
        (world.root / name).mkdir()
        (world.root / name / "backend.py").write_text(BACKEND)
        (world.root / name / "pyproject.toml").write_text(
            '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
            f'[project]\nname = "{name}"\nversion = "0.1.0"\n'
        )
    world.manifest(
        "workspace: 1\nname: t\npackages:\n"
        '  user: {path: user, version: "0.1.0", depends: [core]}\n  core: {path: core, version: "0.1.0"}\n'
    )
    environment = tmp_path / "env"
    venv.create(environment, with_pip=True)
    monkeypatch.setenv("VIRTUAL_ENV", str(environment))
    assert {item["installed"] for item in world.run("status", "--json").json["entries"]} == {"missing"}
    answer = world.run("sync", "--offline", "--json")
    assert answer.code == 0, answer.err
    assert answer.json["installed"] == ["core", "user"]
    where = [environment / "bin" / "python", "-c", "import backend; print(backend.__file__)"]
    found = subprocess.run(where, text=True, capture_output=True)
    assert Path(found.stdout.strip()).parent.parent == world.root
    assert {item["installed"] for item in world.run("status", "--json").json["entries"]} == {"current"}
    again = world.run("sync", "--offline", "--json")
    assert again.json["nothing_to_do"] and again.json["installed"] == []
    project = world.root / "user" / "pyproject.toml"
    project.write_text(project.read_text() + "# a new command, say\n")
    assert world.run("sync", "--offline", "--json").json["installed"] == ["user"]
    project.write_text(
        "[build-system]\nrequires = []\nbuild-backend = 'none'\n[project]\nname = 'user'\nversion = '0.1.0'\n"
    )
    failed = world.run("sync", "--offline")
    assert failed.code == 1 and "installing the packages failed" in failed.err


def test_a_wrong_python_is_refused_before_anything_happens(world):
    world.manifest('workspace: 1\nname: t\nrequires-python: ">=9.1"\n')
    answer = world.sync()
    assert answer.code == 1 and "the workspace requires >=9.1" in answer.err
    assert not (world.root / ".ptows").exists()


# what every command promises


def test_global_options_may_stand_after_the_command():
    assert hoist(["status", "--workspace", "x", "-v"]) == ["--workspace", "x", "-v", "status"]
    assert hoist(["status", "--workspace=x"]) == ["--workspace=x", "status"]
    assert hoist(["foreach", "-q", "--", "cmd", "-v"]) == ["-q", "foreach", "--", "cmd", "-v"]
    assert hoist(["-q", "review", "run", "-v"]) == ["-q", "review", "run", "-v"]
    assert hoist(["run", "review", "-v"]) == ["-v", "run", "review"]


def test_the_nearest_parent_is_the_workspace(five, monkeypatch, capsys):
    from ptows.__main__ import run

    monkeypatch.chdir(five.root / "pypto" / "tests")
    assert run(["graph"]) == 0
    assert "pypto_lib -> pypto" in capsys.readouterr().out


@pytest.mark.parametrize(
    "words", ["list", "graph", "status", "doctor", "diff", "lock --check", "clean", "sync --dry-run"]
)
@pytest.mark.parametrize("place", ["before", "after"])
def test_json_is_valid_and_names_its_shape(five, words, place):
    words = words.split()
    answer = five.run("--json", *words) if place == "before" else five.run(*words, "--json")
    assert answer.json["schema"] == f"ptows.{words[0]}/1"


def test_status_json_in_every_state(world):
    """States of the acceptance list at once; names that are no text must not break it."""
    revs = {}
    names = ["dirty", "local", "missing", "foreign", "stash", "interrupted", "unpinned", "broken", "odd"]
    for name in names:
        _, revs[name] = world.remote(name)
    revs["unpinned"] = "main"
    world.repos(**revs)
    assert world.sync().code == 0
    (world.path("dirty") / "a.txt").write_text("x")
    world.git("local", "commit", "-q", "--allow-empty", "-m", "mine")
    import shutil

    for name in ("missing", "foreign"):
        shutil.rmtree(world.path(name))
    world.path("foreign").write_text("x")
    (world.path("stash") / "a.txt").write_text("x")
    world.git("stash", "stash")
    (world.path("interrupted") / ".git" / "ptows-move").write_text("")
    (world.path("broken") / ".git" / "HEAD").write_text("x")
    Path(os.fsdecode(bytes(world.path("odd")) + b"/\xff\xfe\x1b[31m")).write_text("x")
    answer = world.process("status", "--json")
    assert answer.code == 0, answer.err
    states = {item["name"]: item["state"] for item in json.loads(answer.out)["entries"]}
    assert states == {
        "dirty": "dirty",
        "local": "local commits",
        "missing": "missing",
        "foreign": "foreign",
        "stash": "dirty",
        "interrupted": "interrupted",
        "unpinned": "ok",
        "broken": "error",
        "odd": "ok",
    }
    assert world.process("status").code == 0


def test_quiet_and_verbose(world):
    _, first = world.remote("alpha")
    world.repos(alpha=first)
    quiet = world.sync("--quiet")
    assert quiet.code == 0 and quiet.out == "" and quiet.err == ""
    assert "kept" in world.sync("--verbose").out


def test_completion_knows_entries_and_sessions(five, monkeypatch):
    monkeypatch.chdir(five.root)

    def complete(line: str) -> str:
        words = {"_PTOWS_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(line.count(" "))}
        env = {**os.environ, **words}
        code = "from ptows.__main__ import main; import sys; sys.argv[0] = 'ptows'; main()"
        return subprocess.run([sys.executable, "-c", code], env=env, text=True, capture_output=True).stdout

    assert complete("ptows sync pypto").split() == ["pypto", "pypto_lib"]
    assert complete("ptows run te").split() == ["tests"]
    assert "status" in complete("ptows st")


def test_version_and_help_load_nothing_heavy():
    code = (
        "import sys\nfrom ptows.__main__ import run\n"
        "assert run(['--help']) == 0 and run(['--version']) == 0 and run(['sync', '--help']) == 0\n"
        "heavy = [name for name in ('git', 'rich', 'yaml', 'nox', 'tomllib', 'torch') if name in sys.modules]\n"
        "assert not heavy, heavy\n"
    )
    done = subprocess.run([sys.executable, "-c", code], text=True, capture_output=True)
    assert done.returncode == 0, done.stderr
    assert "ptows 0.1.0" in done.stdout


def test_nothing_to_do_loads_neither_rich_nor_gitpython(world):
    _, first = world.remote("alpha")
    world.repos(alpha=first)
    assert world.sync().code == 0
    code = (
        "import sys\nfrom ptows.__main__ import run\n"
        f"assert run(['--workspace', {str(world.root)!r}, 'sync', '--no-install']) == 0\n"
        "assert not [name for name in ('git', 'rich', 'nox') if name in sys.modules]\n"
    )
    done = subprocess.run([sys.executable, "-c", code], text=True, capture_output=True)
    assert done.returncode == 0, done.stderr
