"""pin, bump, lock and vendor: values change in place; comments, order and quoting stay."""

from __future__ import annotations

import json
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ptows.bump import next_version
from ptows.edit.toml_text import raise_requirement, set_version
from ptows.edit.yaml_text import replace_scalars
from ptows.errors import PtowsError
from ptows.manifest.document import parse

MANIFEST = """\
# The workspace.   Two   spaces stay.
workspace: 1
name: t      # a name

repos:   # checkouts
    beta:      # indented by four
        rev:   '{beta}'   # single quotes
        path:  beta
        url: "{beta_url}"
    alpha: {{rev: "{alpha}", url: "{alpha_url}",   path: alpha}}  # flow

# the end
"""


@pytest.fixture
def two(world):
    remote, first = world.remote("alpha")
    _, beta = world.remote("beta")
    urls = {"alpha_url": world.remotes["alpha"].url, "beta_url": world.remotes["beta"].url}
    world.manifest(MANIFEST.format(alpha=first, beta=beta, **urls))
    assert world.sync().code == 0

    def text(**revs: str) -> str:
        return MANIFEST.format(**{"alpha": first, "beta": beta, **urls, **revs})

    world.text = text
    world.first, world.second = first, remote.commit({"a.txt": "second\n"})
    return world


def read(world) -> str:
    return (world.root / "workspace.yaml").read_text(encoding="utf-8")


def test_pin_to_what_is_checked_out(two):
    two.git("alpha", "fetch", "-q")
    two.git("alpha", "checkout", "-q", two.second)
    answer = two.run("pin", "alpha")
    assert answer.code == 0, answer.err
    assert read(two) == two.text(alpha=two.second)
    assert two.run("lock", "--check").code == 0
    assert "nothing to do" in two.sync().out
    assert "nothing to do" in two.run("pin", "alpha").out


@pytest.mark.parametrize("rev", ["full", "short", "HEAD", "main", "tag"])
def test_pin_to_a_revision_writes_a_full_hash(two, rev):
    two.git("alpha", "fetch", "-q")
    two.git("alpha", "tag", "mine", two.second)
    two.git("alpha", "checkout", "-q", two.second)
    given_rev = {"full": two.second, "short": two.second[:9], "HEAD": "HEAD", "main": "main", "tag": "mine"}[rev]
    assert two.run("pin", "alpha", given_rev).code == 0
    assert read(two) == two.text(alpha=two.second)


def test_pin_asks_the_remote_for_a_branch_that_is_not_here(two):
    two.remotes["beta"].commit({"a.txt": "x\n"}, push=False)
    work = two.remotes["beta"].work
    subprocess.run(["git", "-C", str(work), "push", "-q", "origin", "HEAD:refs/heads/topic"], check=True)
    commit = subprocess.check_output(["git", "-C", str(work), "rev-parse", "HEAD"], text=True).strip()
    assert two.run("pin", "beta", "topic").code == 0
    assert read(two) == two.text(beta=commit)
    assert two.sync().code == 0 and two.head("beta") == commit


def test_pin_all(two):
    for name in ("alpha", "beta"):
        two.git(name, "commit", "-q", "--allow-empty", "-m", "mine")
    answer = two.run("pin", "--all")
    assert answer.code == 0
    assert read(two) == two.text(alpha=two.head("alpha"), beta=two.head("beta"))
    assert "is on no remote" in answer.err
    assert two.sync().code == 0


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["pin"], 2, "name an entry, or give --all"),
        (["pin", "alpha", "--all"], 2, "name an entry, or give --all"),
        (["pin", "alhpa"], 2, "did you mean 'alpha'?"),
        (["pin", "alpha", "no-such-rev"], 1, "no revision 'no-such-rev' of 'alpha' here or at file://"),
    ],
)
def test_pin_with_wrong_words(two, words, code, message):
    answer = two.run(*words)
    assert answer.code == code and message in answer.err
    assert read(two) == two.text()


def test_pin_of_an_entry_that_is_not_there(world):
    _, first = world.remote("alpha")
    world.repos(alpha=first)
    answer = world.run("pin", "alpha")
    assert answer.code == 1 and "'alpha' is not checked out" in answer.err


