"""Replacing strings of a ``pyproject.toml`` in place, then checking that nothing else changed."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from ptows.errors import PtowsError
from ptows.project import requirement_name, tomllib

_TABLE = re.compile(r"^[ \t]*\[([^\[\]\n]+)\][ \t]*(?:#.*)?\r?$", re.MULTILINE)
_NEXT_TABLE = re.compile(r"^[ \t]*\[", re.MULTILINE)
_STRING = re.compile(r"\"((?:[^\"\\\n]|\\.)*)\"|'([^'\n]*)'")


def set_version(text: str, version: str, file: str) -> str:
    """``text`` with ``[project] version`` set.

    Raises:
        PtowsError: there is no such line, or the file would not read back as wanted.
    """
    wanted = tomllib.loads(text)
    if not isinstance(wanted.get("project", {}).get("version"), str):
        raise PtowsError(f"{file} has no [project] version", "a version computed by the build cannot be raised here")
    wanted["project"]["version"] = version
    line = re.compile(r"^([ \t]*version[ \t]*=[ \t]*)(\"[^\"\n]*\"|'[^'\n]*')", re.MULTILINE)
    start, end = _table(text, "project", file)
    for match in line.finditer(text, start, end):
        quote = match[2][0]
        new = f"{text[: match.start(2)]}{quote}{version}{quote}{text[match.end(2) :]}"
        if _reads_as(new, wanted):
            return new
    raise PtowsError(f"cannot change the version in {file} in place", "edit it by hand")


def raise_requirement(text: str, name: str, old: str, new: str, file: str) -> str:
    """``text`` with exact requirements (``==old``, ``~=old``) on distribution ``name`` raised to ``new``.

    Requirements that allow newer versions anyway (``>=old``) stay.
    """
    pattern = re.compile(r"(==|~=|===)(\s*)" + re.escape(old) + r"(?![\w.*+!-])")

    def raised(requirement: str) -> str:
        return pattern.sub(rf"\g<1>\g<2>{new}", requirement) if requirement_name(requirement) == name else requirement

    data = tomllib.loads(text)
    wanted = _mapped(data, raised)
    if wanted == data:
        return text

    def rewritten(match: re.Match[str]) -> str:
        content = match[1] if match[1] is not None else match[2]
        return match[0][0] + raised(content) + match[0][-1]

    result = _STRING.sub(rewritten, text)
    if not _reads_as(result, wanted):
        raise PtowsError(f"cannot change the requirements in {file} in place", "edit them by hand")
    return result


def _mapped(data: dict[str, Any], change: Callable[[str], str]) -> dict[str, Any]:
    """The document with its requirement lists changed: dependencies and optional dependencies."""
    project = dict(data.get("project", {}))
    if isinstance(project.get("dependencies"), list):
        project["dependencies"] = [change(item) for item in project["dependencies"]]
    if isinstance(project.get("optional-dependencies"), dict):
        extras = project["optional-dependencies"]
        project["optional-dependencies"] = {key: [change(item) for item in value] for key, value in extras.items()}
    return {**data, "project": project} if "project" in data else data


def _table(text: str, name: str, file: str) -> tuple[int, int]:
    for match in _TABLE.finditer(text):
        if match[1].strip() == name:
            following = _NEXT_TABLE.search(text, match.end())
            return match.end(), following.start() if following else len(text)
    raise PtowsError(f"{file} has no [{name}] table on a line of its own", "edit it by hand")


def _reads_as(text: str, wanted: dict[str, Any]) -> bool:
    try:
        return tomllib.loads(text) == wanted
    except tomllib.TOMLDecodeError:
        return False
