"""Wrong manifests: the exact message, line and hint of each, and quick refusal of hostile ones."""

from __future__ import annotations

import time

import pytest
from ptows.errors import ManifestError
from ptows.manifest import load

SHA = "0123456789abcdef0123456789abcdef01234567"
HEAD = "workspace: 1\nname: t\n"
REPO = 'repos:\n  x: {{url: "file:///x", rev: main, path: x, {0}}}\n'


def package(text: str) -> str:
    return HEAD + 'packages:\n  one: {path: one, version: "1.0"}\n  two:\n' + text


TABLE = [
    # (manifest, message after the file name)
    (HEAD + "pakages: {}\n", "unknown key 'pakages' (line 3): did you mean 'packages'?"),
    ("name: t\n", "missing key 'workspace' (line 1): the first line is 'workspace: 1'"),
    ("workspace: 1\n", "missing key 'name' (line 1): for example name: pto"),
    (
        "workspace: 2\nname: t\nbrand-new-key: 1\n",
        "schema version 2 is newer than 1, the newest this ptows reads (line 1): upgrade ptows",
    ),
    ("workspace: one\nname: t\n", "workspace must be a schema version, found 'one' (line 1): write 1"),
    ("workspace: 0\nname: t\n", "workspace must be a schema version, found '0' (line 1): write 1"),
    ("", "the file is empty (line 1): it starts with 'workspace: 1'"),
    ("- a\n", "expected a map of keys at the top, found a list (line 1): it starts with 'workspace: 1'"),
    ("workspace: 1\nname: yes\n", 'name is read by YAML as a boolean (line 2): put it in quotes: "yes"'),
    ("workspace: 1\nname:\n", "name must be text, found nothing (line 2): for example pto"),
    ("workspace: 1\nname: [a]\n", "name must be text, found a list (line 2): for example pto"),
    (HEAD + "name: again\n", "duplicate key 'name' (line 3): first used on line 2"),
    (
        HEAD + "requires-python: three\n",
        "requires-python is 'three' (line 3): write a specifier like \">=3.10\"",
    ),
    (
        HEAD + "remotes: []\n",
        "remotes must be a map of names, found a list (line 3): write one name per line, each with its keys",
    ),
    (HEAD + "remotes:\n  origin: x\n", "remotes.origin must be a map of keys, found 'x' (line 4): write origin: {...}"),
    (HEAD + "remotes:\n  origin: {uri: x}\n", "unknown key 'uri' in remotes.origin (line 4): did you mean 'url'?"),
    (
        HEAD + 'remotes:\n  origin: {url: "ftp://x"}\n',
        "remotes.origin.url has the scheme 'ftp' (line 4): use https, http, ssh, git, file or a local path",
    ),
    (
        HEAD + 'remotes:\n  origin: {url: "-upload"}\n',
        "remotes.origin.url starts with '-' (line 4): use https, http, ssh, git, file or a local path",
    ),
    (
        HEAD + "remotes:\n  'a b': {url: x}\n",
        "'a b' cannot be a name in remotes (line 4): names have letters, digits, '_', '-' and '.'",
    ),
    (
        HEAD + "repos:\n  x: {remote: orign, repo: x, rev: main, path: x}\nremotes: {origin: {url: x}}\n",
        "no remote named 'orign' (line 4): did you mean 'origin'?",
    ),
    (
        HEAD + "repos:\n  x: {rev: main, path: x}\n",
        "missing key 'url' in repos.x (line 4): write remote and repo, or url",
    ),
    (HEAD + REPO.format("remote: o"), "repos.x.remote next to url (line 4): keep either url, or remote and repo"),
    (HEAD + REPO.format("pth: y"), "unknown key 'pth' in repos.x (line 4): did you mean 'path'?"),
    (
        HEAD + REPO.format("depth: 0"),
        "repos.x.depth must be a whole number from 1, found '0' (line 4): for example depth: 1",
    ),
    (
        HEAD + REPO.format("depth: deep"),
        "repos.x.depth must be a whole number from 1, found 'deep' (line 4): for example depth: 1",
    ),
    (
        HEAD + REPO.format("filter: everything"),
        "repos.x.filter is 'everything' (line 4): write blob:none, blob:limit=1m or tree:0",
    ),
    (
        HEAD + REPO.format("submodules: maybe"),
        "repos.x.submodules must be on or off, found 'maybe' (line 4): write on or off",
    ),
    (HEAD + REPO.format("groups: [docs]"), "no group named 'docs' (line 4): declare it: groups: {docs: off}"),
    (HEAD + REPO.format("groups: docs"), "repos.x.groups must be a list, found 'docs' (line 4): write [reference]"),
    (
        HEAD + 'repos:\n  x: {url: y, rev: "a b", path: x}\n',
        "repos.x.rev is 'a b' (line 4): write a full commit hash, a tag or a branch",
    ),
    (
        HEAD + 'repos:\n  x: {url: y, rev: "--upload-pack=x", path: x}\n',
        "repos.x.rev is '--upload-pack=x' (line 4): write a full commit hash, a tag or a branch",
    ),
    (
        HEAD + "repos:\n  x: {url: y, path: x}\n",
        "missing key 'rev' in repos.x (line 4): for example rev: \"<40 hex digits>\"",
    ),
    (
        HEAD + f"repos:\n  x: {{url: y, rev: {'1' * 40}, path: x}}\n",
        f'repos.x.rev is read by YAML as a number (line 4): put it in quotes: "{"1" * 40}"',
    ),
    (
        HEAD + f"repos:\n  x: {{url: y, rev: {SHA.upper()}, path: x}}\n",
        f"repos.x.rev has capital letters (line 4): write it in lower case: {SHA}",
    ),
    (HEAD + "repos:\n  x: {url: y, rev: main}\n", "missing key 'path' in repos.x (line 4): for example path: x"),
    (
        HEAD + "repos:\n  x: {url: y, rev: main, path: ../outside}\n",
        "repos.x.path is a path that leaves the workspace: '../outside' (line 4): remove '..'",
    ),
    (
        HEAD + "repos:\n  x: {url: y, rev: main, path: a/../../b}\n",
        "repos.x.path is a path that leaves the workspace: 'a/../../b' (line 4): remove '..'",
    ),
    (
        HEAD + "repos:\n  x: {url: y, rev: main, path: /tmp/x}\n",
        "repos.x.path is an absolute path: '/tmp/x' (line 4): paths are relative to the workspace",
    ),
    (
        HEAD + 'repos:\n  x: {url: y, rev: main, path: "C:/x"}\n',
        "repos.x.path is an absolute path: 'C:/x' (line 4): paths are relative to the workspace",
    ),
    (
        HEAD + "repos:\n  x: {url: y, rev: main, path: .}\n",
        "repos.x.path is the workspace itself as a path: '.' (line 4): give a folder inside it",
    ),
    (
        HEAD + "repos:\n  x: {url: y, rev: main, path: a/.GIT/hooks}\n",
        "repos.x.path is a reserved folder in the path: 'a/.GIT/hooks' (line 4): "
        "choose another folder; .git, .nox, .ptows",
    ),
    (
        HEAD + 'repos:\n  x: {url: y, rev: main, path: "a\\\\b"}\n',
        "repos.x.path is a path with a backslash: 'a\\b' (line 4): separate folders with '/'",
    ),
    (
        HEAD + "repos:\n  x: {url: y, rev: main, path: same}\n  y: {url: y, rev: main, path: ./same/}\n",
        "'y' has the path of 'x': 'same' (line 5): give each its own folder",
    ),
    (
        HEAD + "repos:\n  x: {url: y, rev: main, path: Same}\n  y: {url: y, rev: main, path: same}\n",
        "'same' differs from 'Same' of 'x' only in spelling (line 5): some file systems cannot hold both",
    ),
    (
        HEAD + "repos:\n  x: {url: y, rev: main, path: a}\n  y: {url: y, rev: main, path: a/b}\n",
        "'a/b' of 'y' lies inside 'a' of 'x' (line 5): checkouts cannot be nested",
    ),
    (package('    version: "1"\n'), "missing key 'path' in packages.two (line 6): for example path: two"),
    (package("    path: two\n"), "missing key 'version' in packages.two (line 6): for example version: \"0.1.0\""),
    (
        package("    path: two\n    version: 1.10\n"),
        'packages.two.version is read by YAML as a number (line 7): put it in quotes: "1.10"',
    ),
    (
        package('    path: two\n    version: "new"\n'),
        "packages.two.version is 'new' (line 7): write a version like \"0.1.0\"",
    ),
    (
        package('    path: two\n    version: "1"\n    source: svn\n'),
        "packages.two.source is 'svn' (line 8): allowed here: tree, git",
    ),
    (
        package('    path: two\n    version: "1"\n    rev: main\n'),
        "packages.two.rev needs 'source: git' (line 8): add source: git, or use tracks",
    ),
    (
        package('    path: two\n    version: "1"\n    tracks: main\n'),
        "packages.two.tracks must be a map, found 'main' (line 8): write {remote: ..., repo: ..., rev: ...}",
    ),
    (
        package('    path: two\n    version: "1"\n    depends: [ones]\n'),
        "'two' depends on 'ones', not a package (line 8): did you mean 'one'?",
    ),
    (
        package('    path: two\n    version: "1"\n    depends: [one, one]\n'),
        "'one' twice in packages.two.depends (line 8): remove one",
    ),
    (
        package('    path: two\n    version: "1"\n    depends: [two]\n'),
        "dependency cycle: two -> two (line 8): remove one of these dependencies",
    ),
    (
        HEAD + 'packages:\n  a: {path: a, version: "1", depends: [b]}\n  b: {path: b, version: "1", depends: [a]}\n',
        "dependency cycle: a -> b -> a (line 4): remove one of these dependencies",
    ),
    (
        package('    path: two\n    version: "1"\nrepos:\n  two: {url: y, rev: main, path: z}\n'),
        "'two' is both a package and a repo (line 9): first used on line 5",
    ),
    (HEAD + "groups: [a]\n", "groups must be a map, found a list (line 3): write {default: [], name: off}"),
    (HEAD + "groups: {a: perhaps}\n", "groups.a must be on or off, found 'perhaps' (line 3): write on or off"),
    (
        HEAD + "groups: {default: [a], a: off}\n",
        "group 'a' is listed under default and switched off (line 3): keep one of the two",
    ),
    (
        HEAD + "sessions: {tests: {}}\n",
        "missing key 'packages' in sessions.tests (line 3): write packages: all, or a list of names",
    ),
    (
        HEAD + "sessions: {tests: {packages: most}}\n",
        "sessions.tests.packages is 'most' (line 3): write all, or a list of names",
    ),
    (
        package('    path: two\n    version: "1"\nsessions: {tests: {packages: [tow]}}\n'),
        "no package named 'tow' (line 8): did you mean 'two'?",
    ),
    (
        HEAD + 'sessions: {tests: {packages: all, args: ["{folder}"]}}\n',
        "unknown placeholder '{folder}' (line 3): use {name} or {path}",
    ),
    (
        HEAD + "toolchain: {cxx: {standart: 17}}\n",
        "unknown key 'standart' in toolchain.cxx (line 3): did you mean 'standard'?",
    ),
    (HEAD + "toolchain: {cxx: {version: new}}\n", "toolchain.cxx.version is 'new' (line 3): write \">=0.1\""),
    (
        HEAD + "imports: [../other.yaml]\n",
        "imports a path that leaves the workspace: '../other.yaml' (line 3): remove '..'",
    ),
    (HEAD + "imports: [none.yaml]\n", "no file 'none.yaml' (line 3): imports are relative to the workspace"),
    (
        HEAD + "imports: [workspace.yaml]\n",
        "imports go in a circle: workspace.yaml -> workspace.yaml (line 3): remove one",
    ),
    (HEAD + "groups: {a: on\n", "not valid YAML: did not find expected ',' or '}' (line 4)"),
    (HEAD + "\tgroups: {}\n", "not valid YAML: found a tab character that violates indentation (line 3)"),
    (HEAD + "groups: &all {}\n", "anchor '&all' (line 3): remove it; anchors are not allowed here"),
    (HEAD + "groups: *all\n", "alias '*all' (line 3): write the value out; aliases are not allowed here"),
    (HEAD + "<<: {a: b}\n", "merge key '<<' (line 3): write the values out; merging is not allowed here"),
    (
        HEAD + "groups: !!python/object/apply:os.system ['touch x']\n",
        "tag 'tag:yaml.org,2002:python/object/apply:os.system' (line 3): remove it; tags are not allowed here",
    ),
    (HEAD + "? [a, b]\n: c\n", "a list used as a key (line 3): keys are words"),
    (HEAD + "---\nworkspace: 1\n", "a second document starts (line 3): a manifest is one YAML document"),
]