def test_pin_edits_the_imported_file(world):
    _, first = world.remote("alpha")
    (world.root / "more").mkdir()
    url = world.remotes["alpha"].url
    imported = f'workspace: 1  # imported\nname: m\nrepos: {{alpha: {{url: "{url}", rev: main, path: a}}}}\n'
    (world.root / "more" / "workspace.yaml").write_text(imported)
    world.manifest("workspace: 1\nname: t\nimports: [more/workspace.yaml]\n")
    assert world.sync().code == 0
    assert world.run("pin", "alpha").code == 0
    assert (world.root / "more" / "workspace.yaml").read_text() == imported.replace("rev: main", f'rev: "{first}"')


def test_a_byte_order_mark_and_windows_line_ends_stay(two):
    path = two.root / "workspace.yaml"
    path.write_bytes(b"\xef\xbb\xbf" + two.text().replace("\n", "\r\n").encode())
    assert two.run("pin", "alpha", two.second).code == 0
    assert path.read_bytes() == b"\xef\xbb\xbf" + two.text(alpha=two.second).replace("\n", "\r\n").encode()


def test_a_file_that_changed_since_it_was_read_is_not_edited():
    text = "a: one\n# a comment that is long enough\n"
    node = parse(b"# added above\na: one\n", "f").entries["a"][1]
    with pytest.raises(PtowsError, match="cannot change f in place"):
        replace_scalars(text, [(node, "two")], "f")


WORDS = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs", "Zl", "Zp"]), min_size=1, max_size=12)


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(WORDS, WORDS, min_size=1, max_size=6), WORDS, st.sampled_from(["flow", "block"]), st.data())
def test_replacing_a_scalar_changes_only_that_value(content, value, style, data):
    if style == "flow":
        text = "{" + ", ".join(f"{json.dumps(k)}:  {json.dumps(v)}" for k, v in content.items()) + "} # end\n"
    else:
        text = "".join(
            f"# über {i}\n{json.dumps(k)}:   {json.dumps(v)}  # c\n" for i, (k, v) in enumerate(content.items())
        )
    try:
        root = parse(text.encode(), "f")
    except PtowsError:
        # The merge key and words that YAML cannot hold.
        return
    key = data.draw(st.sampled_from(sorted(content)))
    result = replace_scalars(text, [(root.entries[key][1], value)], "f")
    after = parse(result.encode(), "f")
    assert {k: v.text for k, (_, v) in after.entries.items()} == {**content, key: value}
    node = root.entries[key][1]
    assert result.startswith(text[: node.start]) and result.endswith(text[node.end :])


# versions

PYPROJECT = """\
# top
[build-system]
version = "9.9"   # not this one

[project]   # the project
name = "core"
description = '''
version = "7.7"
'''
version   =   '1.2.3'   # keep me
dependencies = [
  "other==1.0",  # first
  'base==1.2.3; python_version > "3"',
]

[project.optional-dependencies]
x = ["base ~= 1.2.3"]

[tool.thing]
version = "1.2.3"
"""


def test_the_version_is_set_in_the_project_table_only():
    assert set_version(PYPROJECT, "2.0.0", "f") == PYPROJECT.replace("'1.2.3'   # keep", "'2.0.0'   # keep")


@pytest.mark.parametrize("text", ["[project]\nname='a'\ndynamic=['version']\n", "project = {version = '1'}\n"])
def test_a_version_that_is_not_there_to_be_set(text):
    with pytest.raises(PtowsError):
        set_version(text, "2", "f")


def test_exact_requirements_are_raised():
    wanted = PYPROJECT.replace("'base==1.2.3; python", "'base==1.3.0; python").replace("base ~= 1.2.3", "base ~= 1.3.0")
    assert raise_requirement(PYPROJECT, "base", "1.2.3", "1.3.0", "f") == wanted
    assert raise_requirement(PYPROJECT, "bas", "1.2.3", "1.3.0", "f") == PYPROJECT


