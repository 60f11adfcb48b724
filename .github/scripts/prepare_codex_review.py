"""Authorises an event and writes the complete discussion snapshot that the review starts from.

Usage: prepare_codex_review.py DISCUSSION.json

Environment: GITHUB_EVENT_NAME, GITHUB_EVENT_PATH, GITHUB_REPOSITORY, GITHUB_OUTPUT, GITHUB_STEP_SUMMARY, GH_TOKEN,
CODEX_REVIEW_ENABLED (checked byte for byte when set) and CODEX_REVIEW_RERUN_TOKEN (comment commands only).
Writes ``review-target.json`` next to the snapshot and four output lines once both are complete. An ineligible event
is a success without output; incomplete context is a failure.
"""

from __future__ import annotations

import json
import os
import re
import sys
from typing import Any

from codex_review_common import (
    BASE_BRANCH,
    SNAPSHOT_LIMIT,
    ApiError,
    as_list,
    as_object,
    commit_sha,
    encode_json,
    github_api,
    graphql,
    http_status,
    login,
    positive_number,
    pull_request_endpoint,
    repository_name,
    run_main,
)
from comment_command import requests_review
from rerun_codex_review import route_review

_MAX_ID = 2**63 - 1
_COMMENT_FIELDS = (
    "databaseId: fullDatabaseId body url createdAt updatedAt author { login } "
    "replyTo { databaseId: fullDatabaseId } commit { oid }"
)
THREADS_QUERY = """query($owner: String!, $name: String!, $number: Int!, $cursor: String) {
  repository(owner: $owner, name: $name) { pullRequest(number: $number) {
    reviewThreads(first: 100, after: $cursor) {
      nodes { id isResolved isOutdated path line originalLine diffSide resolvedBy { login } }
      pageInfo { hasNextPage endCursor } } } } }"""
COMMENTS_QUERY = (
    """query($id: ID!, $cursor: String) {
  node(id: $id) { ... on PullRequestReviewThread { comments(first: 100, after: $cursor) {
    nodes { """
    + _COMMENT_FIELDS
    + """ } pageInfo { hasNextPage endCursor } } } } }"""
)
_KEPT = ("id", "body", "html_url", "created_at", "updated_at", "submitted_at", "state", "commit_id")


def event_allowed(event_name: str, event: dict) -> int | None:
    """Number of the pull request this payload may start a review of, from the payload alone; None: skip."""
    action = event.get("action")
    if event_name == "pull_request_target":
        changes = event.get("changes")
        if action not in ("opened", "synchronize", "reopened", "ready_for_review", "edited"):
            return None
        if action == "edited" and not (isinstance(changes, dict) and changes.get("base")):
            return None
        if _type(event.get("sender")) == "Bot" and action != "edited":
            return None
        return positive_number(as_object(event.get("pull_request"), "pull request").get("number"), "number")
    if event_name == "issue_comment":
        issue = as_object(event.get("issue"), "issue")
        comment = as_object(event.get("comment"), "comment")
        if action != "created" or _type(comment.get("user")) != "User" or issue.get("pull_request") is None:
            return None
        if _type(event.get("sender")) == "Bot" or not requests_review(comment.get("body")):
            return None
        return positive_number(issue.get("number"), "number")
    return None


def _type(user: Any) -> Any:
    return user.get("type") if isinstance(user, dict) else None


def eligible(pull: dict, repo: str) -> bool:
    """Is this live pull request open, ready and based on the protected branch of this repository?"""
    base = as_object(pull.get("base"), "pull request base")
    return (
        pull.get("state") == "open"
        and pull.get("draft") is False
        and as_object(base.get("repo"), "base repository").get("full_name") == repo
        and base.get("ref") == BASE_BRANCH
    )


def same_user(commenter: dict, author: Any) -> bool:
    """Is the commenter the author? By numeric id when both are known, else by login without case."""
    if not isinstance(author, dict):
        return False
    ids = commenter.get("id"), author.get("id")
    if all(isinstance(i, int) and not isinstance(i, bool) for i in ids):
        return ids[0] == ids[1]
    names = login(commenter), login(author)
    return None not in names and str(names[0]).lower() == str(names[1]).lower()


