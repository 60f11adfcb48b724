"""Routes a comment command to the pull request's own run: reuse an active one, re-run a finished one, or neither.

Usage: rerun_codex_review.py PR_NUMBER   (environment: GITHUB_REPOSITORY, GH_TOKEN, CODEX_REVIEW_RERUN_TOKEN)

Prints ``handled`` or ``standalone``. prepare_codex_review.py calls `route_review` after authorisation.
"""

from __future__ import annotations

import io
import os
import re
import sys
import zipfile
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from typing import Any, NamedTuple

from codex_review_common import (
    RERUN_TOKEN_VARIABLE,
    SNAPSHOT_LIMIT,
    WORKFLOW_PATH,
    as_list,
    as_object,
    commit_sha,
    github_api,
    graphql,
    now,
    positive_number,
    pull_request_endpoint,
    pull_request_is,
    read,
    report,
    repository_name,
    run_main,
)
from review_output import parse_strict

ROUTING_WINDOW = timedelta(days=30)
CHECKS_QUERY = """query($owner: String!, $name: String!, $number: Int!, $cursor: String) {
  repository(owner: $owner, name: $name) { pullRequest(number: $number) { headRefOid
    commits(last: 1) { nodes { commit { oid statusCheckRollup { contexts(first: 100, after: $cursor) {
      nodes { __typename ... on CheckRun { checkSuite { workflowRun { resourcePath } } } }
      pageInfo { hasNextPage endCursor } } } } } } } } }"""
_FILES = {"target": "review-target.json", "context": "discussion.json"}


class Artifact(NamedTuple):
    """The artifact chosen to identify what a run reviewed."""

    identifier: int
    file: str
    size: int


def parse_resource_path(value: Any, repo: str) -> int:
    """Run id of a check suite's run; anything but the exact path of this repository is a ValueError."""
    match = isinstance(value, str) and re.fullmatch(rf"/{re.escape(repo)}/actions/runs/([1-9][0-9]*)", value)
    if not match:
        raise ValueError(f"unexpected run path {value!r} in a check of {repo}")
    return int(match.group(1))


def page_run_ids(nodes: list, repo: str) -> list[int]:
    """Run ids of one page of check contexts; statuses and checks of other apps have none."""
    found = []
    for node in nodes:
        node = as_object(node, "check context")
        if node.get("__typename") == "StatusContext":
            continue
        if node.get("__typename") != "CheckRun":
            raise ValueError(f"unknown check context {node.get('__typename')!r}")
        suite = node.get("checkSuite")
        run = as_object(suite, "check suite").get("workflowRun") if suite is not None else None
        if run is not None:
            found.append(parse_resource_path(as_object(run, "workflow run").get("resourcePath"), repo))
    return found


def checked_run_ids(repo: str, pull: dict) -> list[int] | None:
    """Ids of all runs with checks on the authorised head, newest first; None when the head moved.

    Read to the end of the list; anything malformed is a ValueError, never taken for "no runs".
    """
    owner, name = repository_name(repo).split("/")
    head = pull["head"]["sha"]
    runs: set = set()
    cursor = None
    cursors: set = set()
    while True:
        data = graphql(CHECKS_QUERY, {"owner": owner, "name": name, "number": pull["number"], "cursor": cursor})
        live = as_object(as_object(data.get("repository"), "repository").get("pullRequest"), "pull request")
        nodes = as_list(as_object(live.get("commits"), "commits").get("nodes"), "commits")
        if len(nodes) != 1:
            raise ValueError(f"expected one newest commit, got {len(nodes)}")
        commit = as_object(as_object(nodes[0], "commit node").get("commit"), "commit")
        live_head = commit_sha(live.get("headRefOid"), "live head")
        if commit_sha(commit.get("oid"), "newest commit") != head or live_head != head:
            return None
        if "statusCheckRollup" not in commit:
            raise ValueError("answer has no statusCheckRollup")
        if commit["statusCheckRollup"] is None:
            if cursor is not None:
                raise ValueError("the check list vanished while it was read")
            return []
        contexts = as_object(as_object(commit["statusCheckRollup"], "check rollup").get("contexts"), "contexts")
        runs.update(page_run_ids(as_list(contexts.get("nodes"), "contexts"), repo))
        page = as_object(contexts.get("pageInfo"), "pageInfo")
        more, cursor = page.get("hasNextPage"), page.get("endCursor")
        if more is False:
            return sorted(runs, reverse=True)
        if more is not True or not isinstance(cursor, str) or not cursor or cursor in cursors:
            raise ValueError("the check list cannot be read to its end")
        cursors.add(cursor)


