"""The two front ends for people: simulation of recorded events, and the check of visible settings."""

from __future__ import annotations

import copy
import json
import os
import subprocess
import sys
from pathlib import Path

import check
import pytest
import simulate
from codex_review_common import MARKER, ApiError
from fake_github import FakeGitHub
from places import SCRIPTS
from test_workflow import RETARGET, started

HOST = FakeGitHub()
HOST.add_pull()


def payload(action: str = "opened", **changes: object) -> dict:
    event = {
        "action": action,
        "number": 7,
        "sender": {"type": "User"},
        "repository": {"full_name": "owner/repo", "id": 4711},
        "pull_request": copy.deepcopy(HOST.pulls[7]),
    }
    event.update(changes)
    return event


def comment(body: str, login: str = "contributor", user_id: int = 1001) -> dict:
    user = {"login": login, "id": user_id, "type": "User"}
    return {
        "action": "created",
        "issue": {"number": 7, "pull_request": {"url": "x"}, "user": HOST.pulls[7]["user"]},
        "comment": {"body": body, "user": user},
        "sender": {"type": "User"},
        "repository": {"full_name": "owner/repo", "id": 4711},
    }


def play(folder: Path, event: object, state: dict | None = None, review: object = None, *options: str) -> dict:
    (folder / "event.json").write_text(json.dumps(event))
    (folder / "host.json").write_text(json.dumps(state or {}))
    if review is not None:
        (folder / "codex-review.json").write_text(json.dumps(review))
    command = [
        sys.executable,
        "-B",
        str(SCRIPTS / "simulate.py"),
        str(folder / "event.json"),
        "--state",
        str(folder),
        "--json",
    ]
    done = subprocess.run([*command, *options], capture_output=True, text=True, env={"PATH": os.environ["PATH"]})
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def actions(outcome: dict) -> list:
    assert all(decision["rule"] for decision in outcome["decisions"])
    return [(d["job"], d["action"]) for d in outcome["decisions"]]


def test_a_clean_pull_request_is_approved(tmp_path: Path) -> None:
    outcome = play(tmp_path, payload())
    assert ("publish", "approved") in actions(outcome) and outcome["reviews"][0]["state"] == "APPROVED"
    assert json.loads((tmp_path / "result.json").read_text())["decisions"] == outcome["decisions"]


def test_findings_are_posted_with_their_comments(tmp_path: Path) -> None:
    finding = {
        "title": "t",
        "body": "b",
        "location": {"path": "lib/copy.py", "line": 1, "side": "RIGHT"},
        "existing_comment_id": None,
    }
    outcome = play(tmp_path, payload(), None, {"verdict": "findings", "summary": "s", "findings": [finding]})
    assert outcome["comments"][0]["body"].startswith(MARKER)
    assert [d["detail"] for d in outcome["decisions"] if d["action"] == "posted"][1] == "comment on lib/copy.py:1 RIGHT"


@pytest.mark.parametrize(
    ("event", "state", "expected"),
    [
        (
            payload("edited", **RETARGET),
            {"reviews": [{"body": MARKER}], "auto_approve": "false"},
            ("invalidate", "dismissed"),
        ),
        (payload("edited", changes={"title": {}}), {}, ("prepare", "skipped")),
        (comment("hello"), {}, ("prepare", "nothing")),
        (comment("> @pypto-codex review"), {}, ("prepare", "nothing")),
        (comment("@pypto-codex review", "stranger", 5), {}, ("prepare", "nothing")),
        (comment("@pypto-codex review", "helper", 5), {"collaborators": {"helper": "write"}}, ("prepare", "ready")),
        (comment("@pypto-codex review"), {"runs": [{"id": 123}]}, ("prepare", "re-run")),
        (comment("@pypto-codex review"), {"runs": [{"id": 123, "status": "queued"}]}, ("prepare", "reused")),
        (
            payload("closed", pull_request={**HOST.pulls[7], "state": "closed"}),
            {"volumes": {"pypto-codex-sessions-4711-7": "initial"}},
            ("cleanup-sessions", "deleted"),
        ),
        (payload(), {"files": [{"filename": "AGENTS.md", "status": "added"}]}, ("publish", "posted")),
        (payload(), {"live": {"draft": True}}, ("prepare", "nothing")),
        ({"name": "schedule", "payload": {"schedule": "17 3 * * 1"}}, {}, ("auth-maintenance", "runs")),
        ({**payload("created"), "comment": {"body": "@pypto-codex review"}}, {}, ("workflow", "skipped")),
    ],
    ids=range(13),
)
def test_decisions(tmp_path: Path, event: dict, state: dict, expected: tuple) -> None:
    assert expected in actions(play(tmp_path, event, state))


