"""What right manifests mean: imports, local overrides, groups, specifiers, decisions, redaction."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ptows.errors import ManifestError, UsageError
from ptows.git.checkout import Presence
from ptows.git.config_file import code_running_keys, read_config
from ptows.manifest import Entry, load
from ptows.manifest.paths import collisions, problem_with
from ptows.output.console import Console, printable
from ptows.redact import has_credentials, redact, without_credentials
from ptows.specifier import is_specifier, matches
from ptows.sync.plan import decide

HEAD = "workspace: 1\nname: t\n"


def write(folder, text: str, name: str = "workspace.yaml"):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def repo(name: str, rev: str = "main", path: str = "") -> str:
    return f"  {name}: {{url: 'file:///{name}', rev: {rev}, path: {path or name}}}\n"


def test_imports_are_merged_and_the_importing_file_wins(tmp_path):
    write(tmp_path, HEAD + "repos:\n" + repo("c") + repo("a", "theirs"), "other/workspace.yaml")
    write(tmp_path, HEAD + "imports: [other/workspace.yaml]\nrepos:\n" + repo("a", "mine") + repo("b"))
    found = load(tmp_path)
    assert [entry.name for entry in found.entries.values()] == ["a", "b", "c"]
    assert found.entries["a"].rev == "mine" and len(found.files) == 2


def test_imports_of_imports(tmp_path):
    write(tmp_path, HEAD + "repos:\n" + repo("deep"), "two.yaml")
    write(tmp_path, HEAD + "imports: [two.yaml]\n", "one.yaml")
    write(tmp_path, HEAD + "imports: [one.yaml]\n")
    assert "deep" in load(tmp_path).entries


def test_two_imports_that_disagree_need_the_importing_file(tmp_path):
    write(tmp_path, HEAD + "repos:\n" + repo("a", "one"), "one.yaml")
    write(tmp_path, HEAD + "repos:\n" + repo("a", "two"), "two.yaml")
    write(tmp_path, HEAD + "imports: [one.yaml, two.yaml]\n")
    with pytest.raises(ManifestError) as caught:
        load(tmp_path)
    wanted = "two.yaml: 'repos.a' differs between one.yaml (line 4) and two.yaml (line 4): settle it in workspace.yaml"
    assert str(caught.value) == wanted
    write(tmp_path, HEAD + "imports: [one.yaml, two.yaml]\nrepos:\n" + repo("a", "mine"))
    assert load(tmp_path).entries["a"].rev == "mine"


def test_mistakes_in_an_import_name_its_file(tmp_path):
    write(tmp_path, HEAD + "repos:\n  x: {path: y, rev: main}\n", "other.yaml")
    write(tmp_path, HEAD + "imports: [other.yaml]\n")
    with pytest.raises(ManifestError, match=r"other.yaml: missing key 'url' in repos.x \(line 4\)"):
        load(tmp_path)


def test_a_newer_import_is_refused(tmp_path):
    write(tmp_path, "workspace: 7\n", "other.yaml")
    write(tmp_path, HEAD + "imports: [other.yaml]\n")
    with pytest.raises(ManifestError, match="schema version 7 is newer than 1"):
        load(tmp_path)


def test_imports_in_a_circle(tmp_path):
    write(tmp_path, HEAD + "imports: [workspace.yaml]\n", "other.yaml")
    write(tmp_path, HEAD + "imports: [other.yaml]\n")
    with pytest.raises(ManifestError, match=r"go in a circle: workspace\.yaml -> other\.yaml -> workspace\.yaml"):
        load(tmp_path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("repos: {b: {path: x}}\n", "no repo named 'b'"),
        ("packages: {a: {path: x}}\n", "no package named 'a'"),
        ("repos: {a: {rev: x}}\n", "unknown key 'rev' in repos.a"),
        ("repos: {a: {path: ../x}}\n", "leaves the workspace"),
        ("remotes: {o: {url: x}}\n", "no remote named 'o'"),
        ("groups: {g: on}\n", "no group named 'g'"),
        ("toolchain: {}\n", "unknown key 'toolchain'"),
    ],
)
def test_mistakes_in_the_local_file(tmp_path, text, message):
    write(tmp_path, HEAD + "repos:\n" + repo("a"))
    write(tmp_path, text, "workspace.local.yaml")
    with pytest.raises(ManifestError) as caught:
        load(tmp_path)
    assert message in str(caught.value) and str(caught.value).startswith("workspace.local.yaml: ")


def test_groups(tmp_path):
    text = "groups: {default: [one], two: off, three: on}\nrepos:\n"
    for name in ("one", "two", "three"):
        text += f"  {name}: {{url: 'file:///x', rev: main, path: {name}, groups: [{name}]}}\n"
    write(tmp_path, HEAD + text)
    found = load(tmp_path)

    def names(changes: str = "") -> list[str]:
        return [entry.name for entry in found.enabled(changes)]

    assert names() == ["one", "three"]
    assert names("+two,-one") == ["two", "three"] and names("two") == ["one", "two", "three"]
    with pytest.raises(UsageError):
        found.enabled("+four")


def test_relative_urls_count_from_the_workspace(tmp_path):
    write(
        tmp_path,
        HEAD + "repos:\n  a: {url: ../there/a.git, rev: main, path: a}\n  b: {url: 'host:b', rev: x, path: b}\n",
    )
    found = load(tmp_path)
    assert found.entries["a"].url == str(tmp_path.parent / "there" / "a.git")
    assert found.entries["a"].shared_url == "../there/a.git" and found.entries["b"].url == "host:b"


@given(st.text(max_size=12))
def test_no_accepted_path_leaves_the_workspace(text):
    if problem_with(text) is None:
        root = Path("/work/space")
        real = Path(os.path.normpath(root / text))
        assert real.is_relative_to(root) and real != root


def test_path_collisions():
    def pairs(*paths: str) -> list[str]:
        return [name for name, *_ in collisions([(path, path) for path in paths])]

    assert pairs("a", "b", "ab", "a-b") == []
    assert pairs("a", "a/b") == ["a/b"] and pairs("a/b/c", "a") == ["a/b/c"]
    assert pairs("\u00e9", "e\u0301") == ["e\u0301"] and pairs("Straße", "STRASSE") == ["STRASSE"]


@pytest.mark.parametrize(
    ("version", "specifier", "answer"),
    [
        ("3.11.7", ">=3.10", True),
        ("3.9", ">=3.10", False),
        ("3.10", ">=3.10,<3.12", True),
        ("3.12.0", ">=3.10,<3.12", False),
        ("0.1", "~=0.1.2", False),
        ("0.1.9", "~=0.1.2", True),
        ("3.10.5", "==3.10.*", True),
        ("3.11", "!=3.11", False),
        ("3.11.0", "==3.11", True),
        ("2.0rc1", ">1.9", True),
    ],
)
def test_specifiers(version, specifier, answer):
    assert is_specifier(specifier) and matches(version, specifier) is answer


@pytest.mark.parametrize(
    ("url", "shown", "locked"),
    [
        ("https://user:pw@host/x", "https://***@host/x", "https://host/x"),
        ("https://token@host/x", "https://***@host/x", "https://host/x"),
        ("https://us:p@ss@host/x", "https://***@host/x", "https://host/x"),
        ("https://host/x?private_token=abc&y=1", "https://host/x?private_token=***&y=1", None),
        ("ssh://git@host/x", "ssh://***@host/x", "ssh://git@host/x"),
        ("ssh://git:pw@host/x", "ssh://***@host/x", "ssh://host/x"),
        ("git@host:x", "git@host:x", "git@host:x"),
        ("file:///a@b/c", "file:///a@b/c", "file:///a@b/c"),
        ("https://host/x", "https://host/x", "https://host/x"),
    ],
)
def test_redaction(url, shown, locked):
    assert redact(f"cannot reach '{url}'!") == f"cannot reach '{shown}'!"
    assert without_credentials(url) == (shown if locked is None else locked)
    assert has_credentials(url) == (without_credentials(url) != url)


ENTRY = Entry("x", "repo", "git", "x", url="u", rev="a" * 40)


def at(**state: Any) -> Presence:
    """A checkout of the entry's remote, not at its pin."""
    return Presence("checkout", url="u", head="b" * 40, **state)