def problems_of(tmp_path, text: str | bytes) -> list[str]:
    data = text.encode() if isinstance(text, str) else text
    (tmp_path / "workspace.yaml").write_bytes(data)
    with pytest.raises(ManifestError) as caught:
        load(tmp_path)
    return [str(problem).removeprefix("workspace.yaml: ") for problem in caught.value.problems]


@pytest.mark.parametrize(("text", "message"), TABLE, ids=[message[:50] for _, message in TABLE])
def test_message_line_and_hint(tmp_path, text, message):
    assert problems_of(tmp_path, text) == [message]


def test_the_table_is_long_enough():
    assert len(TABLE) >= 40 and len({message for _, message in TABLE}) == len(TABLE)


def test_every_mistake_is_reported_at_once_in_the_order_of_lines(tmp_path):
    text = "workspace: 1\nnam: t\nremotes: {o: {}}\nrepos:\n  x: {url: y, rev: main, path: ../x, dept: 1}\n"
    assert problems_of(tmp_path, text) == [
        "unknown key 'nam' (line 2): did you mean 'name'?",
        "missing key 'url' in remotes.o (line 3): for example url: \"https://host/owner\"",
        "unknown key 'dept' in repos.x (line 5): did you mean 'depth'?",
        "repos.x.path is a path that leaves the workspace: '../x' (line 5): remove '..'",
    ]


