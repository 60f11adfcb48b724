"""Replacing scalars of a YAML file at the positions the parser gave, then checking that nothing else changed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ptows.errors import PtowsError
from ptows.manifest.document import Node, parse
from ptows.manifest.load import plain


def replace_scalars(text: str, changes: Sequence[tuple[Node, str]], file: str) -> str:
    """``text`` with each node's value replaced, in the quotes it had.

    Raises:
        PtowsError: the result would not read back as the same document with those values.
    """
    result = text
    for node, value in sorted(changes, key=lambda change: change[0].start, reverse=True):
        written = result[node.start : node.end]
        result = result[: node.start] + _quoted(value, written[:1]) + result[node.end :]
    before, after = parse(text.encode(), file), parse(result.encode(), file)
    wanted = {(node.start, node.end): value for node, value in changes}
    if not wanted.keys() <= _places(before) or not _equal_but(before, after, wanted):
        raise PtowsError(f"cannot change {file} in place", "edit it by hand")
    return result


def _quoted(value: str, quote: str) -> str:
    if quote == "'":
        return "'" + value.replace("'", "''") + "'"
    # Also in place of a bare word: YAML reads some words and hashes as something else than text.
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _places(node: Node) -> set[tuple[int, int]]:
    """Positions of all scalar values: a file that changed since it was read has others."""
    if node.kind == "scalar":
        return {(node.start, node.end)}
    children = [*node.items, *(value for _, value in node.entries.values())]
    return set().union(*map(_places, children))


def _equal_but(before: Node, after: Node, wanted: dict[tuple[int, int], str]) -> bool:
    """Whether ``after`` is ``before`` with the wanted values at the positions of ``before``."""
    place = (before.start, before.end)
    if before.kind == "scalar" and place in wanted:
        return after.kind == "scalar" and after.type == "str" and after.text == wanted[place]
    if before.kind != after.kind or list(before.entries) != list(after.entries):
        return False
    if before.kind == "scalar":
        return plain(before) == plain(after)
    pairs = [(old, after.entries[key][1]) for key, (_, old) in before.entries.items()]
    pairs += list(zip(before.items, after.items))
    return len(before.items) == len(after.items) and all(_equal_but(old, new, wanted) for old, new in pairs)


def edit_files(root: Path, changes: Sequence[tuple[Node, str]]) -> list[str]:
    """Writes the changed values into the manifest files their nodes came from; the names of files that changed.

    Raises:
        PtowsError: a file changed since it was read, or cannot be written.
    """
    texts: dict[str, str] = {}
    for file in dict.fromkeys(node.file for node, _ in changes):
        raw = (root / file).read_bytes()
        mark = "\ufeff" if raw.startswith(b"\xef\xbb\xbf") else ""
        old = raw.decode("utf-8-sig")
        new = replace_scalars(old, [(node, value) for node, value in changes if node.file == file], file)
        if new != old:
            texts[file] = mark + new
    for file, text in texts.items():
        write_text(root / file, text)
    return list(texts)


def write_text(path: Path, text: str) -> None:
    """Replaces a file in one step, keeping its permissions and line ends.

    Raises:
        PtowsError: it cannot be written.
    """
    temporary = path.with_name(f".{path.name}.ptows.tmp")
    try:
        temporary.write_bytes(text.encode(errors="surrogateescape"))
        temporary.chmod(path.stat().st_mode & 0o7777)
        # A symbolic link stays one: its target is replaced.
        temporary.replace(path.resolve())
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise PtowsError(f"cannot write {path}: {error.strerror}") from None