@pytest.mark.parametrize(
    ("found", "target", "action"),
    [
        (Presence("missing"), "", "clone"),
        (Presence("empty"), "", "clone"),
        (Presence("foreign", why="a file"), "", "refuse"),
        (at(), "b" * 40, "keep"),
        (at(), "", "move"),
        (at(), "a" * 40, "move"),
        (at(changed=("f",)), "b" * 40, "refuse"),
        (at(staged=("f",)), "a" * 40, "refuse"),
        (at(stashes=1), "b" * 40, "refuse"),
        (at(operation="a merge"), "b" * 40, "refuse"),
        (at(code_keys=("filter.x.clean",)), "b" * 40, "refuse"),
        (at(moved_submodules=("s",)), "b" * 40, "refuse"),
        (Presence("checkout", url="u"), "", "refuse"),
        (Presence("checkout", url="other", head="b" * 40), "", "refuse"),
        (Presence("checkout", url="other", head="b" * 40, owner="x"), "", "move"),
        (Presence("checkout", url="other", head="b" * 40), "b" * 40, "keep"),
    ],
)
def test_decisions(found, target, action):
    decision = decide(ENTRY, found, target)
    assert decision.action == action
    assert decision.set_url == (action in ("keep", "move") and found.url == "other")
    assert bool(decision.reason) == bool(decision.advice) == (action == "refuse")


def test_git_configuration_is_read_as_git_does(tmp_path):
    import subprocess

    path = write(
        tmp_path,
        '[core] bare = false ; comment\n\tKEY= "a # b" # c\n[remote "or\\"i"]\n url = "x\\ty"\\\n z\n'
        '[a.B]\nc\n[Filter "X"] clean=cat %f\n# [core] sshCommand=x\n[diff]external=y',
        "config",
    )
    found = read_config(path)
    listing = subprocess.check_output(["git", "config", "--file", str(path), "--list", "-z"], text=True)
    wanted: dict[str, list[str]] = {}
    for record in filter(None, listing.split("\0")):
        key, _, value = record.partition("\n")
        wanted.setdefault(key, []).append(value or "true")
    assert found == wanted
    assert code_running_keys(found) == ["filter.X.clean", "diff.external"]


def test_names_cannot_steer_the_terminal(capsys):
    assert printable("a\x1b[31mb\x07\x9b") == "a\\x1b[31mb\\x07\\x9b"
    Console().table(("name", "b"), [("中文", "x\x1b[2J"), ("a", "y")])
    assert capsys.readouterr().out == "name  b\n中文  x\\x1b[2J\na     y\n"