@pytest.mark.parametrize(
    ("version", "part", "after"),
    [
        ("0.1.0", "patch", "0.1.1"),
        ("0.1.9", "minor", "0.2.0"),
        ("1.2.3", "major", "2.0.0"),
        ("1.2", "patch", "1.2.1"),
        ("1", "minor", "1.1.0"),
        ("1.2.3rc1", "patch", "1.2.4"),
        ("1.2.3.4", "minor", "1.3.0.0"),
    ],
)
def test_next_version(version, part, after):
    assert next_version(version, part) == after


def write_packages(world) -> str:
    for name, requires in (("core", ""), ("user", '"core==0.1.0"'), ("free", '"core>=0.1.0"')):
        (world.root / name).mkdir(exist_ok=True)
        text = f'[project]\nname = "{name}"  # {name}\nversion = "0.1.0"\ndependencies = [{requires}]\n'
        (world.root / name / "pyproject.toml").write_text(text)
    text = (
        "workspace: 1\nname: t\npackages:\n"
        '  core: {path: core, version: "0.1.0"}  # the core\n'
        "  user:\n    path: user\n    version: '0.1.0'\n    depends: [core]\n"
        '  free: {path: free, version: "0.1.0", depends: [core]}\n'
    )
    world.manifest(text)
    return text


def test_bump_changes_package_manifest_and_exact_requirements_together(world):
    text = write_packages(world)
    answer = world.run("bump", "core", "minor", "--json")
    assert answer.code == 0, answer.err
    assert answer.json["files"] == ["core/pyproject.toml", "workspace.yaml", "user/pyproject.toml"]
    assert read(world) == text.replace('core, version: "0.1.0"', 'core, version: "0.2.0"')
    assert 'version = "0.2.0"' in (world.root / "core" / "pyproject.toml").read_text()
    assert "# core" in (world.root / "core" / "pyproject.toml").read_text()
    assert '"core==0.2.0"' in (world.root / "user" / "pyproject.toml").read_text()
    assert '"core>=0.1.0"' in (world.root / "free" / "pyproject.toml").read_text()
    assert world.sync().code == 0


def test_bump_keeps_the_version_in_the_code_in_step(world):
    write_packages(world)
    module = world.root / "core" / "src" / "core"
    module.mkdir(parents=True)
    code = '"""ünïcode"""\r\n__version__ = \'0.1.0\'  # keep\r\nOTHER = "0.1.0"\n'
    (module / "__init__.py").write_bytes(code.encode())
    (module / "_version.py").write_text('__version__: str = "0.0.9"\n')
    (module / "other.py").write_text('__version__ = "0.1.0"\n')
    flat = world.root / "free" / "free"
    flat.mkdir()
    (flat / "__init__.py").write_text('__version__: str = "0.1.0"\n')
    answer = world.run("bump", "core", "patch", "--json")
    assert answer.code == 0 and "core/src/core/__init__.py" in answer.json["files"]
    assert (module / "__init__.py").read_bytes().decode() == code.replace("'0.1.0'", "'0.1.1'")
    assert (module / "_version.py").read_text() == '__version__: str = "0.0.9"\n'
    assert (module / "other.py").read_text() == '__version__ = "0.1.0"\n'
    assert world.run("bump", "free", "major", "--json").json["files"][1] == "free/free/__init__.py"
    assert (flat / "__init__.py").read_text() == '__version__: str = "1.0.0"\n'


def test_drift_is_reported_and_pin_repairs_it(world):
    write_packages(world)
    path = world.root / "user" / "pyproject.toml"
    path.write_text(path.read_text().replace('version = "0.1.0"', 'version = "0.3.0"'))
    answer = world.sync()
    assert answer.code == 1
    assert "user: drift: version is 0.1.0 in the manifest and 0.3.0 in user/pyproject.toml" in answer.err
    assert "ptows pin user" in answer.err
    assert "0.3.0" in world.run("status", "--json").json["entries"][1]["drift"]
    assert world.run("pin", "user").code == 0
    assert "version: '0.3.0'" in read(world)
    assert world.sync().code == 0


# the lock


