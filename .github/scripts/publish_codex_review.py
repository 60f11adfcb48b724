"""Publishes a finished review, approves when every precondition holds, and takes approvals back when one falls.

Usage: publish_codex_review.py REVIEW.json | --revoke | --extract-session EVENTS OUTPUT

Environment: GH_REPO, PR_NUMBER, REVIEW_HEAD_SHA, REVIEW_BASE_SHA, AUTO_APPROVE, GH_TOKEN, and the reviewed base branch
as REVIEW_BASE_REF or inside the file named by REVIEW_TARGET (a branch name must not pass through a shell expression).
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from typing import Any, NamedTuple

from approval_policy import DIFF_UNVERIFIED, Decision, early_decision, file_decision, sensitive_path
from codex_review_common import (
    REVIEW_LIMIT,
    ApiError,
    as_list,
    as_object,
    by_this_workflow,
    commit_sha,
    github_api,
    http_status,
    login,
    pause,
    positive_number,
    pull_request_endpoint,
    pull_request_is,
    report,
    repository_name,
    run_main,
)
from review_anchors import finding_location, patch_lines
from review_output import extract_session, load_review, parse_strict, read_regular
from review_rendering import (
    Metadata,
    Rendered,
    needs_metadata,
    render,
    rendered_size,
    review_body,
    run_stamp,
)

__all__ = [
    "extract_session", "finding_location", "load_review", "merge_base_sha", "patch_lines", "publish",
    "render_findings", "revoke_approvals", "sensitive_path",
]  # fmt: skip

#: What a read may raise; anything else is a fault of ours and must not be taken for an unreadable answer.
READ_ERRORS = (ApiError, ValueError, OSError)
WRITE_TRIES = 3
REVOKED = "The base branch or the reviewed state changed; this automatic approval no longer applies."
SUPERSEDED = "Superseded by a newer automated review."
RECHECK_FAILED = "The reviewed state changed or could not be verified while the approval was posted."
REFUSED = (
    "No automatic approval: GitHub refused it. Repository setting: Actions > General > "
    '"Allow GitHub Actions to create and approve pull requests".'
)


class Terminated(BaseException):
    """The runner asked this process to stop. Not an Exception: no handler for failures may swallow it."""


class Target(NamedTuple):
    """What was reviewed and by which run; everything here was authorised before the review."""

    repo: str
    number: int
    head: str
    base: str
    base_ref: str
    run: str

    @property
    def endpoint(self) -> str:
        return pull_request_endpoint(self.repo, self.number)


def read_pull(target: Target) -> dict:
    """The live pull request."""
    return as_object(github_api(target.endpoint), "pull request")


def is_current(target: Target, pull: dict) -> bool:
    """Is the pull request still open, ready and at the reviewed head and base branch?"""
    return pull_request_is(pull, target.head, target.base_ref)


def merge_base_sha(repo: str, base: str, head: str) -> str:
    """Merge base of two commits as the hosting side computes it; ValueError for an unexpected answer."""
    answer = as_object(github_api(f"repos/{repository_name(repo)}/compare/{base}...{head}?per_page=1"), "comparison")
    return commit_sha(as_object(answer.get("merge_base_commit"), "merge base commit").get("sha"), "merge base")


def live_merge_base(target: Target, pull: dict) -> str | None:
    """Merge base of the live base branch and the head, None when it cannot be verified."""
    try:
        base = commit_sha(as_object(pull.get("base"), "base").get("sha"), "base commit")
        return merge_base_sha(target.repo, base, target.head)
    except READ_ERRORS:
        return None


def reviewed_merge_base(target: Target) -> str | None:
    """Merge base the review was made against, None when it cannot be verified."""
    try:
        return merge_base_sha(target.repo, target.base, target.head)
    except READ_ERRORS:
        return None


def list_reviews(endpoint: str) -> list:
    """All reviews of the pull request."""
    return as_list(github_api(f"{endpoint}/reviews?per_page=100", paginate=True), "reviews")


def own_approvals(reviews: list) -> list[int]:
    """Ids of this workflow's standing approvals; human reviews and other bots or workflows are never ours."""
    ours = [r for r in reviews if by_this_workflow(r) and r.get("state") == "APPROVED"]
    return [positive_number(review.get("id"), "review id") for review in ours]