def test_the_command_line_prints_the_file_and_ends_with_2(world):
    world.manifest("workspace: 1\nname: t\npakages: {}\n")
    for words in ("sync", "list", "status", "graph", "lock", "diff", "doctor"):
        answer = world.run(words)
        assert answer.code == 2
        assert "error: workspace.yaml: unknown key 'pakages' (line 3): did you mean 'packages'?" in answer.err


def test_a_symbolic_link_that_leaves_the_workspace_is_refused(tmp_path):
    (tmp_path / "ws").mkdir()
    (tmp_path / "outside").mkdir()
    (tmp_path / "ws" / "link").symlink_to(tmp_path / "outside")
    text = HEAD + "repos:\n  x: {url: y, rev: main, path: link/x}\n"
    found = problems_of(tmp_path / "ws", text)
    assert found == [
        f"'link/x' leads out of the workspace to '{tmp_path / 'outside'}' (line 4): remove the symbolic link"
    ]


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"a: &a [x,x,x]\nb: &b [*a,*a,*a]\nc: [*b,*b,*b]\n", "anchor '&a'"),
        (b"workspace: 1\nname: t\n" + b"# padding\n" * 1_100_000, "the file has 11000021 bytes"),
        (b"[" * 500_000, "exceeded maximum nesting depth"),
        (b"{a: " * 200_000, "nested more than 32 levels deep"),
        (b"x:\n" + b"- a\n" * 200_000, "more than 100000 values"),
        (b"workspace: 1\nname: \xff\xfe\n", "the file is not UTF-8 text"),
        (b"workspace: 1\nname: a\x00b\n", "not valid YAML"),
        (b"a: !!python/name:os.system\n", "tags are not allowed here"),
        (b"a: !x y\n", "tags are not allowed here"),
        (b"%TAG ! tag:x,2000:\n---\na: !y z\n", "tags are not allowed here"),
        (b"a: !!binary aGVsbG8=\n", "tags are not allowed here"),
        (b"\xef\xbb\xbfpakages: 1\n", "unknown key 'pakages'"),
        (b'"' + b"a" * 1000 + b'": 1\n', "unknown key 'aaa"),
    ],
    ids=lambda case: repr(case)[:30],
)
def test_hostile_manifests_are_refused_quickly(tmp_path, data, words):
    (tmp_path / "workspace.yaml").write_bytes(data)
    started = time.process_time()
    with pytest.raises(ManifestError) as caught:
        load(tmp_path)
    # Processor time, with a wide margin: a bomb would take minutes or all memory.
    assert time.process_time() - started < 5
    assert words in str(caught.value)


def test_without_a_workspace_the_command_says_where_it_looked(tmp_path, monkeypatch, world):
    from ptows.__main__ import run

    monkeypatch.chdir(tmp_path)
    (tmp_path / "ws" / "workspace.yaml").unlink(missing_ok=True)
    assert run(["list"]) == 2
    answer = world.run("list")
    assert answer.code == 2 and f"no workspace.yaml in {world.root}" in answer.err