def may_command(repo: str, commenter: dict, pull: dict) -> bool:
    """May this user start a review: the author, or anyone with write, maintain or admin permission?"""
    if same_user(commenter, pull.get("user")):
        return True
    name = login(commenter)
    if name is None or not re.fullmatch(r"[A-Za-z0-9-]+", name):
        raise ValueError(f"invalid login: {name!r}")
    try:
        answer = as_object(github_api(f"repos/{repo}/collaborators/{name}/permission"), "permission")
    except ApiError as error:
        # Only this status from this endpoint means "no collaborator"; everything else is unknown and fails.
        if http_status(error) == 404:
            return False
        raise
    return answer.get("permission") in ("write", "maintain", "admin")


def review_target(event_name: str, event: dict, repo: str) -> dict | None:
    """The live pull request that this event may have reviewed, or None to skip silently.

    No API call happens before the payload passes. ValueError for malformed data, ApiError for failed calls.
    """
    number = event_allowed(event_name, event)
    if number is None:
        return None
    pull = as_object(github_api(pull_request_endpoint(repo, number)), "pull request")
    if pull.get("number") != number:
        raise ValueError(f"asked for pull request {number}, got {pull.get('number')!r}")
    if not eligible(pull, repo):
        return None
    head, base = pull["head"], pull["base"]
    if event_name == "pull_request_target":
        recorded = event["pull_request"]
        if recorded["head"].get("sha") != head.get("sha") or recorded["base"].get("ref") != base.get("ref"):
            return None  # a newer event is on its way
    elif not may_command(repo, event["comment"]["user"], pull):
        return None
    commit_sha(head.get("sha"), "head commit")
    commit_sha(base.get("sha"), "base commit")
    return pull


def connection(query: str, variables: dict, path: tuple[str, ...]) -> list:
    """All nodes of a GraphQL connection found at `path` below ``data``; ValueError unless provably complete."""
    nodes: list = []
    cursor = None
    seen: set = set()
    while True:
        found: Any = graphql(query, {**variables, "cursor": cursor})
        for key in path:
            found = as_object(found, f"GraphQL path before {key}").get(key)
        found = as_object(found, f"GraphQL connection {'.'.join(path)}")
        nodes += as_list(found.get("nodes"), f"nodes of {'.'.join(path)}")
        page = as_object(found.get("pageInfo"), "pageInfo")
        more, cursor = page.get("hasNextPage"), page.get("endCursor")
        if more is False:
            return nodes
        if more is not True or not isinstance(cursor, str) or not cursor or cursor in seen:
            raise ValueError(f"incomplete context: {'.'.join(path)} cannot be read to its end")
        seen.add(cursor)


def comment_database_id(value: Any) -> int | None:
    """A comment id, from an integer or plain decimal text, exact up to 2**63 - 1; ValueError for anything else."""
    if value is None:
        return None
    plain = isinstance(value, str) and re.fullmatch(r"[1-9][0-9]{0,18}", value)
    if isinstance(value, bool) or not (isinstance(value, int) or plain) or not 1 <= int(value) <= _MAX_ID:
        raise ValueError(f"invalid comment ID: {value!r}")
    return int(value)


def review_threads(repo: str, number: int) -> list:
    """All inline threads with all replies; replies are paged per thread, or those after the first 100 get lost."""
    owner, name = repository_name(repo).split("/")
    threads = connection(
        THREADS_QUERY,
        {"owner": owner, "name": name, "number": number},
        ("repository", "pullRequest", "reviewThreads"),
    )
    result = []
    for thread in threads:
        identifier = as_object(thread, "review thread").get("id")
        if not isinstance(identifier, str) or not identifier:
            raise ValueError("review thread without an id")
        comments = connection(COMMENTS_QUERY, {"id": identifier}, ("node", "comments"))
        result.append({**thread, "comments": [_thread_comment(comment) for comment in comments]})
    return result