def revoke_approvals(repo: str, number: object, message: str = REVOKED) -> None:
    """Dismiss every standing approval of this workflow; the first failure aborts."""
    endpoint = pull_request_endpoint(repo, number)
    for review in own_approvals(list_reviews(endpoint)):
        dismiss(endpoint, review, message)
        report(f"Dismissed automatic approval {review} of {repo}#{number}.")


def dismiss(endpoint: str, review: int, message: str) -> None:
    """Dismiss one review. Repeated after passing failures: dismissing twice does no harm. Done if already dismissed."""
    for attempt in range(WRITE_TRIES):
        try:
            github_api(f"{endpoint}/reviews/{review}/dismissals", {"message": message}, method="PUT")
            return
        except (ApiError, ValueError) as error:
            status = http_status(error)
            if status is None or status == 422 or status >= 500:
                states = {r.get("id"): r.get("state") for r in list_reviews(endpoint) if isinstance(r, dict)}
                if states.get(review) == "DISMISSED":
                    return
            if status is not None and status < 500 and status != 429:
                raise
            if attempt == WRITE_TRIES - 1:
                raise
            pause(2.0 * (attempt + 1))


def read_metadata(endpoint: str) -> Metadata | None:
    """Changed files and review comments, or None: optional for placing findings, never for keeping them."""
    try:
        files = as_list(github_api(f"{endpoint}/files?per_page=100", paginate=True), "files")
        comments = as_list(github_api(f"{endpoint}/comments?per_page=100", paginate=True), "comments")
    except READ_ERRORS:
        return None
    return Metadata(files, comments)


def render_findings(repo: str, endpoint: str, head: str, merge_base: str | None, findings: list) -> tuple[str, list]:
    """(summary text, inline comments); unreadable metadata costs anchors and links, never a finding."""
    number = positive_number(endpoint.rsplit("/", 1)[-1], "pull request number")
    metadata = read_metadata(endpoint) if merge_base is not None and needs_metadata(findings) else None
    return tuple(render(repo, number, head, merge_base, findings, metadata))  # type: ignore[return-value]


def decide(target: Target, review: dict, pull: dict, *, diff_verified: bool, enabled: bool) -> Decision:
    """The approval decision; lists the changed files only when everything else allows the approval."""
    early = early_decision(
        review, diff_verified=diff_verified, enabled=enabled, author=login(pull.get("user")), base_ref=target.base_ref
    )
    if early:
        return early
    try:
        files = github_api(f"{target.endpoint}/files?per_page=100", paginate=True)
    except READ_ERRORS:
        files = None
    return file_decision(files, pull.get("changed_files"))


def publish(path: str, repo: str, number: object, head: str, base: str, base_ref: str, enabled: bool) -> str:
    """Publish the review file for the reviewed state; one line for the log.

    Errors: ValueError for an invalid review or one that is too large (nothing is posted then), ApiError and OSError
    from the API. No approval of ours outlives an error.
    """
    if not base_ref:
        raise ValueError("the reviewed base branch is empty")
    run = f"{os.environ.get('GITHUB_RUN_ID', '0')}/{os.environ.get('GITHUB_RUN_ATTEMPT', '0')}"
    target = Target(
        repository_name(repo),
        positive_number(number, "pull request number"),
        commit_sha(head, "reviewed head"),
        commit_sha(base, "reviewed base"),
        base_ref,
        run,
    )
    pull = read_pull(target)
    if not is_current(target, pull):
        return "skipped: obsolete, the pull request is closed, a draft, or has another head or base branch"
    revoke_approvals(target.repo, target.number, SUPERSEDED)
    review = load_review(path)
    reviewed = reviewed_merge_base(target)
    verified = reviewed is not None and live_merge_base(target, pull) == reviewed
    decision = decide(target, review, pull, diff_verified=verified, enabled=enabled)
    metadata = read_metadata(target.endpoint) if verified and needs_metadata(review["findings"]) else None

    pull = read_pull(target)
    if not is_current(target, pull):
        return "skipped: the pull request was updated during publication"
    if verified and live_merge_base(target, pull) != reviewed:
        verified, decision = False, Decision(False, DIFF_UNVERIFIED, "A13 R172")
    return _post(target, review, decision, reviewed if verified else None, metadata)


