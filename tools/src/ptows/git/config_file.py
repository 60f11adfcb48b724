"""Reading a checkout's own ``.git/config`` without running git, to learn its remote and whether it could run code."""

from __future__ import annotations

import re
from pathlib import Path

_SECTION = re.compile(r'\[\s*([A-Za-z0-9.-]+)(?:\s+"((?:[^"\\]|\\.)*)")?\s*\]')
_KEY = re.compile(r"\s*([A-Za-z][A-Za-z0-9-]*)\s*(?:=\s*(.*))?$")
#: Keys whose value git would run as a program, or that pull in other files, during what sync does.
_RUNS_CODE = re.compile(
    r"include\.path|includeif\..*|core\.(sshcommand|gitproxy|askpass|alternaterefscommand|worktree)"
    r"|filter\..*\.(clean|smudge|process)|credential\.(.*\.)?helper|diff\.(.*\.)?(command|textconv|external)"
    r"|merge\..*\.driver|remote\..*\.(uploadpack|receivepack|vcs)|submodule\..*\.update|protocol\..*"
    r"|uploadpack\.packobjectshook|url\..*|http\.(.*\.)?(proxy|sslverify|sslcert|sslkey|cookiefile)"
)
#: The one well-known program that tools put there.
_HARMLESS = re.compile(r"git-lfs (clean|smudge|filter-process)( .*)?|checkout|rebase|merge|none")


def read_config(path: Path) -> dict[str, list[str]]:
    """Values by lower-case key such as ``remote.origin.url`` (subsection as written), in file order.

    Raises:
        OSError: the file cannot be read.
    """
    found: dict[str, list[str]] = {}
    prefix = ""
    text = path.read_text(encoding="utf-8", errors="surrogateescape").replace("\\\n", "")
    for line in text.splitlines():
        line = line.strip()
        while (section := _SECTION.match(line)) is not None:
            sub = "" if section[2] is None else "." + re.sub(r"\\(.)", r"\1", section[2])
            prefix = section[1].lower() + sub
            line = line[section.end() :].strip()
        key = _KEY.match(line)
        if key and not line.startswith(("#", ";")):
            value = "true" if key[2] is None else _value(key[2])
            found.setdefault(f"{prefix}.{key[1].lower()}", []).append(value)
    return found


def _value(text: str) -> str:
    """A value without quotes, escapes and trailing comment."""
    result, quoted, index = "", False, 0
    while index < len(text):
        character = text[index]
        if character == '"':
            quoted = not quoted
        elif character == "\\" and index + 1 < len(text):
            index += 1
            result += {"n": "\n", "t": "\t", "b": "\b"}.get(text[index], text[index])
        elif character in "#;" and not quoted:
            break
        else:
            result += character
        index += 1
    return result.strip()


def code_running_keys(config: dict[str, list[str]]) -> list[str]:
    """Keys of a checkout's own configuration that sync will not run with."""
    return [
        key
        for key, values in config.items()
        if _RUNS_CODE.fullmatch(key.lower()) and not all(_HARMLESS.fullmatch(value) for value in values)
    ]