def simulate_text(*arguments: object) -> subprocess.CompletedProcess:
    command = [sys.executable, "-B", str(SCRIPTS / "simulate.py"), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, env={"PATH": os.environ["PATH"]})


def test_the_built_in_life(tmp_path: Path) -> None:
    done = simulate_text("--example", "--state", tmp_path)
    assert done.returncode == 0, done.stderr
    events = done.stdout.split("== ")[1:]
    assert [event.split("\n")[0].split(";")[0] for event in events] == [
        *("opened", "the author replies in the thread", "the author asks again", "retargeted to another branch"),
        *("closed", "what is left"),
    ]
    for event, parts in zip(
        events,
        (
            ("0 threads", "(COMMENTED)", "comment on lib/copy.py:1 RIGHT"),
            ("inline replies start nothing",),
            ("re-run     run 1001", "1 thread (2 inline)", "(APPROVED)"),
            ("dismissed  approval", "base is not main"),
            ("deleted    volume pypto-codex-sessions-4711-7-index",),
            (": COMMENTED", ": DISMISSED", "session volumes: none"),
        ),
    ):
        assert all(part in event for part in parts), event
    result = json.loads((tmp_path / "result.json").read_text())
    assert len(result["events"]) == 5 and [r["state"] for r in result["reviews"]] == ["COMMENTED", "DISMISSED"]


def test_several_events_happen_to_the_same_pull_request(tmp_path: Path) -> None:
    pushed = payload("synchronize")
    pushed["pull_request"]["head"]["sha"] = "e" * 40
    finding = {"title": "t", "body": "b", "location": None, "existing_comment_id": None}
    answer = {"verdict": "findings", "summary": "s", "findings": [finding]}
    steps = {"open": payload(), "push": {"payload": pushed, "review": answer}, "ask": comment("@pypto-codex review")}
    for name, event in steps.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(event))
    done = simulate_text(*(tmp_path / f"{name}.json" for name in steps), "--json")
    assert done.returncode == 0, done.stderr
    outcome = json.loads(done.stdout)
    assert [event["title"] for event in outcome["events"]] == ["open.json", "push.json", "ask.json"]
    # Approved, dismissed for the findings, and the run of the push repeated for the command.
    assert [(r["state"], r["commit_id"][0]) for r in outcome["reviews"]] == [
        ("DISMISSED", "a"),
        ("COMMENTED", "e"),
        ("APPROVED", "e"),
    ]
    assert "run 1002" in next(d["detail"] for d in outcome["events"][2]["decisions"] if d["action"] == "re-run")
    assert simulate_text().returncode == 2 and simulate_text("x.json", "--example").returncode == 2


def test_an_invalid_answer_is_shown_as_a_failure(tmp_path: Path) -> None:
    outcome = play(tmp_path, payload(), {"reviews": [{"body": MARKER}]}, {"verdict": "pass"})
    assert ("publish", "dismissed") in actions(outcome) and "failed" in outcome["decisions"][-1]["detail"]


