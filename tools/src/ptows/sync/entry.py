"""Synchronising one git entry: look, decide, fetch what is missing, look again, act."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from ptows.errors import PtowsError, RefusedError
from ptows.git.checkout import examine, identify, is_branch, local_commits, resolve
from ptows.git.command import Cancelled
from ptows.git.overwrite import in_the_way
from ptows.git.transfer import Link, clone, leftovers, remove_tree, resolve_or_fetch, set_url
from ptows.manifest import Entry
from ptows.sync import plan
from ptows.sync.journal import finish, unfinished, working

#: States of an outcome; "would-" states only in a dry run.
CHANGED = ("cloned", "moved", "recovered", "url updated")


@dataclass(frozen=True)
class Outcome:
    """What happened to an entry: its state, the commit before and after, and for the unhappy ones what to do."""

    entry: str
    state: str
    before: str = ""
    after: str = ""
    detail: str = ""
    advice: str = ""

    @property
    def is_change(self) -> bool:
        return self.state in CHANGED

    def to_json(self) -> dict[str, str]:
        return {
            "name": self.entry,
            "state": self.state,
            "before": self.before,
            "after": self.after,
            "detail": self.detail,
            "advice": self.advice,
        }


def sync_entry(entry: Entry, root: Path, link: Link, *, offline: bool = False, dry_run: bool = False) -> Outcome:
    """Brings one git entry to its revision. Never raises for what can happen to one entry."""
    try:
        return _sync(entry, root / entry.path, link, offline, dry_run)
    except RefusedError as error:
        return Outcome(entry.name, "refused", detail=error.message, advice=error.hint)
    except Cancelled:
        return Outcome(entry.name, "not done", detail="interrupted", advice="run ptows sync again")
    except PtowsError as error:
        return Outcome(entry.name, "failed", detail=error.message, advice=error.hint)
    except OSError as error:
        where = f": {error.filename}" if error.filename else ""
        return Outcome(entry.name, "failed", detail=f"{error.strerror or error}{where}", advice=_advice(error))


def _advice(error: OSError) -> str:
    import errno

    return {
        errno.ENOSPC: "make room on the disk, then sync again",
        errno.EROFS: "the file system is read-only",
        errno.EACCES: "check who may write there",
        errno.EPERM: "check who may write there",
    }.get(error.errno or 0, "")


def _sync(entry: Entry, path: Path, link: Link, offline: bool, dry_run: bool) -> Outcome:
    recovered = False
    if not dry_run:
        for rest in leftovers(path):
            remove_tree(rest)
    # Recovery runs git too: not in a checkout whose configuration could run code; that one is refused below.
    if (interrupted := unfinished(path)) is not None and not identify(path).code_keys:
        if dry_run:
            return Outcome(entry.name, "would recover", detail="an interrupted sync")
        finish(entry, path, interrupted, link)
        recovered = True
    found = examine(path)
    is_checkout = found.kind == "checkout" and not found.code_keys
    target = ""
    if is_checkout:
        if entry.is_pinned and found.head == entry.rev:
            target = found.head
        else:
            target = resolve(path, entry.rev)
    decision = plan.decide(entry, found, target)
    if decision.action == plan.REFUSE:
        return Outcome(entry.name, "refused", found.head, found.head, decision.reason, decision.advice)
    if decision.action == plan.CLONE:
        return _clone(entry, path, link, offline, dry_run)
    may_move = not entry.is_pinned and (not target or is_branch(path, entry.rev))
    needs_network = not target or (may_move and not offline)
    if needs_network and offline:
        what = f"revision '{entry.rev[:12]}' is not present and --offline is set"
        return Outcome(entry.name, "failed", found.head, found.head, what, "sync without --offline")
    if decision.action == plan.KEEP and not may_move:
        if not decision.set_url:
            return Outcome(entry.name, "recovered" if recovered else "kept", found.head, found.head)
        if dry_run:
            return Outcome(entry.name, "would update url", found.head, found.head)
        with working(path):
            set_url(path, entry)
        return Outcome(entry.name, "url updated", found.head, found.head)
    commits = local_commits(path) if decision.action == plan.MOVE else []
    if commits:
        blocked = plan.refuse_commits(commits, found.branch)
        return Outcome(entry.name, "refused", found.head, found.head, blocked.reason, blocked.advice)
    if dry_run:
        state = "would fetch and move" if needs_network else "would move"
        return Outcome(entry.name, state, found.head, target)
    with working(path) as journal:
        if decision.set_url:
            set_url(path, entry)
        if needs_network:
            target = resolve_or_fetch(entry, path, link)
        if target == found.head:
            state = "url updated" if decision.set_url else "recovered" if recovered else "kept"
            return Outcome(entry.name, state, found.head, target)
        if files := in_the_way(path, found.head, target):
            blocked = plan.refuse_overwrite(files)
            return Outcome(entry.name, "refused", found.head, found.head, blocked.reason, blocked.advice)
        journal.move(entry, found.head, target, link)
    return Outcome(entry.name, "moved", found.head, target)


def _clone(entry: Entry, path: Path, link: Link, offline: bool, dry_run: bool) -> Outcome:
    if dry_run:
        return Outcome(entry.name, "would clone")
    if offline:
        return Outcome(entry.name, "failed", detail="not present and --offline is set", advice="sync without --offline")
    if os.path.isdir(path):
        path.rmdir()
    return Outcome(entry.name, "cloned", "", clone(entry, path, link))
