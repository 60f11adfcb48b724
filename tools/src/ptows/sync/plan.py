"""What to do with a git entry, decided from what is there. Nothing here touches files, git or the network."""

from __future__ import annotations

from dataclasses import dataclass

from ptows.git.checkout import Presence
from ptows.manifest import Entry
from ptows.redact import redact

CLONE, MOVE, KEEP, REFUSE = "clone", "move", "keep", "refuse"


@dataclass(frozen=True)
class Decision:
    """One of clone, move, keep, refuse; for a refusal why, and how the user gets on."""

    action: str
    reason: str = ""
    advice: str = ""
    set_url: bool = False


def refuse(reason: str, advice: str) -> Decision:
    return Decision(REFUSE, reason, advice)


def decide(entry: Entry, found: Presence, target: str) -> Decision:
    """The first rule that applies.

    Args:
        target: commit the entry's revision names, "" when the checkout does not have it yet.
    """
    if found.kind in ("missing", "empty"):
        return Decision(CLONE)
    if found.kind == "foreign":
        return refuse(f"'{entry.path}' holds {found.why}", "move it away, or give the entry another path")
    if found.code_keys:
        keys = ", ".join(found.code_keys[:3])
        advice = f"remove it (git config --local --unset {found.code_keys[0]}) or set it in your global configuration"
        return refuse(f"its .git/config could run code: {keys}", advice)
    if not found.head:
        return refuse(f"'{entry.path}' is a git repository without commits", "move it away, then sync again")
    if (blocked := _local_work(found)) is not None:
        return blocked
    moved = found.url != entry.url
    # A checkout made by hand, of another address: the same project only if it has the pinned commit.
    if moved and found.owner != entry.name and not target:
        what = f"'{entry.path}' is a checkout of {redact(found.url) or 'nothing'}, not of {redact(entry.url)}"
        return refuse(what, "move it away, or give the entry another path")
    if target and found.head == target:
        return Decision(KEEP, set_url=moved)
    return Decision(MOVE, set_url=moved)


def _local_work(found: Presence) -> Decision | None:
    if found.operation:
        return refuse(f"{found.operation} is going on", "finish or abort it, then sync again")
    if found.dirty:
        kind = "staged" if found.staged else "uncommitted"
        advice = "commit and push them, or discard them (git restore --staged --worktree .), then sync again"
        return refuse(f"{kind} changes in {some(found.dirty)}", advice)
    if found.stashes:
        plural = "es" if found.stashes > 1 else ""
        return refuse(f"{found.stashes} stash{plural}", "apply or drop (git stash list), then sync again")
    return None


def refuse_commits(commits: list[str], branch: str) -> Decision:
    """Local commits that no remote has."""
    where = f"branch '{branch}'" if branch else "HEAD or a local branch"
    count = f"{len(commits)} commit{'s' if len(commits) > 1 else ''}"
    advice = "push them (git push origin HEAD:refs/heads/NAME), or pin one of them with ptows pin, then sync again"
    return refuse(f"{count} of {where} on no remote: {some(tuple(commits), 2)}", advice)


def refuse_overwrite(files: list[str]) -> Decision:
    """Untracked files that the new revision would replace."""
    return refuse(f"untracked files would be overwritten: {some(tuple(files))}", "move or remove them, then sync again")


def some(names: tuple[str, ...], limit: int = 3) -> str:
    """The first names, and how many more there are."""
    shown = ", ".join(f"'{name}'" for name in names[:limit])
    return shown + (f" and {len(names) - limit} more" if len(names) > limit else "")