def test_locked_fails_on_an_edited_tree_package_and_changes_nothing(world):
    write_packages(world)
    remote, first = world.remote("alpha")
    url = world.remotes["alpha"].url
    manifest = read(world) + f'repos:\n  alpha: {{url: "{url}", rev: "{first}", path: alpha}}\n'
    world.manifest(manifest)
    subprocess.run(["git", "init", "-q"], cwd=world.root, check=True)
    world.git(".", "add", "core", "user", "free", "workspace.yaml")
    world.git(".", "commit", "-qm", "first")
    assert world.run("lock").code == 0
    assert world.sync("--locked").code == 0 and world.head("alpha") == first
    lock = (world.root / "workspace.lock").read_bytes()
    (world.root / "core" / "new.py").write_text("x = 1\n")
    world.manifest(manifest.replace(first, remote.commit({"a.txt": "second\n"})))
    answer = world.sync("--locked")
    assert answer.code == 1
    assert "core: tree is " in answer.err and "alpha: commit is " in answer.err
    assert "uncommitted changes in core/new.py" in answer.err
    assert world.head("alpha") == first and (world.root / "workspace.lock").read_bytes() == lock
    world.git(".", "add", "core")
    world.git(".", "commit", "-qm", "second")
    assert world.sync("--locked").code == 1


def test_the_digest_is_the_tree_hash_with_or_without_a_commit(world):
    write_packages(world)
    world.run("lock")
    outside = json.loads((world.root / "workspace.lock").read_text())["entries"]["core"]["tree"]
    subprocess.run(["git", "init", "-q"], cwd=world.root, check=True)
    world.run("lock")
    untracked = json.loads((world.root / "workspace.lock").read_text())["entries"]["core"]["tree"]
    world.git(".", "add", "core")
    world.git(".", "commit", "-qm", "first")
    world.run("lock")
    committed = json.loads((world.root / "workspace.lock").read_text())["entries"]["core"]["tree"]
    assert outside == untracked == committed == world.git(".", "rev-parse", "HEAD:core")


def test_two_machines_write_the_same_lock(world, tmp_path):
    write_packages(world)
    _, first = world.remote("alpha")
    (world.root / "bare").symlink_to(world.remotes["alpha"].bare)
    world.manifest(read(world) + f'repos:\n  alpha: {{url: bare, rev: "{first}", path: alpha}}\n')
    assert world.sync().code == 0
    lock = (world.root / "workspace.lock").read_bytes()
    import shutil

    other = tmp_path / "other machine"
    shutil.copytree(
        world.root, other, symlinks=True, ignore=shutil.ignore_patterns("alpha", ".ptows", "workspace.lock")
    )
    world.root = other
    (other / "workspace.local.yaml").write_text(
        f'repos: {{alpha: {{url: "{world.remotes["alpha"].url}", path: moved}}}}\n'
    )
    assert world.sync().code == 0
    assert world.head("moved") == first
    assert (other / "workspace.lock").read_bytes() == lock
    assert str(tmp_path).encode() not in lock


def test_the_lock_covers_entries_that_are_off(world):
    _, first = world.remote("alpha")
    url = world.remotes["alpha"].url
    world.manifest(
        "workspace: 1\nname: t\ngroups: {g: off}\n"
        f'repos: {{alpha: {{url: "{url}", rev: "{first}", path: alpha, groups: [g]}}}}\n'
    )
    assert world.run("lock").code == 0
    assert json.loads((world.root / "workspace.lock").read_text())["entries"]["alpha"]["commit"] == first
    assert world.run("lock", "--check").code == 0
    (world.root / "workspace.lock").unlink()
    assert world.run("lock", "--check", "--json").json["differences"] == ["alpha: not in the lock"]
    assert not (world.root / "workspace.lock").exists()


# vendoring


