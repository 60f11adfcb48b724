"""Who may start a review, and a discussion snapshot that is complete or not there at all."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import pytest
from codex_review_common import SNAPSHOT_LIMIT, ApiError
from fake_github import BASE, BOT, HEAD, FakeGitHub, Rule
from prepare_codex_review import (
    comment_database_id,
    connection,
    discussion_snapshot,
    encode_snapshot,
    main,
    prepare,
    review_target,
)

C = "@pypto-codex review"
REPO = "owner/repo"


def pull_event(host: FakeGitHub, action: str = "opened", **changes: object) -> dict:
    event = {
        "action": action,
        "number": 7,
        "sender": {"type": "User", "login": "contributor"},
        "repository": {"full_name": REPO, "id": 4711},
        "pull_request": copy.deepcopy(host.pulls[7]),
    }
    event.update(changes)
    return event


def comment_event(body: str = C, login: str = "contributor", user_id: object = 1001, **changes: object) -> dict:
    user = {"login": login, "type": "User", **({"id": user_id} if user_id else {})}
    event = {
        "action": "created",
        "issue": {"number": 7, "pull_request": {"url": "x"}, "user": {"login": "contributor"}},
        "comment": {"id": 1, "body": body, "user": user},
        "sender": {"type": "User", "login": login},
        "repository": {"full_name": REPO, "id": 4711},
    }
    event.update(changes)
    return event


# R1 R2 R3 and the table of section 3
@pytest.mark.parametrize("action", ["opened", "synchronize", "reopened", "ready_for_review"])
def test_pull_request_events_start_a_review(host, action: str) -> None:
    assert review_target("pull_request_target", pull_event(host, action), REPO)["number"] == 7


@pytest.mark.parametrize(
    ("action", "changes"),
    [
        ("closed", {}),
        ("labeled", {}),
        ("converted_to_draft", {}),
        ("edited", {}),
        ("edited", {"changes": {"title": {"from": "x"}}}),
        ("edited", {"changes": {}}),
        ("edited", {"changes": None}),
        ("opened", {"sender": {"type": "Bot"}}),
        ("synchronize", {"sender": {"type": "Bot"}}),
    ],
)
def test_ineligible_payloads_cost_no_request(host, action: str, changes: dict) -> None:
    assert review_target("pull_request_target", pull_event(host, action, **changes), REPO) is None
    assert not host.log


# R178 R180 R182: only a base change counts, and there a bot may be the sender
def test_retarget_by_a_bot_is_reviewed(host) -> None:
    event = pull_event(host, "edited", changes={"base": {"ref": {"from": "release"}}}, sender={"type": "Bot"})
    assert review_target("pull_request_target", event, REPO)


@pytest.mark.parametrize(
    "name", ["push", "pull_request", "schedule", "workflow_dispatch", "pull_request_review_comment"]
)
def test_other_events_are_skipped(host, name: str) -> None:
    assert review_target(name, comment_event(), REPO) is None and not host.log


@pytest.mark.parametrize(
    "change",
    [
        lambda p: p.update(state="closed"),
        lambda p: p.update(draft=True),
        lambda p: p["base"].update(ref="release"),
        lambda p: p["base"].update(ref="Main"),
        lambda p: p["base"]["repo"].update(full_name="other/repo"),
        lambda p: p["head"].update(sha="9" * 40),
    ],
)
def test_live_state_decides(host, change) -> None:
    event = pull_event(host)
    change(host.pulls[7])
    assert review_target("pull_request_target", event, REPO) is None


@pytest.mark.parametrize("sha", ["A" * 40, "a" * 39, "a" * 41, "a" * 39 + "\n", None, 5])
def test_malformed_commits_fail(host, sha: object) -> None:
    host.pulls[7]["head"]["sha"] = sha
    with pytest.raises(ValueError, match="head commit"):
        review_target("pull_request_target", pull_event(host), REPO)


# R34 R35 R36 R45, E13 E14 E15
def test_the_author_may_always_ask(host) -> None:
    assert review_target("issue_comment", comment_event(), REPO)
    assert len(host.log) == 1
    # By numeric id although the account was renamed; by login without case when an id is missing.
    assert review_target("issue_comment", comment_event(login="Renamed"), REPO)
    assert review_target("issue_comment", comment_event(login="CONTRIBUTOR", user_id=None), REPO)


def test_a_new_owner_of_the_authors_old_login_may_not(host) -> None:
    assert review_target("issue_comment", comment_event(user_id=2), REPO) is None


@pytest.mark.parametrize(
    ("role", "allowed"),
    [("admin", True), ("maintain", True), ("write", True), ("triage", False), ("read", False), (None, False)],
)
def test_collaborators_need_write(host, role: str | None, allowed: bool) -> None:
    if role:
        host.collaborators["helper"] = role
    found = review_target("issue_comment", comment_event(login="helper", user_id=2), REPO)
    assert (found is not None) is allowed
    assert len(host.log) == 2


@pytest.mark.parametrize("status", [401, 403, 429, 500, 502])
def test_unknown_permission_fails(host, status: int) -> None:
    host.rules.append(Rule("GET", "/permission$", times=9, status=status, body={"message": "x (HTTP 404)"}))
    with pytest.raises(ApiError):
        review_target("issue_comment", comment_event(login="helper", user_id=2), REPO)


def test_a_missing_pull_request_is_no_missing_permission(host) -> None:
    del host.pulls[7]
    with pytest.raises(ApiError):
        review_target("issue_comment", comment_event(), REPO)


def test_hostile_logins_never_reach_a_url(host) -> None:
    with pytest.raises(ValueError, match="login"):
        review_target("issue_comment", comment_event(login="../../x", user_id=2), REPO)


# R40-R44
@pytest.mark.parametrize(
    "event",
    [
        comment_event(f"> {C}"),
        comment_event(f"```\n{C}\n```"),
        comment_event("hello"),
        comment_event(None),
        comment_event(action="edited"),
        comment_event(action="deleted"),
        comment_event(issue={"number": 7}),
        comment_event(sender={"type": "Bot"}),
        {**comment_event(), "comment": {"body": C, "user": {"login": BOT, "type": "Bot"}}},
        {**comment_event(), "comment": {"body": C, "user": {"login": "acme", "type": "Organization"}}},
        {**comment_event(), "comment": {"body": C, "user": None}},
    ],
    ids=range(11),
)
def test_comments_that_do_nothing(host, event: dict) -> None:
    assert review_target("issue_comment", event, REPO) is None and not host.log


def test_command_on_another_base_does_nothing(host) -> None:
    host.pulls[7]["base"]["ref"] = "release"
    assert review_target("issue_comment", comment_event(), REPO) is None


# R14-R18 R48
def test_snapshot_holds_the_whole_discussion(host) -> None:
    host.issue_comments[7] = [
        {
            "id": n,
            "body": f"c{n}",
            "user": {"login": "u"} if n else None,
            "html_url": "h",
            "created_at": "t",
            "secret": 1,
        }
        for n in range(230)
    ]
    for n in range(130):
        host.add_review(login="u", state="COMMENTED", body=f"r{n}")
    host.add_thread(
        7, [{"login": "u", "body": f"reply {n}"} for n in range(230)], isResolved=True, resolvedBy={"login": "u"}
    )
    for n in range(104):
        host.add_thread(7, [{"login": None, "body": f"t{n}"}], isOutdated=n % 2 == 0, line=None)
    snapshot = discussion_snapshot(REPO, host.pulls[7])
    assert {k: snapshot[k] for k in ("repository", "number", "head", "base", "base_ref", "author")} == {
        "repository": REPO,
        "number": 7,
        "head": HEAD,
        "base": BASE,
        "base_ref": "main",
        "author": "contributor",
    }
    assert snapshot["title"] == "Pad the rows" and snapshot["body"] == "Rows are padded now."
    assert [c["body"] for c in snapshot["comments"]] == [f"c{n}" for n in range(230)]
    assert snapshot["comments"][0]["author"] is None and "secret" not in snapshot["comments"][0]
    assert len(snapshot["reviews"]) == 130 and {"state", "commit_id", "submitted_at"} <= set(snapshot["reviews"][0])
    assert len(snapshot["threads"]) == 105
    first = snapshot["threads"][0]
    assert len(first["comments"]) == 230 and first["isResolved"] and first["resolvedBy"] == {"login": "u"}
    ids = [comment["databaseId"] for comment in first["comments"]]
    assert ids[0] > 2**53 and ids == list(range(ids[0], ids[0] + 230))  # E31: exact beyond 2**53
    assert first["comments"][5]["replyTo"] == {"databaseId": ids[0]}
    assert {t["isOutdated"] for t in snapshot["threads"]} == {True, False}


@pytest.mark.parametrize("as_text", [True, False])
def test_ids_arrive_as_text_or_number(host, as_text: bool) -> None:
    host.ids_as_text = as_text
    host.add_thread(7, [{"login": "u", "body": "x"}])
    comment = discussion_snapshot(REPO, host.pulls[7])["threads"][0]["comments"][0]
    assert isinstance(comment["databaseId"], int)


@pytest.mark.parametrize(
    "value", [True, False, 1.0, 0, -1, 2**63, "1.0", "1e3", "01", "", "0", " 1", "1\n", "٣", {}, [], "9" * 19, "9" * 30]
)
def test_bad_comment_ids(value: object) -> None:
    with pytest.raises(ValueError, match="comment ID"):
        comment_database_id(value)


@pytest.mark.parametrize(
    ("value", "expected"), [(None, None), (1, 1), ("1", 1), (2**63 - 1, 2**63 - 1), (str(2**63 - 1), 2**63 - 1)]
)
def test_good_comment_ids(value: object, expected: object) -> None:
    assert comment_database_id(value) == expected


# R28 R30
def page(more: object = False, cursor: object = None, **extra: object) -> dict:
    found = {"nodes": [{"a": 1}], "pageInfo": {"hasNextPage": more, "endCursor": cursor}, **extra}
    return {"data": {"repository": {"x": found}}}


@pytest.mark.parametrize(
    "answers",
    [
        [page(True, None)],
        [page(True, "")],
        [page(True, "c"), page(True, "c")],
        [page("false")],
        [page(None)],
        [page(1, "c")],
        [page(nodes=None)],
        [page(nodes={})],
        [page(pageInfo=None)],
        [{"data": None}],
        [{"data": {"repository": None}}],
        [{**page(), "errors": [{"message": "partial"}]}],
        [{"data": {"repository": {}}}],
        ["text"],
        [None],
    ],
    ids=range(15),
)
def test_incomplete_connections_fail(monkeypatch, answers: list) -> None:
    import codex_review_common

    queue = list(answers)
    monkeypatch.setattr(codex_review_common, "github_api", lambda *a, **k: queue.pop(0))
    with pytest.raises(ValueError):
        connection("query", {}, ("repository", "x"))


@pytest.mark.parametrize("path", ["/graphql", "/issues/7/comments", "/pulls/7/reviews"])
@pytest.mark.parametrize("fault", [{"status": 500}, {"raw": b"{"}, {"drop": True}, {"status": 404}])
def test_any_unreadable_part_fails_the_run(host, tmp_path: Path, path: str, fault: dict) -> None:
    method = "POST" if path == "/graphql" else "GET"
    host.rules.append(Rule(method, path, times=9, **fault))
    with pytest.raises((ApiError, ValueError)):
        prepare("pull_request_target", pull_event(host), REPO, str(tmp_path / "d.json"), str(tmp_path / "out"))
    assert not list(tmp_path.iterdir())


def test_passing_failures_are_waited_out(host) -> None:
    host.rules += [
        Rule("GET", "/comments", status=502),
        Rule("GET", "/reviews", status=403, headers={"Retry-After": "3"}),
        Rule("POST", "graphql", status=429, headers={"X-RateLimit-Remaining": "0"}),
    ]
    assert discussion_snapshot(REPO, host.pulls[7])["threads"] == []


def test_long_rate_limits_are_not_waited_out(host, monkeypatch) -> None:
    import codex_review_common

    waits: list = []
    monkeypatch.setattr(codex_review_common, "pause", waits.append)
    host.rules.append(Rule("GET", "/comments", times=9, status=429, headers={"Retry-After": "3600"}))
    with pytest.raises(ApiError):
        discussion_snapshot(REPO, host.pulls[7])
    assert sum(waits) < 60


# R29, E30
def test_size_limit_is_exact() -> None:
    overhead = len(encode_snapshot({"body": ""}))
    fits = {"body": "x" * (SNAPSHOT_LIMIT - overhead)}
    assert len(encode_snapshot(fits)) == SNAPSHOT_LIMIT
    with pytest.raises(ValueError, match="incomplete context"):
        encode_snapshot({"body": fits["body"] + "x"})
    with pytest.raises(ValueError):
        encode_snapshot({"body": "ä" * (SNAPSHOT_LIMIT // 2)})


def test_lone_surrogates_do_not_crash() -> None:
    assert json.loads(encode_snapshot({"body": "\ud800 ä"})) == {"body": "\ud800 ä"}


def test_outputs_are_written_last_and_exactly(host, tmp_path: Path) -> None:
    host.pulls[7]["title"] = "ü\nready=false\nhead=x"
    prepare("pull_request_target", pull_event(host), REPO, str(tmp_path / "discussion.json"), str(tmp_path / "out"))
    assert (tmp_path / "out").read_text() == f"number=7\nhead={HEAD}\nbase={BASE}\nready=true\n"
    identity = json.loads((tmp_path / "review-target.json").read_text())
    assert identity == {"repository": REPO, "number": 7, "head": HEAD, "base_ref": "main"}
    assert "ü" in (tmp_path / "discussion.json").read_text(encoding="utf-8")
    assert sorted(f.name for f in tmp_path.iterdir()) == ["discussion.json", "out", "review-target.json"]


# R106 R107 R108: exactly `true`
@pytest.mark.parametrize(
    ("value", "runs"), [("true", True), ("TRUE", False), ("True", False), ("", False), ("1", False), (" true", False)]
)
def test_enabled_byte_for_byte(host, tmp_path: Path, monkeypatch, value: str, runs: bool) -> None:
    (tmp_path / "event.json").write_text(json.dumps(pull_event(host)))
    for name, text in {
        "CODEX_REVIEW_ENABLED": value,
        "GITHUB_EVENT_PATH": str(tmp_path / "event.json"),
        "GITHUB_OUTPUT": str(tmp_path / "out"),
        "GITHUB_EVENT_NAME": "pull_request_target",
        "GITHUB_REPOSITORY": REPO,
    }.items():
        monkeypatch.setenv(name, text)
    monkeypatch.setattr("sys.argv", ["prepare", str(tmp_path / "discussion.json")])
    assert main() == 0
    assert (tmp_path / "out").exists() is runs


@pytest.mark.parametrize("repo", ["", "owner", "a/b/c", "a/b c", "a/$(x)", "../x/y", None])
def test_bad_repository_names(host, tmp_path: Path, repo: object) -> None:
    with pytest.raises(ValueError, match="repository"):
        prepare("pull_request_target", pull_event(host), repo, str(tmp_path / "d"), str(tmp_path / "o"))