def parse_time(value: Any) -> datetime:
    """A time stamp with zone; ValueError otherwise."""
    try:
        moment = datetime.fromisoformat(re.sub(r"Z$", "+00:00", value))
    except (TypeError, ValueError):
        raise ValueError(f"invalid time stamp {value!r}") from None
    if moment.tzinfo is None:
        raise ValueError(f"time stamp without zone: {value!r}")
    return moment


def eligible_run(repo: str, run: dict, at: datetime) -> bool:
    """Is this a run of this workflow, event and repository inside the routing window?

    Source metadata (head_sha, head_branch, head_repository, pull_requests) is not looked at: runs for forks carry the
    base branch's values and an empty list there.
    """
    path = run.get("path")
    return (
        parse_time(run.get("created_at")) > at - ROUTING_WINDOW
        and run.get("event") == "pull_request_target"
        and isinstance(path, str)
        and path.split("@", 1)[0] == WORKFLOW_PATH
        and as_object(run.get("repository"), "run repository").get("full_name") == repo
    )


def choose_artifact(artifacts: list, run_id: int) -> Artifact | None:
    """The artifact of the highest attempt; at equal attempts the identity file before the discussion."""
    candidates = []
    for artifact in artifacts:
        artifact = as_object(artifact, "artifact")
        match = re.fullmatch(rf"codex-(target|context)-{run_id}-([0-9]+)", str(artifact.get("name")))
        if match and artifact.get("expired") is False:
            candidates.append((int(match.group(2)), match.group(1) == "target", artifact))
    if not candidates:
        return None
    _, is_target, chosen = max(candidates, key=lambda candidate: candidate[:2])
    size = chosen.get("size_in_bytes")
    if isinstance(size, bool) or not isinstance(size, int) or not 1 <= size <= SNAPSHOT_LIMIT:
        raise ValueError(f"artifact {chosen.get('name')} has an unacceptable size: {size!r}")
    return Artifact(
        positive_number(chosen.get("id"), "artifact id"), _FILES["target" if is_target else "context"], size
    )


def archived_object(archive: bytes, expected: str) -> dict:
    """The JSON object in a one-file archive; ValueError for other names, more entries or too much data."""
    try:
        with zipfile.ZipFile(io.BytesIO(archive)) as zipped:
            names = [entry.filename for entry in zipped.infolist()]
            if names != [expected]:
                raise ValueError(f"archive must hold exactly {expected}, got {names[:3]!r}")
            if zipped.infolist()[0].file_size > SNAPSHOT_LIMIT:
                raise ValueError(f"{expected} is too large")
            with zipped.open(expected) as file:
                data = file.read(SNAPSHOT_LIMIT + 1)
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, OSError) as error:
        raise ValueError(f"unreadable archive: {error}") from None
    if len(data) > SNAPSHOT_LIMIT:
        raise ValueError(f"{expected} is too large")
    return as_object(parse_strict(data.decode("utf-8")), expected)


def list_artifacts(repo: str, run_id: int) -> list:
    """All artifacts of a run; the list travels inside an object, so its pages are counted here."""
    found: list = []
    page = 1
    while True:
        endpoint = f"repos/{repo}/actions/runs/{run_id}/artifacts?per_page=100&page={page}"
        entries = as_list(as_object(github_api(endpoint), "artifact list").get("artifacts"), "artifacts")
        found += entries
        if len(entries) < 100:
            return found
        page += 1