def test_text_output_and_bad_input(tmp_path: Path) -> None:
    (tmp_path / "event.json").write_text(json.dumps(payload("opened", sender={"type": "Bot"})))
    command = [sys.executable, "-B", str(SCRIPTS / "simulate.py")]
    done = subprocess.run([*command, str(tmp_path / "event.json")], capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.split()[:2] == ["prepare", "skipped"]
    for text, message in (("{", "not JSON"), ("{}", "unknown payload"), ("[]", "expected an object")):
        (tmp_path / "event.json").write_text(text)
        done = subprocess.run([*command, str(tmp_path / "event.json")], capture_output=True, text=True)
        assert done.returncode == 1 and message in done.stderr and "Traceback" not in done.stderr
    done = subprocess.run([*command, str(tmp_path / "absent")], capture_output=True, text=True)
    assert done.returncode == 1 and "no such event" in done.stderr


@pytest.mark.parametrize("sender", ["User", "Bot"])
@pytest.mark.parametrize("enabled", [True, False])
@pytest.mark.parametrize("base", ["main", "release"])
@pytest.mark.parametrize("draft", [True, False])
@pytest.mark.parametrize("action", ["opened", "synchronize", "reopened", "edited", "retargeted", "closed"])
def test_the_plan_agrees_with_the_workflow_file(
    action: str, draft: bool, base: str, enabled: bool, sender: str
) -> None:
    event = payload("edited" if action == "retargeted" else action, sender={"type": sender})
    event["pull_request"].update(draft=draft, base={"ref": base})
    if action == "retargeted":
        event.update(RETARGET)
    plan = {d.job for d in simulate.planned_jobs("pull_request_target", event, enabled) if d.action == "runs"}
    jobs = started("pull_request_target", event, "true" if enabled else "false")
    assert plan == jobs - {"review", "publish"}


# The check of settings


def test_this_checkout_passes_its_own_check(capsys, monkeypatch) -> None:
    monkeypatch.setattr("sys.argv", ["check"])
    assert check.main() == 0
    assert "fail" not in capsys.readouterr().out.split()
    monkeypatch.setattr("sys.argv", ["check", "--json"])
    assert check.main() == 0
    assert {"level", "what", "fix", "rule"} == set(json.loads(capsys.readouterr().out)[0])


def levels(facts: list) -> dict:
    return {fact.what: fact.level for fact in facts}


def test_wrong_files_are_named() -> None:
    text = "env:\n  CODEX_REVIEW_IMAGE: x:latest\njobs:\n  a:\n    uses: actions/checkout@v4\n    contents: write\n"
    assert list(levels(check.workflow_facts(text)).values()).count("fail") == 5
    assert check.schema_facts({"type": "object", "properties": {"a": {}}, "required": []})[0].level == "fail"


def test_an_open_system_call_profile_is_named(tmp_path: Path) -> None:
    (tmp_path / "codex-review").mkdir()
    (tmp_path / "codex-review" / "seccomp.json").write_text('{"defaultAction": "SCMP_ACT_ALLOW"}')
    facts = levels(check.local_facts(tmp_path))
    assert facts["the system call profile denies what it does not name"] == "fail"
    assert facts[".github/codex-review/seccomp.json exists"] == "ok"
    assert facts[".github/codex-review/Dockerfile exists"] == "fail"


def test_repository_settings() -> None:
    answers = {
        "actions/permissions/workflow": {"can_approve_pull_request_reviews": False},
        "actions/variables?per_page=100": {"variables": [{"name": "CODEX_REVIEW_ENABLED", "value": "True"}]},
        "actions/secrets?per_page=100": {"secrets": [{"name": "CODEX_REVIEW_RERUN_TOKEN"}]},
        "actions/runners?per_page=100": {
            "runners": [{"status": "offline", "labels": [{"name": n} for n in check.LABELS]}]
        },
    }
    facts = levels(check.repository_facts("o/r", lambda e: answers[e.split("o/r/")[1]]))
    assert facts["Actions may approve pull requests"] == "warn" and facts["CODEX_REVIEW_ENABLED is 'True'"] == "warn"
    assert facts["secret CODEX_REVIEW_RERUN_TOKEN exists"] == "ok" and facts["a dedicated runner is registered"] == "ok"
    assert facts["a dedicated runner is online"] == "warn"

    def refuse(endpoint: str) -> None:
        raise ApiError(endpoint, 403, "Resource not accessible")

    assert set(levels(check.repository_facts("o/r", refuse)).values()) == {"warn"}


def test_host_settings(tmp_path: Path) -> None:
    auth = tmp_path / "auth.json"
    auth.write_text("{}")
    auth.chmod(0o644)

    def run(command: list, **options: object) -> subprocess.CompletedProcess:
        return subprocess.CompletedProcess(command, 0, "unhealthy\n", "")

    facts = levels(check.host_facts(str(auth), run))
    assert facts[f"{auth} is a private regular file"] == "fail" and facts["network pypto-codex-egress"] == "ok"
    assert facts["relay pypto-codex-proxy-relay is healthy"] == "fail"
