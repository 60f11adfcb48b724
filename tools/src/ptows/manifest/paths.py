"""Which paths an entry may have: inside the workspace, apart from each other, the same on every file system."""

from __future__ import annotations

import unicodedata
from pathlib import Path, PurePosixPath


def problem_with(path: str) -> tuple[str, str] | None:
    """What is wrong with one path by itself, as (what, hint); None when it is fine."""
    if not path:
        return "an empty path", "give the folder of the entry, like 'pypto'"
    if any(ord(character) < 32 or ord(character) == 127 for character in path):
        return f"a path with a control character: {path!r}", "use printable characters"
    if "\\" in path:
        return f"a path with a backslash: '{path}'", "separate folders with '/'"
    pure = PurePosixPath(path)
    if pure.is_absolute() or path.startswith("~") or (len(path) > 1 and path[1] == ":"):
        return f"an absolute path: '{path}'", "paths are relative to the workspace"
    if ".." in pure.parts:
        return f"a path that leaves the workspace: '{path}'", "remove '..'"
    if not pure.parts:
        return f"the workspace itself as a path: '{path}'", "give a folder inside it"
    reserved = {".git", ".ptows", ".nox"}
    if any(part.casefold() in reserved for part in pure.parts):
        return f"a reserved folder in the path: '{path}'", "choose another folder; " + ", ".join(sorted(reserved))
    return None


def leaves_through_link(root: Path, path: str) -> Path | None:
    """Where ``path`` really leads when a symbolic link takes it out of ``root``; None when it stays inside."""
    current = root
    for part in PurePosixPath(path).parts:
        current = current / part
        if current.is_symlink():
            real = Path(current.resolve())
            if not real.is_relative_to(root.resolve()):
                return real
    return None


def normal(path: str) -> str:
    """The path without ``.`` parts and doubled slashes."""
    return str(PurePosixPath(path))


def collisions(paths: list[tuple[str, str]]) -> list[tuple[str, str, str, str]]:
    """Pairs that cannot live together: (name, what, hint, other name) for the later entry of each pair.

    Args:
        paths: (entry name, normal path) in manifest order.
    """
    found: list[tuple[str, str, str, str]] = []
    exact: dict[str, str] = {}
    folded: dict[tuple[str, ...], tuple[str, str]] = {}
    for name, path in paths:
        key = tuple(_fold(part) for part in PurePosixPath(path).parts)
        if path in exact:
            other = exact[path]
            found.append((name, f"'{name}' has the path of '{other}': '{path}'", "give each its own folder", other))
        elif key in folded:
            other, their = folded[key]
            what = f"'{path}' differs from '{their}' of '{other}' only in spelling"
            found.append((name, what, "some file systems cannot hold both", other))
        exact.setdefault(path, name)
        folded.setdefault(key, (name, path))
    for key, (name, path) in folded.items():
        for length in range(1, len(key)):
            if key[:length] in folded:
                other, their = folded[key[:length]]
                what = f"'{path}' of '{name}' lies inside '{their}' of '{other}'"
                found.append((name, what, "checkouts cannot be nested", other))
    return found


def _fold(part: str) -> str:
    return unicodedata.normalize("NFC", part).casefold()
