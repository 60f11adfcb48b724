"""Routing a command: which existing run answers it, and every way in which that must not be guessed."""

from __future__ import annotations

import json
import time

import pytest
from codex_review_common import ApiError
from fake_github import Rule, zip_bytes
from rerun_codex_review import checked_run_ids, parse_resource_path, route_review

REPO = "owner/repo"
RERUN = "/rerun$"


@pytest.fixture(autouse=True)
def token(monkeypatch) -> None:
    monkeypatch.setenv("CODEX_REVIEW_RERUN_TOKEN", "rerun-token")


def reruns(host) -> list:
    return host.requests("POST", RERUN)


# R52 R54 R55 R56 R59 R63 R68 R69
@pytest.mark.parametrize("conclusion", ["success", "failure", "cancelled"])
def test_a_completed_run_is_rerun_with_the_dedicated_token_only(
    host, capsys, monkeypatch, tmp_path, conclusion: str
) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary"))
    host.add_run(123, conclusion=conclusion)
    assert route_review(REPO, host.pulls[7]) is True
    assert [r["path"] for r in reruns(host)] == ["/repos/owner/repo/actions/runs/123/rerun"]
    assert [r["token"] for r in host.log if r["token"] != "read"] == ["rerun"]
    assert reruns(host)[0]["token"] == "rerun" and reruns(host)[0]["body"] is None
    assert "https://github.com/owner/repo/actions/runs/123" in (tmp_path / "summary").read_text()
    assert host.runs[123]["run_attempt"] == 2


# R53, E26
@pytest.mark.parametrize("status", ["queued", "in_progress", "waiting", "requested", "pending"])
def test_an_active_run_is_reused_without_the_dedicated_token(host, capsys, monkeypatch, status: str) -> None:
    monkeypatch.delenv("CODEX_REVIEW_RERUN_TOKEN")
    host.add_run(123, status=status, conclusion=None)
    assert route_review(REPO, host.pulls[7]) is True
    assert not reruns(host) and "already queued or running" in capsys.readouterr().out


# R63 R67, E27
@pytest.mark.parametrize("value", ["", None])
def test_a_missing_token_fails_and_is_named(host, monkeypatch, value) -> None:
    monkeypatch.delenv("CODEX_REVIEW_RERUN_TOKEN")
    if value is not None:
        monkeypatch.setenv("CODEX_REVIEW_RERUN_TOKEN", value)
    host.add_run(123)
    with pytest.raises(ValueError, match="CODEX_REVIEW_RERUN_TOKEN"):
        route_review(REPO, host.pulls[7])


@pytest.mark.parametrize("status", [403, 404, 409, 410, 422, 500, 502])
def test_a_refused_rerun_fails_and_is_not_repeated(host, capsys, status: int) -> None:
    host.add_run(123)
    host.rules.append(Rule("POST", RERUN, times=9, status=status))
    with pytest.raises(ApiError):
        route_review(REPO, host.pulls[7])
    assert len(reruns(host)) == 1 and "re-running" not in capsys.readouterr().out


def test_the_limit_of_reruns_is_visible(host) -> None:
    host.add_run(123, run_attempt=51)
    with pytest.raises(ApiError, match="Unable to retry"):
        route_review(REPO, host.pulls[7])


# R83 R84, E25
def test_without_a_run_a_standalone_review_starts_and_says_so(host, capsys) -> None:
    assert route_review(REPO, host.pulls[7]) is False
    assert "not replaced" in capsys.readouterr().out


@pytest.mark.parametrize(
    "change",
    [
        {"age_days": 31},
        {"age_days": 30.001},
        {"event": "issue_comment"},
        {"event": "pull_request"},
        {"path": ".github/workflows/other.yml"},
        {"path": ".github/workflows/codex-review.yml.bak"},
        {"path": None},
        {"repository": {"full_name": "fork/repo"}},
    ],
)  # R74 R75 R76
def test_foreign_and_old_runs_do_not_match(host, change: dict) -> None:
    host.add_run(123, **change)
    assert route_review(REPO, host.pulls[7]) is False
    assert not host.requests("GET", "/artifacts")


# R78: source metadata may say anything
@pytest.mark.parametrize(
    "change",
    [
        {"path": ".github/workflows/codex-review.yml@refs/heads/main"},
        {"age_days": 29.9},
        {"head_sha": None, "head_repository": None, "pull_requests": [{"number": 99}]},
    ],
)
def test_matching_runs(host, change: dict) -> None:
    host.add_run(123, **change)
    assert route_review(REPO, host.pulls[7]) is True


@pytest.mark.parametrize("value", [None, "", "yesterday", "2026-01-01T00:00:00", 5])
def test_a_malformed_time_stamp_fails(host, value: object) -> None:
    host.add_run(123)["created_at"] = value
    with pytest.raises(ValueError, match="time stamp"):
        route_review(REPO, host.pulls[7])


def test_the_newest_matching_run_wins_and_later_ones_are_not_read(host) -> None:
    for number in (100, 300, 200):
        host.add_run(number)
    host.runs[300]["event"] = "schedule"
    route_review(REPO, host.pulls[7])
    assert host.runs[200]["status"] == "queued" and not host.requests("GET", "/runs/100$")