def snapshot_matches(repo: str, run: dict, pull: dict) -> bool:
    """Does the newest identity artifact of this run name exactly this pull request, head and base branch?"""
    run_id = positive_number(run.get("id"), "run id")
    chosen = choose_artifact(list_artifacts(repo, run_id), run_id)
    if chosen is None:
        return False
    archive = read(f"repos/{repo}/actions/artifacts/{chosen.identifier}/zip").body
    if len(archive) > 2 * SNAPSHOT_LIMIT:
        raise ValueError("artifact is larger than it declares")
    identity = archived_object(archive, chosen.file)
    number = identity.get("number")
    return (
        identity.get("repository") == repo
        and isinstance(number, int)
        and not isinstance(number, bool)
        and number == pull["number"]
        and identity.get("head") == pull["head"]["sha"]
        and identity.get("base_ref") == pull["base"]["ref"]
    )


def matching_run(repo: str, run: dict, pull: dict) -> bool:
    """May a command for this pull request be answered by this run?"""
    at = datetime.fromtimestamp(now(), timezone.utc)
    return eligible_run(repo, run, at) and snapshot_matches(repo, run, pull)


def target_is_current(repo: str, pull: dict) -> bool:
    """Re-read: does the authorised state still hold?"""
    live = as_object(github_api(pull_request_endpoint(repo, pull["number"])), "pull request")
    return pull_request_is(live, pull["head"]["sha"], pull["base"]["ref"])


def candidates(repo: str, run_ids: list[int], pull: dict) -> Iterator[int]:
    """Matching runs, read one by one only as long as the caller asks."""
    for run_id in run_ids:
        run = as_object(github_api(f"repos/{repo}/actions/runs/{run_id}"), "workflow run")
        if positive_number(run.get("id"), "run id") != run_id:
            raise ValueError(f"asked for run {run_id}, got {run.get('id')!r}")
        if matching_run(repo, run, pull):
            yield run_id


def route_review(repo: str, pull: dict) -> bool:
    """True when the command is answered (reused, re-run, or overtaken by a push); False: review standalone."""
    changed = "Codex Review: the pull request changed while the command was routed; nothing was started."
    run_ids = checked_run_ids(repo, pull)
    if run_ids is None:
        report(changed)
        return True
    run_id = next(candidates(repo, run_ids, pull), None)
    if not target_is_current(repo, pull):
        report(changed)
        return True
    if run_id is None:
        report(
            "Codex Review: no verifiable run of the last 30 days for this head. Starting a standalone review; "
            "existing checks of the pull request are not replaced."
        )
        return False
    server = os.environ.get("GITHUB_SERVER_URL", "https://github.com")
    link = f"[run {run_id}]({server}/{repo}/actions/runs/{run_id})"
    run = as_object(github_api(f"repos/{repo}/actions/runs/{run_id}"), "workflow run")
    status = run.get("status")
    if not isinstance(status, str) or not status:
        raise ValueError(f"run {run_id} has no status")
    if status != "completed":
        report(
            f"Codex Review: {link} is already queued or running and is reused. If it has read the discussion before "
            "this comment was written, ask again when it has finished."
        )
        return True
    token = os.environ.get(RERUN_TOKEN_VARIABLE)
    if not token:
        raise ValueError(f"{RERUN_TOKEN_VARIABLE} is not set: a finished review cannot be re-run")
    github_api(f"repos/{repo}/actions/runs/{run_id}/rerun", method="POST", token=token)
    report(f"Codex Review: re-running all jobs of {link}; the checks of the pull request are updated.")
    return True


def main() -> int:
    """Command line; see the module docstring."""
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    repo = repository_name(os.environ.get("GITHUB_REPOSITORY"))
    pull = as_object(github_api(pull_request_endpoint(repo, sys.argv[1])), "pull request")
    print("handled" if route_review(repo, pull) else "standalone")
    return 0


if __name__ == "__main__":
    run_main(main)
