"""Finding the workspace and reading its manifest, the manifests it imports, and this machine's overrides."""

from __future__ import annotations

import os
from pathlib import Path

from ptows.errors import ManifestError, Problem, UsageError
from ptows.manifest import paths
from ptows.manifest.document import Node, parse
from ptows.manifest.fields import Fields, Problems
from ptows.manifest.model import Manifest
from ptows.manifest.schema import TOP_KEYS, check_version, read

FILE = "workspace.yaml"
LOCAL_FILE = "workspace.local.yaml"
MERGED_SECTIONS = ("remotes", "packages", "repos", "groups", "toolchain", "sessions")


def find_root(start: Path) -> Path:
    """The nearest folder from ``start`` upwards that has a ``workspace.yaml``.

    Raises:
        UsageError: there is none.
    """
    start = start.absolute()
    for folder in (start, *start.parents):
        if (folder / FILE).is_file():
            return folder
    raise UsageError(f"no {FILE} in {start} or a folder above it", "go into a workspace, or give --workspace DIR")


def load(root: Path) -> Manifest:
    """The checked manifest of the workspace at ``root``.

    Raises:
        ManifestError: with every mistake found in one file or in the merged whole.
    """
    if not (root / FILE).is_file():
        raise UsageError(f"no {FILE} in {root}", "give --workspace the folder that has it")
    root = root.absolute()
    files: list[Path] = []
    node = _read_with_imports(root, FILE, (), files)
    local = _parse_file(root, LOCAL_FILE, files) if (root / LOCAL_FILE).exists() else None
    return read(node, root, tuple(files), lambda url: _locate(url, root), local)


def _locate(url: str, root: Path) -> str:
    """Relative local paths count from the workspace."""
    if not url or "://" in url or os.path.isabs(url):
        return url
    before_slash = url.split("/", 1)[0]
    return url if ":" in before_slash else os.path.normpath(root / url)


def _parse_file(root: Path, name: str, files: list[Path]) -> Node:
    path = root / name
    try:
        with path.open("rb") as stream:
            # One byte more than allowed is enough to know that a file is too large.
            data = stream.read((1 << 20) + 1)
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from None
    if len(data) > 1 << 20:
        raise ManifestError([Problem(name, 1, f"the file has {path.stat().st_size} bytes", "at most 1 MiB")])
    files.append(path)
    return parse(data, name)


def _read_with_imports(root: Path, name: str, chain: tuple[str, ...], files: list[Path]) -> Node:
    """The root node of manifest ``name`` (relative to ``root``) with what it imports merged in."""
    node = _parse_file(root, name, files)
    problems = Problems()
    if chain:
        check_version(node, problems)
    fields = Fields(node, "", TOP_KEYS if not chain else (*TOP_KEYS, *node.entries), Problems())
    imported: list[Node] = []
    for item, text in fields.names("imports", "other/workspace.yaml"):
        if bad := paths.problem_with(text):
            problems.add(item, f"imports {bad[0]}", bad[1])
            continue
        other = paths.normal(text)
        if other == name or other in chain:
            problems.add(item, "imports go in a circle: " + " -> ".join((*chain, name, other)), "remove one")
        elif paths.leaves_through_link(root, other):
            problems.add(item, f"'{other}' leads out of the workspace", "remove the symbolic link")
        elif not (root / other).is_file():
            problems.add(item, f"no file '{other}'", "imports are relative to the workspace")
        else:
            imported.append(_read_with_imports(root, other, (*chain, name), files))
    problems.found += fields.problems.found if "imports" in node.entries else []
    if not problems.found:
        for section in MERGED_SECTIONS:
            _merge_section(node, imported, section, problems)
    if problems.found:
        raise ManifestError([p for p in problems.found if not p.what.startswith("unknown key")] or problems.found)
    return node


def _merge_section(node: Node, imported: list[Node], section: str, problems: Problems) -> None:
    """Adds what imports define and ``node`` does not; two imports that disagree need ``node`` to decide."""
    own = node.get(section)
    sources = [(other, other.get(section)) for other in imported]
    if own is None and any(found is not None for _, found in sources):
        own = Node("map", node.file, node.line)
        node.entries[section] = (own, own)
    if own is None or own.kind != "map":
        return
    decided = set(own.entries)
    for _, found in sources:
        if found is None or found.kind != "map":
            continue
        for key, (key_node, value) in found.entries.items():
            if key in decided:
                continue
            if key in own.entries and plain(own.entries[key][1]) != plain(value):
                first = own.entries[key][0]
                what = f"'{section}.{key}' differs between {first.file} (line {first.line}) and {value.file}"
                problems.add(key_node, what, f"settle it in {node.file}")
            own.entries.setdefault(key, (key_node, value))


def plain(node: Node) -> object:
    """The value without places, for comparison."""
    if node.kind == "map":
        return {key: plain(value) for key, (_, value) in node.entries.items()}
    if node.kind == "list":
        return [plain(item) for item in node.items]
    return (node.type, node.text)
