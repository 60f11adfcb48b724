"""What every command promises: JSON shapes, global options, completion, a light start."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from ptows import __version__
from ptows.commands.context import hoist


def test_global_options_may_stand_after_the_command():
    assert hoist(["status", "--workspace", "x", "-v"]) == ["--workspace", "x", "-v", "status"]
    assert hoist(["status", "--workspace=x"]) == ["--workspace=x", "status"]
    assert hoist(["foreach", "-q", "--", "cmd", "-v"]) == ["-q", "foreach", "--", "cmd", "-v"]
    assert hoist(["-q", "review", "run", "-v"]) == ["-q", "review", "run", "-v"]
    assert hoist(["run", "tests", "--pass", "-v", "--pass", "-q", "-q"]) == [
        *("-q", "run", "tests"),
        *("--pass", "-v", "--pass", "-q"),
    ]
    assert hoist(["run", "tests", "--pass=-v", "-v"]) == ["-v", "run", "tests", "--pass=-v"]
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
        "heavy = [name for name in ('git', 'rich', 'yaml', 'nox', 'torch', 'pydantic') if name in sys.modules]\n"
        "assert not heavy, heavy\n"
    )
    done = subprocess.run([sys.executable, "-c", code], text=True, capture_output=True)
    assert done.returncode == 0, done.stderr
    assert f"ptows {__version__}" in done.stdout


def test_daily_commands_load_nothing_heavy(world):
    _, first = world.remote("alpha")
    world.repos(alpha=first)
    assert world.sync().code == 0
    for words in (["sync", "--no-install"], ["status", "alpha"], ["list"]):
        code = (
            "import sys\nfrom ptows.__main__ import run\n"
            f"assert run(['--workspace', {str(world.root)!r}, *{words!r}]) == 0\n"
            "heavy = [name for name in ('git', 'rich', 'nox', 'pydantic') if name in sys.modules]\n"
            "assert not heavy, heavy\n"
        )
        done = subprocess.run([sys.executable, "-c", code], text=True, capture_output=True)
        assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["sync", "--jobs", "many"], "--jobs"),
        (["sync", "--jobs", "-1"], "--jobs"),
        (["status", "--jobs"], "--jobs"),
        (["sync", "--locked=yes"], "--locked"),
        (["bump"], "PKG"),
        (["run"], "SESSION"),
        (["vendor", "pull", "alpha"], "--rev"),
        (["pin", "a", "b", "c"], "c"),
        (["sync", "--no-such-option"], "--no-such-option"),
        (["pin"], "--all"),
    ],
)
def test_mistakes_in_options_end_with_2_and_name_the_option(five, words, message):
    answer = five.run(*words)
    assert answer.code == 2 and message in answer.err, answer
