"""Where a finding may be anchored: validity of locations, anchors of a patch, links into the reviewed commits."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import quote

_HUNK = re.compile(r"@@ -([0-9]+)(?:,([0-9]+))? \+([0-9]+)(?:,([0-9]+))? @@.*", re.S)


def finding_location(finding: dict) -> dict | None:
    """The finding's location if it is well formed, else None; a bad location never rejects the finding."""
    location = finding.get("location")
    if not isinstance(location, dict) or set(location) != {"path", "line", "side"}:
        return None
    path, line, side = location["path"], location["line"], location["side"]
    if not isinstance(path, str) or not path or any(part in ("", ".", "..") for part in path.split("/")):
        return None
    if any(ord(char) < 32 or 127 <= ord(char) < 160 or 0xD800 <= ord(char) < 0xE000 for char in path):
        return None
    if isinstance(line, bool) or not isinstance(line, int) or line <= 0:
        return None
    return location if side in ("LEFT", "RIGHT") else None


def patch_lines(patch: Any) -> set:
    """(side, line) pairs of one file's patch that can carry a comment; empty if the patch is missing or damaged.

    Splits on line feeds only: source lines may contain other separators. A truncated patch yields no anchor at all,
    since its counts cannot be trusted.
    """
    if not isinstance(patch, str) or not patch:
        return set()
    lines = patch.split("\n")
    if lines[-1] == "":
        lines.pop()
    anchors: set = set()
    old = new = old_left = new_left = 0
    started = False
    for line in lines:
        if line.startswith("\\"):
            if not started:
                return set()
            continue
        if old_left == 0 and new_left == 0:
            match = _HUNK.fullmatch(line)
            if not match:
                return set()
            started = True
            old, new = int(match.group(1)), int(match.group(3))
            old_left = 1 if match.group(2) is None else int(match.group(2))
            new_left = 1 if match.group(4) is None else int(match.group(4))
            continue
        kind = line[:1]
        if kind == "-" and old_left:
            anchors.add(("LEFT", old))
            old, old_left = old + 1, old_left - 1
        elif kind == "+" and new_left:
            anchors.add(("RIGHT", new))
            new, new_left = new + 1, new_left - 1
        elif kind == " " and old_left and new_left:
            anchors.add(("RIGHT", new))
            old, old_left, new, new_left = old + 1, old_left - 1, new + 1, new_left - 1
        else:
            return set()
    return anchors if started and old_left == new_left == 0 else set()


def file_entries(files: Any) -> dict:
    """Changed files by current name; entries without a usable name are left out (they anchor nothing)."""
    return {f["filename"]: f for f in files if isinstance(f, dict) and isinstance(f.get("filename"), str)}


def code_link(repo: str, head: str, merge_base: str, location: dict, entry: dict | None) -> str:
    """Link to the reported line: in the head for RIGHT, in the merge base (under the file's old name) for LEFT."""
    path, commit = location["path"], head
    if location["side"] == "LEFT":
        commit = merge_base
        previous = entry.get("previous_filename") if entry else None
        if isinstance(previous, str) and previous:
            path = previous
    return f"https://github.com/{repo}/blob/{commit}/{quote(path, safe='/')}#L{location['line']}"


def cites_own_thread(comment: Any, location: dict, entry: dict | None) -> bool:
    """Does the cited root comment of this workflow belong to the finding's file, directly or through a rename?"""
    path = comment.get("path")
    if not isinstance(path, str) or not path:
        return False
    if path == location["path"]:
        return True
    return bool(entry) and entry.get("status") == "renamed" and entry.get("previous_filename") == path
