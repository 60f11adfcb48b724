"""Approve or comment? The pure decision, one named reason per precondition; doubt always withholds the approval."""

from __future__ import annotations

from typing import Any, NamedTuple

from codex_review_common import BASE_BRANCH, BOT_LOGIN

PROTECTED_FOLDERS = frozenset({".github", ".claude", ".codex", ".agents"})
PROTECTED_FILES = frozenset({"agents.md", "agents.override.md", "claude.md", ".gitmodules"})

DISABLED = "Automatic approval is disabled."
OWN_PULL_REQUEST = "The workflow cannot approve its own pull request."
INCOMPLETE = "No automatic approval: the review is incomplete."
FINDINGS = "No automatic approval: the review reports findings."
FILES_UNVERIFIED = "No automatic approval: cannot verify the complete list of changed files."
PROTECTED = "No automatic approval: changes to review policy or agent instructions need human review."
DIFF_UNVERIFIED = "No automatic approval: cannot verify the reviewed diff is current."
OTHER_BASE = "No automatic approval: the base branch is not " + BASE_BRANCH + "."
PASSED = "Complete review without findings: automatic approval."


class Decision(NamedTuple):
    """What to submit, why, and the requirement or table row that decided."""

    approve: bool
    reason: str
    rule: str


def sensitive_path(path: str) -> bool:
    """Does a change of this path need a human? Compared without case, at any depth."""
    parts = path.lower().split("/")
    return any(part in PROTECTED_FOLDERS for part in parts) or parts[-1] in PROTECTED_FILES


def early_decision(
    review: dict, *, diff_verified: bool, enabled: bool, author: str | None, base_ref: str
) -> Decision | None:
    """A refusal that needs no list of files, or None when only the files can still forbid the approval."""
    if not diff_verified:
        return Decision(False, DIFF_UNVERIFIED, "A12/A13 R174")
    if enabled is not True:
        return Decision(False, DISABLED, "A5 R155")
    # An unknown author may be the bot itself.
    if author is None or author == BOT_LOGIN:
        return Decision(False, OWN_PULL_REQUEST, "A6 R157")
    if review["verdict"] == "incomplete":
        return Decision(False, INCOMPLETE, "A3 R165")
    if review["verdict"] != "pass" or review["findings"]:
        return Decision(False, FINDINGS, "A3/A4 R162")
    if base_ref != BASE_BRANCH:
        return Decision(False, OTHER_BASE, "A11 R2")
    return None


def file_decision(files: Any, changed_files: Any) -> Decision:
    """The last word, from the complete list of changed files (None when it could not be read)."""
    if not isinstance(files, list) or not files or isinstance(changed_files, bool) or len(files) != changed_files:
        return Decision(False, FILES_UNVERIFIED, "A15 R188")
    paths = []
    for entry in files:
        if not isinstance(entry, dict) or not isinstance(entry.get("filename"), str) or not entry["filename"]:
            return Decision(False, FILES_UNVERIFIED, "A15 R188")
        previous = entry.get("previous_filename")
        if previous is not None and not isinstance(previous, str):
            return Decision(False, FILES_UNVERIFIED, "A15 R188")
        if entry.get("status") == "renamed" and not previous:
            return Decision(False, FILES_UNVERIFIED, "A15 R188")
        paths += [entry["filename"]] + ([previous] if previous else [])
    if len({entry["filename"] for entry in files}) != len(files):
        return Decision(False, FILES_UNVERIFIED, "A15 R188")
    if any(sensitive_path(path) for path in paths):
        return Decision(False, PROTECTED, "A16 R185 R186 R187")
    return Decision(True, PASSED, "A1-A16 R153 R162")
