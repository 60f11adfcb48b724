"""Anchors from patches: hand-made tables, and random edits through the real git."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from review_anchors import patch_lines


def right(*numbers: int) -> set:
    return {("RIGHT", n) for n in numbers}


def left(*numbers: int) -> set:
    return {("LEFT", n) for n in numbers}


# R7 R9, E32 E33 and section 13.3
@pytest.mark.parametrize(
    ("patch", "anchors"),
    [
        ("@@ -10,3 +20,3 @@\n a\n-b\n+c\n d", right(20, 21, 22) | left(11)),
        ("@@ -10,3 +20,3 @@ def f():\n a\n-b\n+c\n d\n", right(20, 21, 22) | left(11)),
        ("@@ -1 +1 @@\n-a\n+b", left(1) | right(1)),
        ("@@ -0,0 +1,2 @@\n+a\n+b", right(1, 2)),
        ("@@ -1,2 +0,0 @@\n-a\n-b", left(1, 2)),
        ("@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+b\n\\ No newline at end of file", left(1) | right(1)),
        ("@@ -1,2 +1,2 @@\n-a\n+b\n c\n@@ -9 +9 @@\n-x\n+y", left(1, 9) | right(1, 2, 9)),
        ("@@ -1,2 +1,2 @@\n \n-a\n+b", right(1, 2) | left(2)),
        # Separators that are no line ends for git.
        ("@@ -1,2 +1,2 @@\n-a\x0cb\u2028c\x85d\re\n+f\n g", left(1) | right(1, 2)),
        ("@@ -1 +1 @@\n-@@ -5 +5 @@\n+--- a", left(1) | right(1)),
        # Damaged: nothing of the file can be trusted.
        ("@@ -10,3 +20,3 @@\n a\n-b", set()),
        ("@@ -1,2 +1,2 @@\n-a\n+b\n c\n+d", set()),
        ("@@ -1,2 +1,2 @@\n-a\n+b\n\n", set()),
        ("@@ -1,3 +1,3 @@\n a\n\n-b\n+c", set()),
        ("x\n@@ -1 +1 @@\n-a\n+b", set()),
        ("--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b", set()),
        ("@@ -1 +1 @@\n-a\n*b", set()),
        ("@@ -1 +1 @\n-a\n+b", set()),
        ("\\ No newline at end of file\n@@ -1 +1 @@\n-a\n+b", set()),
        ("@@ -1,2 +1,2 @@\n-a\n+b\n c\n@@ -9,2 +9,2 @@\n-x", set()),
        ("@@ -x +1 @@\n+a", set()),
        ("", set()),
        (None, set()),
        (5, set()),
        (["@@"], set()),
    ],
    ids=range(25),
)
def test_anchors(patch: object, anchors: set) -> None:
    assert patch_lines(patch) == anchors


LINES = st.lists(
    st.sampled_from(["a", "b", "", "@@ -1 +1 @@", "\\ x", "- c", "+ d", "\x0c", "e\u2028f", "\x85"]), max_size=12
)


def git_patch(old: str, new: str, context: int) -> str:
    """The hunks that git prints for two contents."""
    with tempfile.TemporaryDirectory() as folder:
        for name, text in (("old", old), ("new", new)):
            Path(folder, name).write_bytes(text.encode())
        command = ["git", "diff", "--no-index", "--no-color", "--text", f"--unified={context}", "old", "new"]
        output = subprocess.run(command, cwd=folder, capture_output=True).stdout.decode()
    return output[output.index("\n@@ ") + 1 :] if "\n@@ " in output else ""


@pytest.mark.skipif(shutil.which("git") is None, reason="git is missing: apt-get install git")
@settings(max_examples=40, deadline=None)
@given(LINES, LINES, st.booleans(), st.integers(0, 200))
def test_anchors_of_real_patches_are_exact_and_damaged_ones_have_none(old, new, newline: bool, cut: int) -> None:
    before, after = "\n".join(old) + "\n" * newline, "\n".join(new) + "\n"
    patch = git_patch(before, after, 3)
    anchors = patch_lines(patch)
    changed: set = set()
    for a, b, c, d in re.findall(r"^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@", git_patch(before, after, 0), re.M):
        changed |= left(*range(int(a), int(a) + int(b or 1))) | right(*range(int(c), int(c) + int(d or 1)))
    if not any(line.startswith("@@") for line in (*old, *new)):
        assert changed <= anchors
        assert {entry for entry in anchors if entry[0] == "LEFT"} == {e for e in changed if e[0] == "LEFT"}
    assert all(1 <= n <= len((after if side == "RIGHT" else before).split("\n")) for side, n in anchors)
    # Cut inside the last hunk: a line less than announced, so nothing is left.
    body = patch.rstrip("\n").split("\n")
    while body and body[-1].startswith("\\"):
        body.pop()
    if len(body) > 1:
        assert patch_lines("\n".join(body[: 1 + cut % (len(body) - 1)])) in (set(), *whole_hunks(body))


def whole_hunks(body: list) -> list:
    """Anchors of the patch cut exactly before a hunk: whole in itself, so nothing shows that more was there."""
    cuts = [n for n, line in enumerate(body) if line.startswith("@@ -") and n]
    return [patch_lines("\n".join(body[:n])) for n in cuts]