# R71 R72, E24 and section 7.2
@pytest.mark.parametrize("run_id", [36245507417, 9223372036854775808, 1])
def test_run_paths_are_exact(run_id: int) -> None:
    assert parse_resource_path(f"/{REPO}/actions/runs/{run_id}", REPO) == run_id


BAD_PATHS = [
    None,
    True,
    123,
    "",
    "/owner/repo/actions/runs/0",
    "/owner/repo/actions/runs/-1",
    "/owner/repo/actions/runs/01",
    "/other/repo/actions/runs/1",
    "/owner/repo2/actions/runs/1",
    "/owner/xrepo/actions/runs/1",
    "https://github.com/owner/repo/actions/runs/1",
    "//owner/repo/actions/runs/1",
    "/owner/repo/actions/runs/1/",
    "/owner/repo/actions/runs/123?attempt=2",
    "/owner/repo/actions/runs/1#x",
    "/owner/repo/actions/runs/1\n",
    "/owner/repo/actions/runs/１２",
    "/owner/repo/actions/runs/1/../../123",
    "/owner/repo/actions/runs/1/job/2",
    " /owner/repo/actions/runs/1",
]


@pytest.mark.parametrize("path", BAD_PATHS, ids=repr)
def test_any_other_run_path_is_an_error_not_a_skip(host, path: object) -> None:
    host.add_run(123)
    host.add_check(7, path)
    with pytest.raises(ValueError, match="run path"):
        route_review(REPO, host.pulls[7])
    assert not reruns(host)


def test_a_dot_in_the_name_is_no_pattern() -> None:
    with pytest.raises(ValueError):
        parse_resource_path("/o/axb/actions/runs/1", "o/a.b")


# R70
def test_checks_are_read_to_the_end_and_foreign_ones_skipped(host) -> None:
    host.contexts[7] += [{"__typename": "StatusContext"}, {"__typename": "CheckRun", "checkSuite": None}]
    host.contexts[7] += [{"__typename": "CheckRun", "checkSuite": {"workflowRun": None}}] * 230
    for number in (5, 6, 6):
        host.add_check(7, f"/{REPO}/actions/runs/{number}")
    assert checked_run_ids(REPO, host.pulls[7]) == [6, 5]
    assert len(host.requests("POST", "graphql")) == 3


# R73 R79, E23
@pytest.mark.parametrize("page", [1, 2])
def test_head_drift_stops_everything(host, capsys, page: int) -> None:
    host.contexts[7] += [{"__typename": "StatusContext"}] * 150
    host.rules.append(Rule("POST", "graphql", page, mutate=lambda h: h.pulls[7]["head"].update(sha="c" * 40)))
    pull = json.loads(json.dumps(host.pulls[7]))
    assert route_review(REPO, pull) is True
    assert "changed while" in capsys.readouterr().out
    assert not host.requests("GET", "/runs/") and not reruns(host)


@pytest.mark.parametrize("matched", [True, False])
@pytest.mark.parametrize(
    "change",
    [
        lambda h: h.pulls[7]["head"].update(sha="c" * 40),
        lambda h: h.pulls[7]["base"].update(ref="release"),
        lambda h: h.pulls[7].update(draft=True),
        lambda h: h.close(7),
    ],
)
def test_a_late_change_also_stops_the_standalone_review(host, matched: bool, change) -> None:
    if matched:
        host.add_run(123)
    pull = json.loads(json.dumps(host.pulls[7]))
    host.rules.append(Rule("GET", "/pulls/7$", mutate=change))
    assert route_review(REPO, pull) is True and not reruns(host)


@pytest.mark.parametrize(
    "answer",
    [
        {"errors": [{"message": "x"}], "data": None},
        {"data": {"repository": None}},
        {"data": {}},
        [],
        "x",
        {"data": {"repository": {"pullRequest": {"headRefOid": "a" * 40, "commits": {"nodes": []}}}}},
        {
            "data": {
                "repository": {
                    "pullRequest": {"headRefOid": "a" * 40, "commits": {"nodes": [{"commit": {"oid": "a" * 40}}]}}
                }
            }
        },
        {
            "data": {
                "repository": {
                    "pullRequest": {"headRefOid": None, "commits": {"nodes": [{"commit": {"oid": "a" * 40}}]}}
                }
            }
        },
    ],
    ids=range(8),
)
def test_malformed_answers_never_fall_back(host, answer: object) -> None:
    host.rules.append(Rule("POST", "graphql", raw=json.dumps(answer).encode()))
    with pytest.raises(ValueError):
        route_review(REPO, host.pulls[7])


