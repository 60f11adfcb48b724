"""The schema of ``workspace.yaml``: merged nodes to a checked :class:`Manifest`."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from ptows.errors import ManifestError
from ptows.manifest import paths
from ptows.manifest.document import Node
from ptows.manifest.fields import Fields, Problems, scalar_text, word_flag
from ptows.manifest.model import Entry, Manifest, Session, Tool, Tracks, is_full_sha, suggestion
from ptows.specifier import is_specifier

SCHEMA = 1
TOP_KEYS = (
    "workspace",
    "name",
    "requires-python",
    "imports",
    "remotes",
    "packages",
    "repos",
    "groups",
    "toolchain",
    "sessions",
)
_GIT_KEYS = ("remote", "repo", "url", "rev", "depth", "filter", "submodules")
PACKAGE_KEYS = ("path", "version", "source", "tracks", "depends", "groups", *_GIT_KEYS)
REPO_KEYS = ("path", "groups", *_GIT_KEYS)
_VERSION = re.compile(r"\d+(\.\d+)*((a|b|rc)\d+)?(\.post\d+)?(\.dev\d+)?")
_BAD_REV = re.compile(r"[\s~^:?*\[\\\x00-\x1f\x7f]|\.\.|^[-/.]|@\{|//|\.lock$|[/.]$")
_FILTER = re.compile(r"blob:none|blob:limit=\d+[kmg]?|tree:\d+")
_PLACEHOLDER = re.compile(r"\{([^{}]*)\}")
_SCHEMES = ("https", "http", "ssh", "git", "file")

#: (root manifest URL text) -> URL git can use; relative local paths depend on the manifest's folder
Locate = Callable[[str], str]


def check_version(root: Node, problems: Problems) -> None:
    """The schema version comes first: a newer manifest may have keys this program does not know."""
    node = root.get("workspace")
    if node is None:
        problems.add(root, "missing key 'workspace'", f"the first line is 'workspace: {SCHEMA}'")
    elif node.kind != "scalar" or not node.text.isdecimal() or int(node.text) < 1:
        problems.add(node, f"workspace must be a schema version, found {node.describe()}", f"write {SCHEMA}")
    elif int(node.text) > SCHEMA:
        what = f"schema version {node.text} is newer than {SCHEMA}, the newest this ptows reads"
        raise ManifestError([*problems.found, _problem(node, what, "upgrade ptows")])


def _problem(node: Node, what: str, hint: str):
    problems = Problems()
    problems.add(node, what, hint)
    return problems.found[0]


def read(root: Node, folder: Path, files: tuple[Path, ...], locate: Locate, local: Node | None = None) -> Manifest:
    """The workspace that ``root`` describes, with the overrides of ``local``.

    Raises:
        ManifestError: with every mistake found.
    """
    problems = Problems()
    check_version(root, problems)
    top = Fields(root, "", TOP_KEYS, problems)
    name = top.text("name", example="pto", required=True)
    requires_python = top.text("requires-python", example='">=3.10"') or ""
    if requires_python and not is_specifier(requires_python):
        node = root.entries["requires-python"][1]
        problems.add(node, f"requires-python is '{requires_python}'", 'write a specifier like ">=3.10"')
    remotes = _remotes(top, problems)
    entries: dict[str, Entry] = {}
    places: dict[str, Node] = {}
    for kind, section in (("package", "packages"), ("repo", "repos")):
        for entry_name, key, node in top.maps(section):
            if entry_name in entries:
                hint = f"first used on line {places[entry_name].line}"
                problems.add(key, f"'{entry_name}' is both a package and a repo", hint)
                continue
            places[entry_name] = key
            entries[entry_name] = _entry(entry_name, kind, f"{section}.{entry_name}", node, remotes, locate, problems)
    groups = _groups(top, problems)
    _check_references(entries, groups, problems)
    if local is not None:
        entries, groups = _override(local, entries, groups, remotes, locate, problems)
    _check_paths(entries, places, folder, problems)
    _check_cycles(entries, places, problems)
    manifest = Manifest(
        root=folder,
        name=name,
        requires_python=requires_python,
        entries=entries,
        groups=groups,
        tools=_tools(top, problems),
        sessions=_sessions(top, entries, problems),
        files=files,
    )
    if problems.found:
        raise ManifestError(problems.found)
    return manifest


def _remotes(top: Fields, problems: Problems) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, _, node in top.maps("remotes"):
        fields = Fields(node, f"remotes.{name}", ("url",), problems)
        found[name] = _url(fields, required=True)
    return found


def _url(fields: Fields, required: bool = False) -> str:
    url = fields.text("url", example='"https://host/owner"', required=required)
    node = fields.value("url")
    if node is None or not url:
        return ""
    bad = _bad_url(url)
    if bad:
        fields.problems.add(node, f"{fields.path('url')} {bad}", f"use {', '.join(_SCHEMES)} or a local path")
    return url


def _bad_url(url: str) -> str:
    """What is wrong with a URL; "" when git may be given it."""
    if url.startswith("-"):
        return "starts with '-'"
    if re.search(r"[\x00-\x20\x7f]", url) and "://" in url:
        return "has a blank or a control character"
    if re.match(r"[A-Za-z0-9]+::", url):
        return f"names the transport helper '{url.split('::', 1)[0]}'"
    scheme = re.match(r"([A-Za-z][A-Za-z0-9+.-]*)://", url)
    if scheme and scheme[1].lower() not in _SCHEMES:
        return f"has the scheme '{scheme[1]}'"
    return ""


def _entry(
    name: str, kind: str, where: str, node: Node, remotes: dict[str, str], locate: Locate, problems: Problems
) -> Entry:
    fields = Fields(node, where, PACKAGE_KEYS if kind == "package" else REPO_KEYS, problems)
    nodes = {key: value for key, (_, value) in node.entries.items()}
    path = fields.text("path", example=name, required=True)
    if path and (bad := paths.problem_with(path)):
        problems.add(nodes["path"], f"{where}.path is {bad[0]}", bad[1])
        path = ""
    source = fields.choice("source", ("tree", "git"), "tree") if kind == "package" else "git"
    version = fields.text("version", example='"0.1.0"', required=kind == "package" and source == "tree") or None
    if version and not _VERSION.fullmatch(version):
        problems.add(nodes["version"], f"{where}.version is '{version}'", 'write a version like "0.1.0"')
    address = rev = ""
    if source == "git":
        address = _address(fields, remotes)
        rev = _rev(fields, required=True)
    else:
        for key in _GIT_KEYS:
            if key in nodes:
                problems.add(nodes[key], f"{where}.{key} needs 'source: git'", "add source: git, or use tracks")
    tracks = None
    if (tracks_node := nodes.get("tracks")) is not None:
        if tracks_node.kind != "map":
            hint = "write {remote: ..., repo: ..., rev: ...}"
            problems.add(tracks_node, f"{where}.tracks must be a map, found {tracks_node.describe()}", hint)
        else:
            inner = Fields(tracks_node, f"{where}.tracks", ("remote", "repo", "url", "rev"), problems)
            tracked = _address(inner, remotes)
            tracks = Tracks(url=locate(tracked), rev=_rev(inner, required=True), shared_url=tracked)
            nodes |= {f"tracks.{key}": value for key, (_, value) in tracks_node.entries.items()}
    depth = fields.whole("depth", 1)
    filter_text = fields.text("filter", example='"blob:none"')
    if filter_text and not _FILTER.fullmatch(filter_text):
        problems.add(nodes["filter"], f"{where}.filter is '{filter_text}'", "write blob:none, blob:limit=1m or tree:0")
    path = paths.normal(path) if path else ""
    return Entry(
        name=name,
        kind=kind,
        source=source,
        path=path,
        version=version,
        url=locate(address),
        rev=rev,
        depends=tuple(text for _, text in fields.names("depends", "pypto")),
        groups=tuple(text for _, text in fields.names("groups", "reference")),
        tracks=tracks,
        depth=depth,
        filter=filter_text,
        submodules=fields.flag("submodules", True),
        shared_url=address,
        shared_path=path,
        nodes=nodes,
    )


def _address(fields: Fields, remotes: dict[str, str]) -> str:
    """The URL that ``url``, or ``remote`` and ``repo``, give."""
    if fields.has("url"):
        for key in ("remote", "repo"):
            if (node := fields.value(key)) is not None:
                fields.problems.add(node, f"{fields.path(key)} next to url", "keep either url, or remote and repo")
        return _url(fields)
    if not fields.has("remote") and not fields.has("repo"):
        fields.missing("url", "write remote and repo, or url")
        return ""
    remote = fields.text("remote", example=next(iter(remotes), "origin"), required=True)
    repo = fields.text("repo", example="pypto", required=True)
    if remote and remote not in remotes:
        node = fields.node.entries["remote"][1]
        fields.problems.add(node, f"no remote named '{remote}'", suggestion(remote, remotes) or "add it to remotes")
        return ""
    if repo and (repo.startswith(("/", "-")) or ".." in repo.split("/") or re.search(r"\s", repo)):
        fields.problems.add(fields.node.entries["repo"][1], f"{fields.path('repo')} is '{repo}'", "write a name")
        return ""
    return f"{remotes[remote].rstrip('/')}/{repo}" if remote and repo and remotes[remote] else ""


def _rev(fields: Fields, required: bool) -> str:
    rev = fields.text("rev", example='"<40 hex digits>"', required=required)
    if rev and _BAD_REV.search(rev):
        hint = "write a full commit hash, a tag or a branch"
        fields.problems.add(fields.node.entries["rev"][1], f"{fields.path('rev')} is '{rev}'", hint)
        return ""
    if rev and re.fullmatch(r"[0-9a-fA-F]{40}", rev) and not is_full_sha(rev):
        hint = f"write it in lower case: {rev.lower()}"
        fields.problems.add(fields.node.entries["rev"][1], f"{fields.path('rev')} has capital letters", hint)
    return rev


def _groups(top: Fields, problems: Problems) -> dict[str, bool]:
    """Group name to on/off: ``name: on`` lines, plus the names listed under ``default``, which are on."""
    node = top.value("groups")
    if node is None:
        return {}
    if node.kind != "map":
        problems.add(node, f"groups must be a map, found {node.describe()}", "write {default: [], name: off}")
        return {}
    states: dict[str, bool] = {}
    for name, (_, value) in node.entries.items():
        if name == "default":
            continue
        flag = word_flag(value)
        if flag is None:
            problems.add(value, f"groups.{name} must be on or off, found {value.describe()}", "write on or off")
        states[name] = bool(flag)
    inner = Fields(node, "groups", tuple(node.entries), problems)
    for item, name in inner.names("default", "name") if "default" in node.entries else ():
        if states.get(name) is False and name in node.entries:
            problems.add(item, f"group '{name}' is listed under default and switched off", "keep one of the two")
        states[name] = True
    return states


def _check_references(entries: dict[str, Entry], groups: dict[str, bool], problems: Problems) -> None:
    packages = [name for name, entry in entries.items() if entry.kind == "package"]
    for entry in entries.values():
        for name in entry.depends:
            if name not in packages:
                hint = suggestion(name, [p for p in packages if p != entry.name])
                problems.add(entry.nodes["depends"], f"'{entry.name}' depends on '{name}', not a package", hint)
        for name in entry.groups:
            if name not in groups:
                hint = suggestion(name, groups) or f"declare it: groups: {{{name}: off}}"
                problems.add(entry.nodes["groups"], f"no group named '{name}'", hint)


def _check_paths(entries: dict[str, Entry], places: dict[str, Node], folder: Path, problems: Problems) -> None:
    known = [(entry.name, entry.path) for entry in entries.values() if entry.path]
    for name, what, hint, _ in paths.collisions(known):
        problems.add(entries[name].nodes.get("path", places[name]), what, hint)
    for name, path in known:
        target = paths.leaves_through_link(folder, path)
        if target is not None:
            node = entries[name].nodes.get("path", places[name])
            problems.add(node, f"'{path}' leads out of the workspace to '{target}'", "remove the symbolic link")


def _check_cycles(entries: dict[str, Entry], places: dict[str, Node], problems: Problems) -> None:
    from ptows.graph import find_cycle

    cycle = find_cycle({name: entry.depends for name, entry in entries.items()})
    if cycle:
        node = entries[cycle[0]].nodes.get("depends", places[cycle[0]])
        problems.add(node, "dependency cycle: " + " -> ".join(cycle), "remove one of these dependencies")


def _tools(top: Fields, problems: Problems) -> dict[str, Tool]:
    found: dict[str, Tool] = {}
    for name, _, node in top.maps("toolchain"):
        fields = Fields(node, f"toolchain.{name}", ("candidates", "optional", "version", "standard"), problems)
        version = fields.text("version", example='">=0.1"')
        if version and not is_specifier(version):
            problems.add(node.entries["version"][1], f"{fields.path('version')} is '{version}'", 'write ">=0.1"')
        found[name] = Tool(
            name=name,
            candidates=tuple(text for _, text in fields.names("candidates", "g++")),
            optional=fields.flag("optional", False),
            version=version,
            standard=fields.whole("standard", 1),
        )
    return found


def _sessions(top: Fields, entries: dict[str, Entry], problems: Problems) -> dict[str, Session]:
    packages = [name for name, entry in entries.items() if entry.kind == "package"]
    found: dict[str, Session] = {}
    for name, _, node in top.maps("sessions"):
        fields = Fields(node, f"sessions.{name}", ("packages", "args"), problems)
        value = fields.value("packages")
        chosen: tuple[str, ...] | None = None
        if value is None:
            fields.missing("packages", "write packages: all, or a list of names")
        elif value.kind == "list":
            names = fields.names("packages", "pypto")
            for item, package in names:
                if package not in packages:
                    problems.add(item, f"no package named '{package}'", suggestion(package, packages))
            chosen = tuple(package for _, package in names)
        elif scalar_text(value, fields.path("packages"), "all", problems) not in ("", "all"):
            problems.add(value, f"{fields.path('packages')} is {value.describe()}", "write all, or a list of names")
        args = tuple(text for _, text in fields.names("args", '"{path}/tests"')) if fields.has("args") else None
        for argument in args or ():
            for word in _PLACEHOLDER.findall(argument):
                if word not in ("name", "path"):
                    node_args = node.entries["args"][1]
                    problems.add(node_args, f"unknown placeholder '{{{word}}}'", "use {name} or {path}")
        found[name] = Session(name=name, packages=chosen, args=args)
    return found


def _override(
    local: Node,
    entries: dict[str, Entry],
    groups: dict[str, bool],
    remotes: dict[str, str],
    locate: Locate,
    problems: Problems,
) -> tuple[dict[str, Entry], dict[str, bool]]:
    """Entries and groups with the paths, URLs and groups of ``workspace.local.yaml``."""
    top = Fields(local, "", ("workspace", "remotes", "packages", "repos", "groups"), problems)
    changed_remotes: dict[str, str] = {}
    for name, key, node in top.maps("remotes"):
        if name not in remotes:
            problems.add(key, f"no remote named '{name}'", suggestion(name, remotes))
            continue
        changed_remotes[name] = _url(Fields(node, f"remotes.{name}", ("url",), problems), required=True)
    result = dict(entries)
    for name, entry in entries.items():
        remote = entry.nodes.get("remote")
        if entry.is_git and remote is not None and remote.text in changed_remotes:
            repo = entry.nodes["repo"].text
            result[name] = replace(entry, url=locate(f"{changed_remotes[remote.text].rstrip('/')}/{repo}"))
    for kind, section in (("package", "packages"), ("repo", "repos")):
        for name, key, node in top.maps(section):
            where = f"{section}.{name}"
            if name not in entries or entries[name].kind != kind:
                known = [other for other, entry in entries.items() if entry.kind == kind]
                problems.add(key, f"no {kind} named '{name}'", suggestion(name, known))
                continue
            fields = Fields(node, where, ("path", "url"), problems)
            entry = result[name]
            path = fields.text("path", example=name)
            if path and (bad := paths.problem_with(path)):
                problems.add(node.entries["path"][1], f"{where}.path is {bad[0]}", bad[1])
            elif path:
                nodes = {**entry.nodes, "path": node.entries["path"][1]}
                entry = replace(entry, path=paths.normal(path), nodes=nodes)
            url = _url(fields)
            if url and not entry.is_git:
                problems.add(node.entries["url"][1], f"{where}.url for a tree package", "remove it")
            elif url:
                entry = replace(entry, url=locate(url))
            result[name] = entry
    changed_groups = _groups(top, problems)
    for name in changed_groups:
        if name not in groups:
            problems.add(local.entries["groups"][1], f"no group named '{name}'", suggestion(name, groups))
    return result, groups | changed_groups