@pytest.fixture
def vendored(world):
    """A tree package that tracks a repository, in a workspace with one commit."""
    upstream, first = world.remote(
        "core", {"pyproject.toml": '[project]\nname="core"\nversion="0.1.0"\n', "a.py": "1\n"}
    )
    text = (
        "workspace: 1  # w\nname: t\npackages:\n  core:\n    path: sub/core\n    version: '0.1.0'\n"
        f"    tracks: {{url: '{upstream.url}', rev: '{first}'}}   # followed\n"
    )
    world.manifest(text)
    folder = world.root / "sub" / "core"
    folder.mkdir(parents=True)
    for name in ("pyproject.toml", "a.py"):
        (folder / name).write_text((upstream.work / name).read_text())
    (world.root / ".gitignore").write_text("*.log\n")
    subprocess.run(["git", "init", "-q"], cwd=world.root, check=True)
    world.git(".", "add", "-A")
    world.git(".", "commit", "-qm", "first")
    world.text, world.first, world.upstream = text, first, upstream
    return world


def test_vendor_pull_replaces_the_content_as_one_staged_change(vendored):
    second = vendored.upstream.commit({"a.py": None, "b/c.py": "2\n"})
    (vendored.root / "sub/core/keep.log").write_text("ignored\n")
    (vendored.root / "other.txt").write_text("staged before\n")
    vendored.git(".", "add", "other.txt")
    answer = vendored.run("vendor", "pull", "core", "--rev", "main")
    assert answer.code == 0, answer.err
    assert not (vendored.root / "sub/core/a.py").exists()
    assert (vendored.root / "sub/core/b/c.py").read_text() == "2\n"
    assert (vendored.root / "sub/core/keep.log").read_text() == "ignored\n"
    assert read(vendored) == vendored.text.replace(vendored.first, second)
    tree = subprocess.check_output(["git", "-C", str(vendored.upstream.work), "rev-parse", "HEAD^{tree}"], text=True)
    entry = json.loads((vendored.root / "workspace.lock").read_text())["entries"]["core"]
    assert entry["tracks"]["tree"] == entry["tree"] == tree.strip()
    staged = vendored.git(".", "diff", "--cached", "--name-only").split()
    assert staged == ["other.txt", "sub/core/a.py", "sub/core/b/c.py", "workspace.lock", "workspace.yaml"]
    vendored.git(".", "commit", "-qm", "pull")
    assert vendored.git(".", "status", "--porcelain") == ""
    assert vendored.run("lock", "--check").code == 0
    assert "core equals" in vendored.run("vendor", "diff", "core").out


def test_vendor_diff_shows_local_modifications(vendored):
    assert "core equals" in vendored.run("vendor", "diff", "core").out
    (vendored.root / "sub/core/a.py").write_text("mine\n")
    (vendored.root / "sub/core/new.py").write_text("new\n")
    wanted = [{"status": "M", "name": "a.py"}, {"status": "A", "name": "new.py"}]
    assert vendored.run("vendor", "diff", "core", "--json").json["files"] == wanted
    assert "+mine" in vendored.run("vendor", "diff", "core").out
    vendored.git(".", "add", "-A")
    vendored.git(".", "commit", "-qm", "mine")
    assert vendored.run("vendor", "diff", "core", "--json").json["files"] == wanted


def test_vendor_pull_refuses_a_changed_folder(vendored):
    second = vendored.upstream.commit({"a.py": "2\n"})
    (vendored.root / "sub/core/a.py").write_text("mine\n")
    answer = vendored.run("vendor", "pull", "core", "--rev", second)
    assert answer.code == 3 and "uncommitted changes in 'sub/core/a.py'" in answer.err
    assert (vendored.root / "sub/core/a.py").read_text() == "mine\n" and read(vendored) == vendored.text


def test_vendor_pull_refuses_ignored_files_in_the_way(vendored):
    second = vendored.upstream.commit({"run.log": "theirs\n"})
    (vendored.root / "sub/core/run.log").write_text("mine\n")
    answer = vendored.run("vendor", "pull", "core", "--rev", second)
    assert answer.code == 3
    assert (vendored.root / "sub/core/run.log").read_text() == "mine\n" and read(vendored) == vendored.text


def test_vendor_needs_a_package_that_tracks_something(world):
    _, first = world.remote("alpha")
    world.repos(alpha=first)
    for words in (["vendor", "pull", "alpha", "--rev", "main"], ["vendor", "diff", "alpha"]):
        answer = world.run(*words)
        assert answer.code == 2 and "'alpha' has no 'tracks'" in answer.err
