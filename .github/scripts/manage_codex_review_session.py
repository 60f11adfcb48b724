"""Keeps or removes the session volumes of a pull request, bound to its latest close event.

Usage: manage_codex_review_session.py review|cleanup
Environment: GH_REPO, PR_NUMBER, REPOSITORY_ID, HEAD_SHA (review), GH_TOKEN. The caller holds the host lock.
Prints one word: ready, skipped, removed or retained.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from typing import Any, NamedTuple

from codex_review_common import (
    as_list,
    as_object,
    commit_sha,
    graphql,
    positive_number,
    repository_name,
    run_main,
    tokenless_environment,
)

LABEL = "org.pypto.codex-review.close-epoch"
STATE_QUERY = """query($owner: String!, $name: String!, $number: Int!) {
  repository(owner: $owner, name: $name) { nameWithOwner pullRequest(number: $number) {
    number state isDraft headRefOid
    timelineItems(last: 1, itemTypes: [CLOSED_EVENT]) { nodes { ... on ClosedEvent { id } } } } } }"""
DOCKER_TIMEOUT = 120


class Plan(NamedTuple):
    """What to do with the pair of volumes, and the word to print afterwards."""

    remove: bool
    create: bool
    word: str


def volume_names(repository_id: object, number: object) -> tuple[str, str]:
    """The only two volumes that may ever be touched for this pull request: sessions and index."""
    name = (
        f"pypto-codex-sessions-{positive_number(repository_id, 'repository id')}"
        f"-{positive_number(number, 'pull request number')}"
    )
    return name, name + "-index"


def session_state(repo: str, number: object) -> tuple[dict, str]:
    """Live (pull request, close epoch) from one query; ValueError for anything unexpected."""
    owner, name = repository_name(repo).split("/")
    number = positive_number(number, "pull request number")
    data = graphql(STATE_QUERY, {"owner": owner, "name": name, "number": number})
    repository = as_object(data.get("repository"), "repository")
    if str(repository.get("nameWithOwner")).lower() != repo.lower():
        raise ValueError(f"asked for {repo}, got {repository.get('nameWithOwner')!r}")
    pull = as_object(repository.get("pullRequest"), "pull request")
    if isinstance(pull.get("number"), bool) or pull.get("number") != number:
        raise ValueError(f"asked for pull request {number}, got {pull.get('number')!r}")
    if pull.get("state") not in ("OPEN", "CLOSED", "MERGED"):
        raise ValueError(f"unknown pull request state {pull.get('state')!r}")
    if not isinstance(pull.get("isDraft"), bool):
        raise ValueError(f"unknown draft state {pull.get('isDraft')!r}")
    commit_sha(pull.get("headRefOid"), "live head")
    events = as_list(as_object(pull.get("timelineItems"), "timeline").get("nodes"), "close events")
    if len(events) > 1:
        raise ValueError("expected at most one close event")
    if not events:
        return pull, "initial"
    identifier = as_object(events[0], "close event").get("id")
    if not isinstance(identifier, str) or not identifier:
        raise ValueError("close event without an id")
    return pull, f"closed:{identifier}"


def plan_session(mode: str, pull: dict, epoch: str, head: str | None, labels: list) -> Plan:
    """The decision table. `labels` holds the epoch label of each volume: None if absent, "" if unlabelled."""
    current = all(label == epoch for label in labels)
    if mode == "review":
        if pull["state"] != "OPEN" or pull["isDraft"] or pull["headRefOid"] != head:
            return Plan(False, False, "skipped")
        return Plan(not current, not current, "ready")
    if pull["state"] == "OPEN" and current:
        return Plan(False, False, "retained")
    return Plan(True, False, "removed")


def docker(*arguments: str) -> subprocess.CompletedProcess:
    """Run docker; the caller judges the exit status."""
    return subprocess.run(
        ["docker", *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=DOCKER_TIMEOUT,
        env=tokenless_environment(),
    )


def _checked(done: subprocess.CompletedProcess) -> subprocess.CompletedProcess:
    if done.returncode:
        raise subprocess.CalledProcessError(done.returncode, done.args, done.stdout, done.stderr)
    return done


def volume_labels(name: str) -> dict | None:
    """Labels of a volume, None only if docker says that exactly this volume does not exist."""
    done = docker("volume", "inspect", name)
    if done.returncode:
        error = done.stderr.lower()
        if "no such volume" in error and name.lower() in re.findall(r"[a-z0-9_.-]+", error):
            return None
        raise subprocess.CalledProcessError(done.returncode, done.args, done.stdout, done.stderr)
    found = as_list(json.loads(done.stdout), "docker volume inspect")
    if len(found) != 1 or as_object(found[0], "volume").get("Name") != name:
        raise ValueError(f"docker did not describe exactly the volume {name}")
    labels: Any = found[0].get("Labels")
    return {} if labels is None else as_object(labels, "volume labels")


def manage_session(repo: str, number: object, repository_id: object, mode: str, head: str | None = None) -> str:
    """Bring the pair of volumes into the state the live pull request asks for; one of the four words."""
    if mode not in ("review", "cleanup"):
        raise ValueError(f"unknown mode {mode!r}; expected review or cleanup")
    names = volume_names(repository_id, number)
    if mode == "review":
        commit_sha(head, "HEAD_SHA")
    pull, epoch = session_state(repo, number)
    found = [volume_labels(name) for name in names]
    labels = [None if label is None else str(label.get(LABEL, "")) for label in found]
    plan = plan_session(mode, pull, epoch, head, labels)
    if plan.remove:
        for name, label in zip(names, found):
            if label is not None:
                _checked(docker("volume", "rm", name))
    if plan.create:
        for name in names:
            _checked(docker("volume", "create", "--label", f"{LABEL}={epoch}", name))
    return plan.word


def main() -> int:
    """Command line; see the module docstring."""
    if len(sys.argv) != 2 or sys.argv[1] not in ("review", "cleanup"):
        print(__doc__, file=sys.stderr)
        return 2
    environment = os.environ
    try:
        word = manage_session(
            environment["GH_REPO"],
            environment["PR_NUMBER"],
            environment["REPOSITORY_ID"],
            sys.argv[1],
            environment.get("HEAD_SHA"),
        )
    except KeyError as error:
        raise ValueError(f"environment variable {error} is not set") from None
    print(word)
    return 0


if __name__ == "__main__":
    run_main(main)