def _thread_comment(comment: Any) -> dict:
    comment = dict(as_object(comment, "thread comment"))
    comment["databaseId"] = comment_database_id(comment.get("databaseId"))
    if comment.get("replyTo") is not None:
        parent = dict(as_object(comment["replyTo"], "replyTo"))
        comment["replyTo"] = {**parent, "databaseId": comment_database_id(parent.get("databaseId"))}
    return comment


def _entry(value: Any) -> dict:
    value = as_object(value, "discussion entry")
    return {**{key: value[key] for key in _KEPT if key in value}, "author": login(value.get("user"))}


def discussion_snapshot(repo: str, pull: dict) -> dict:
    """The complete discussion of the pull request; raises rather than leaving anything out."""
    number = positive_number(pull.get("number"), "pull request number")
    endpoint = pull_request_endpoint(repo, number)
    comments = github_api(f"repos/{repo}/issues/{number}/comments?per_page=100", paginate=True)
    reviews = github_api(f"{endpoint}/reviews?per_page=100", paginate=True)
    return {
        **review_identity(repo, pull),
        "base": pull["base"]["sha"],
        "title": pull.get("title"),
        "body": pull.get("body"),
        "author": login(pull.get("user")),
        "comments": [_entry(comment) for comment in as_list(comments, "comments")],
        "reviews": [_entry(review) for review in as_list(reviews, "reviews")],
        "threads": review_threads(repo, number),
    }


def review_identity(repo: str, pull: dict) -> dict:
    """The four facts by which later runs recognise what a run reviewed."""
    return {
        "repository": repo,
        "number": pull["number"],
        "head": pull["head"]["sha"],
        "base_ref": pull["base"]["ref"],
    }


def encode_snapshot(snapshot: dict) -> bytes:
    """Snapshot as UTF-8 JSON; ValueError above the limit, since incomplete context must not be reviewed."""
    data = encode_json(snapshot)
    if len(data) > SNAPSHOT_LIMIT:
        raise ValueError(
            f"the discussion has {len(data)} bytes, more than {SNAPSHOT_LIMIT}: refusing to review incomplete context"
        )
    return data


def write_atomically(path: str, data: bytes) -> None:
    """Write the whole file or nothing."""
    temporary = f"{path}.tmp"
    with open(temporary, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)


def prepare(event_name: str, event: dict, repo: str, destination: str, outputs: str) -> None:
    """Authorise, route a comment command, else write snapshot and target and announce them in the output file."""
    repository_name(repo)
    pull = review_target(event_name, event, repo)
    if pull is None:
        print("Not a review request: nothing to do.")
        return
    if event_name == "issue_comment" and route_review(repo, pull):
        return
    data = encode_snapshot(discussion_snapshot(repo, pull))
    identity = encode_json(review_identity(repo, pull))
    write_atomically(destination, data)
    write_atomically(os.path.join(os.path.dirname(os.path.abspath(destination)), "review-target.json"), identity)
    with open(outputs, "a", encoding="utf-8") as file:
        file.write(f"number={pull['number']}\nhead={pull['head']['sha']}\nbase={pull['base']['sha']}\nready=true\n")


def main() -> int:
    """Command line; see the module docstring."""
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    # Workflow expressions compare without case; "exactly true" is decided here.
    if os.environ.get("CODEX_REVIEW_ENABLED", "true") != "true":
        print("CODEX_REVIEW_ENABLED is not exactly 'true': nothing to do.")
        return 0
    try:
        with open(os.environ["GITHUB_EVENT_PATH"], encoding="utf-8") as file:
            event = as_object(json.load(file), "event payload")
        prepare(
            os.environ["GITHUB_EVENT_NAME"],
            event,
            os.environ["GITHUB_REPOSITORY"],
            sys.argv[1],
            os.environ["GITHUB_OUTPUT"],
        )
    except KeyError as error:
        raise ValueError(f"missing {error} in the environment or event payload") from None
    return 0


if __name__ == "__main__":
    run_main(main)