def _post(target: Target, review: dict, decision: Decision, merge_base: str | None, metadata: Metadata | None) -> str:
    """Render for the final decision and submit; an approval is verified again afterwards."""
    summary, findings = review["summary"], review["findings"]
    rendered = render(target.repo, target.number, target.head, merge_base, findings, metadata)
    payload = _payload(target, summary, rendered, decision)
    if decision.approve:
        return _approve(target, review, payload, merge_base)
    try:
        identifier = submit(target, payload)
    except ApiError as error:
        if error.status != 422 or not rendered.inline:
            raise
        # The API judges inline comments as one batch; a single bad anchor must not cost the findings.
        if not is_current(target, read_pull(target)):
            return "skipped: the pull request was updated during publication"
        unanchored = metadata and Metadata([{**f, "patch": None} for f in metadata.files], metadata.comments)
        rendered = render(target.repo, target.number, target.head, merge_base, findings, unanchored)
        identifier = submit(target, _payload(target, summary, rendered, decision))
    return f"published review {identifier} as COMMENT: {decision.reason} [{decision.rule}]"


def _payload(target: Target, summary: str, rendered: Rendered, decision: Decision) -> dict:
    body = review_body(
        head=target.head,
        base=target.base,
        run=target.run,
        summary=summary,
        rendered=rendered,
        reason=decision.reason,
    )
    size = rendered_size(body, rendered.inline)
    if size > REVIEW_LIMIT:
        raise ValueError(f"the rendered review has {size} bytes, more than {REVIEW_LIMIT}; nothing was posted")
    payload: dict[str, Any] = {
        "commit_id": target.head,
        "event": "APPROVE" if decision.approve else "COMMENT",
        "body": body,
    }
    if rendered.inline:
        payload["comments"] = rendered.inline
    return payload


def submit(target: Target, payload: dict) -> int:
    """Post one review and return its id. After an answer of unknown outcome, look before trying once more."""
    for attempt in range(2):
        try:
            answer = github_api(f"{target.endpoint}/reviews", payload)
            return positive_number(as_object(answer, "posted review").get("id"), "review id")
        except (ApiError, ValueError) as error:
            status = http_status(error)
            if status is not None and status < 500:
                raise
            found = find_posted(target, WRITE_TRIES)
            if found is not None:
                return found
            if attempt:
                raise
    raise AssertionError("internal error: the second try either returns or raises")


def find_posted(target: Target, tries: int = 1) -> int | None:
    """Id of the review that this very run and attempt posted for this head, if it exists."""
    for attempt in range(tries):
        for review in list_reviews(target.endpoint):
            lines = review["body"].replace("\r\n", "\n").split("\n", 2) if by_this_workflow(review) else []
            if len(lines) > 1 and lines[1] == run_stamp(target.run) and review.get("commit_id") == target.head:
                return positive_number(review.get("id"), "review id")
        if attempt < tries - 1:
            pause(2.0)
    return None


class Approval:
    """One attempt to approve: what was submitted, and whether it may stand."""

    def __init__(self) -> None:
        self.identifier: int | None = None
        self.refusal: ApiError | None = None
        self.kept = False
        self.withdrawn = False


def _approve(target: Target, review: dict, payload: dict, merge_base: str | None) -> str:
    """Submit the approval and keep it only if everything still holds afterwards, whatever happens in between."""
    approval = Approval()
    with termination_raises():
        try:
            _attempt(approval, target, payload, merge_base)
        except Terminated:
            # Only one can ever arrive, but at any moment, also while a withdrawal begins.
            if not approval.withdrawn:
                withdraw(target, approval.identifier)
            raise
    if approval.refusal is not None:
        return _comment_instead(target, review, approval.refusal)
    if not approval.kept:
        return f"dismissed review {approval.identifier}: {RECHECK_FAILED} [A19 R175]"
    return f"published review {approval.identifier} as APPROVE"


def _attempt(approval: Approval, target: Target, payload: dict, merge_base: str | None) -> None:
    """Submit and verify; what may not stand is withdrawn, also when this fails."""
    try:
        approval.identifier = submit(target, payload)
        approval.kept = still_valid(target, merge_base)
    except ApiError as error:
        if error.status not in (403, 422):
            raise
        approval.refusal = error
    finally:
        # Also after a refusal: an earlier try of unknown outcome may have left an approval.
        if not approval.kept:
            withdraw(target, approval.identifier)
            approval.withdrawn = True