@pytest.mark.parametrize(
    "info",
    [
        {"hasNextPage": True, "endCursor": None},
        {"hasNextPage": "no", "endCursor": None},
        {"hasNextPage": True, "endCursor": "same"},
        {},
        None,
    ],
)
def test_broken_cursors_fail(host, info: object) -> None:
    contexts = {"nodes": [], "pageInfo": info}
    commit = {"commit": {"oid": "a" * 40, "statusCheckRollup": {"contexts": contexts}}}
    data = {"data": {"repository": {"pullRequest": {"headRefOid": "a" * 40, "commits": {"nodes": [commit]}}}}}
    host.rules.append(Rule("POST", "graphql", times=9, raw=json.dumps(data).encode()))
    with pytest.raises(ValueError):
        route_review(REPO, host.pulls[7])


# R77 R80 R82, E28
IDENTITY = {"repository": REPO, "number": 7, "head": "a" * 40, "base_ref": "main"}


@pytest.mark.parametrize(
    "change",
    [
        {"repository": "fork/repo"},
        {"number": 8},
        {"number": "7"},
        {"number": True},
        {"head": "c" * 40},
        {"base_ref": "release"},
        {"base_ref": None},
    ],
)
def test_the_identity_must_match_in_every_key(host, change: dict) -> None:
    host.add_run(123, artifact={**IDENTITY, **change})
    assert route_review(REPO, host.pulls[7]) is False


def test_the_highest_attempt_alone_counts(host) -> None:
    host.add_run(123)
    host.add_artifact(123, "codex-target-123-2", "review-target.json", {**IDENTITY, "base_ref": "release"})
    assert route_review(REPO, host.pulls[7]) is False


def test_a_discussion_artifact_identifies_older_runs(host) -> None:
    host.add_run(123)
    host.artifacts[123][0]["expired"] = True
    assert route_review(REPO, host.pulls[7]) is False
    host.add_artifact(123, "codex-context-123-1", "discussion.json", {**IDENTITY, "comments": []})
    assert route_review(REPO, host.pulls[7]) is True


def test_other_artifacts_are_ignored_and_all_pages_read(host) -> None:
    host.add_run(123)
    target = host.artifacts[123].pop()
    for number in range(205):
        host.add_artifact(123, f"log-{number}", "x", {})
    for name in ("codex-target-124-9", "codex-target-123-x", "xcodex-target-123-9", "codex-target-123-9 "):
        host.add_artifact(123, name, "review-target.json", {})
    host.artifacts[123].append(target)
    assert route_review(REPO, host.pulls[7]) is True
    assert len(host.requests("GET", "/runs/123/artifacts$")) == 3


# E29
GOOD = json.dumps(IDENTITY).encode()


@pytest.mark.parametrize(
    "archive",
    [
        zip_bytes({"review-target.json": GOOD, "x": b""}),
        zip_bytes({"../review-target.json": GOOD}),
        zip_bytes({"other.json": GOOD}),
        zip_bytes({}),
        b"no archive",
        zip_bytes({"review-target.json": b"[]"}),
        zip_bytes({"review-target.json": b"{"}),
        zip_bytes({"review-target.json": b"\xff"}),
        zip_bytes({"review-target.json": b" " * (8 * 1024 * 1024 + 1)}),
        zip_bytes({"review-target.json": b'{"number": 7, "number": 7}'}),
        zip_bytes({"review-target.json": GOOD})[:-30],
    ],
    ids=range(11),
)
def test_bad_archives_fail(host, archive: bytes) -> None:
    host.add_run(123)
    host.artifacts[123][0].update(_data=archive, size_in_bytes=max(1, len(archive)))
    with pytest.raises(ValueError):
        route_review(REPO, host.pulls[7])


@pytest.mark.parametrize("size", [0, -1, None, True, "5", 8 * 1024 * 1024 + 1])
def test_sizes_are_checked_before_the_download(host, size: object) -> None:
    host.add_run(123)
    host.artifacts[123][0]["size_in_bytes"] = size
    with pytest.raises(ValueError, match="size"):
        route_review(REPO, host.pulls[7])
    assert not host.requests("GET", "/zip$")


def test_a_lying_size_in_the_archive_is_caught(host) -> None:
    import io
    import zipfile

    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("review-target.json", b" " * (9 * 1024 * 1024))
    data = bytearray(buffer.getvalue())
    real = (9 * 1024 * 1024).to_bytes(4, "little")
    small = (100).to_bytes(4, "little")
    data = bytearray(bytes(data).replace(real, small))
    host.add_run(123)
    host.artifacts[123][0].update(_data=bytes(data), size_in_bytes=len(data))
    with pytest.raises(ValueError):
        route_review(REPO, host.pulls[7])


def test_an_expired_download_fails(host) -> None:
    host.add_run(123)
    host.rules.append(Rule("GET", "/zip$", status=410))
    with pytest.raises(ApiError):
        route_review(REPO, host.pulls[7])


def test_unreadable_runs_fail(host) -> None:
    host.add_run(123)
    host.rules.append(Rule("GET", "/actions/runs/123$", times=9, status=404))
    with pytest.raises(ApiError):
        route_review(REPO, host.pulls[7])


def test_the_window_follows_the_clock(host, monkeypatch) -> None:
    import rerun_codex_review

    host.add_run(123)
    monkeypatch.setattr(rerun_codex_review, "now", lambda: time.time() + 40 * 86400)
    assert route_review(REPO, host.pulls[7]) is False