def still_valid(target: Target, merge_base: str | None) -> bool:
    """Does the pull request still have the reviewed state? Any doubt is a no."""
    try:
        pull = read_pull(target)
        return is_current(target, pull) and merge_base is not None and live_merge_base(target, pull) == merge_base
    except READ_ERRORS:
        return False


def withdraw(target: Target, identifier: int | None) -> None:
    """Dismiss the approval just posted, looking it up when its id never arrived. Failing here needs a person."""
    with signals_ignored():
        try:
            found = identifier if identifier is not None else find_posted(target, WRITE_TRIES)
            if found is not None:
                dismiss(target.endpoint, found, RECHECK_FAILED)
        except BaseException as error:
            where = f"https://github.com/{target.repo}/pull/{target.number}"
            where += f"#pullrequestreview-{identifier}" if identifier is not None else ""
            report(f"**Administrator: dismiss the automatic approval {identifier or '(id unknown)'} by hand: {where}**")
            raise ValueError(f"could not dismiss the automatic approval {identifier} at {where}: {error}") from error


def _comment_instead(target: Target, review: dict, refusal: ApiError) -> str:
    """GitHub refused the approval: publish the same result as a comment, then fail so that somebody looks."""
    if is_current(target, read_pull(target)):
        submit(target, _payload(target, review["summary"], Rendered("", []), Decision(False, REFUSED, "A18 R154")))
    raise ValueError(f"{REFUSED} {refusal}")


@contextlib.contextmanager
def termination_raises():
    """Within the block the first SIGINT or SIGTERM raises Terminated, so that cleanup code runs; no later one does."""

    def stop(signum: int, _frame: Any) -> None:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)
        raise Terminated(f"stopped by signal {signum}")

    with _handlers(stop):
        yield


@contextlib.contextmanager
def signals_ignored():
    """Within the block SIGINT and SIGTERM are ignored: a withdrawal must not be interrupted half-way."""
    with _handlers(signal.SIG_IGN):
        yield


@contextlib.contextmanager
def _handlers(handler: Any):
    previous = {}
    try:
        for number in (signal.SIGINT, signal.SIGTERM):
            previous[number] = signal.signal(number, handler)
        yield
    finally:
        for number, old in previous.items():
            signal.signal(number, old)


def reviewed_base_ref() -> str:
    """The reviewed base branch, from REVIEW_BASE_REF or from the REVIEW_TARGET file checked against the rest."""
    path = os.environ.get("REVIEW_TARGET")
    if not path:
        return os.environ["REVIEW_BASE_REF"]
    target = as_object(parse_strict(read_regular(path, REVIEW_LIMIT).decode("utf-8")), "review target")
    expected = {
        "repository": os.environ["GH_REPO"],
        "number": positive_number(os.environ["PR_NUMBER"], "PR_NUMBER"),
        "head": os.environ["REVIEW_HEAD_SHA"],
    }
    for key, value in expected.items():
        if target.get(key) != value or isinstance(target.get(key), bool):
            raise ValueError(f"review target has another {key}: {target.get(key)!r}, expected {value!r}")
    base_ref = target.get("base_ref")
    if not isinstance(base_ref, str) or not base_ref:
        raise ValueError("review target has no base branch")
    return base_ref


def main() -> int:
    """Command line; see the module docstring."""
    arguments = sys.argv[1:]
    try:
        if arguments == ["--revoke"]:
            revoke_approvals(os.environ["GH_REPO"], os.environ["PR_NUMBER"])
        elif len(arguments) == 3 and arguments[0] == "--extract-session":
            print(extract_session(arguments[1], arguments[2]))
        elif len(arguments) == 1 and not arguments[0].startswith("-"):
            result = publish(
                arguments[0],
                os.environ["GH_REPO"],
                os.environ["PR_NUMBER"],
                os.environ["REVIEW_HEAD_SHA"],
                os.environ["REVIEW_BASE_SHA"],
                reviewed_base_ref(),
                os.environ.get("AUTO_APPROVE") == "true",
            )
            report(f"Codex Review of #{os.environ['PR_NUMBER']}: {result}")
        else:
            print(__doc__, file=sys.stderr)
            return 2
    except KeyError as error:
        raise ValueError(f"environment variable {error} is not set") from None
    except Terminated as stopped:
        print(f"error: {stopped}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    run_main(main)
