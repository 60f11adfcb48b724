"""Plays a recorded event against a local fake of the hosting API and prints every decision with its requirement.

Usage: simulate.py EVENT.json [--state DIR] [--disabled] [--json]

EVENT.json is a webhook payload, or {"name": EVENT_NAME, "payload": {...}}. DIR may hold
  host.json          live (changes to the pull request), files, reviews, comments, collaborators, runs, volumes,
                     merge_base, auto_approve, actions_may_approve
  codex-review.json  what the agent answered (default: a clean pass)
and receives result.json: reviews posted and dismissed, volumes left. Nothing outside this process is contacted.
"""

from __future__ import annotations

import argparse
import copy
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import codex_review_common as common
import manage_codex_review_session as sessions
import prepare_codex_review as preparation
import publish_codex_review as publisher
from codex_review_common import as_object, positive_number, run_main
from comment_command import requests_review

CLEAN = {"verdict": "pass", "summary": "Simulated review: nothing found.", "findings": []}


class Decision(NamedTuple):
    """One line of the outcome."""

    job: str
    action: str
    detail: str
    rule: str


def event_name(payload: dict) -> str:
    """Name of the event a payload belongs to; ValueError when it cannot be told."""
    if "comment" in payload and "issue" in payload:
        return "issue_comment"
    if "pull_request" in payload:
        return "pull_request_target"
    if "schedule" in payload:
        return "schedule"
    if "inputs" in payload:
        return "workflow_dispatch"
    raise ValueError("unknown payload: expected pull_request, issue with comment, schedule, or inputs")


def planned_jobs(name: str, payload: dict, enabled: bool) -> list[Decision]:
    """Which jobs the workflow starts for this event, and why not otherwise; the same as its conditions."""
    action = payload.get("action")
    changes = payload.get("changes")
    base_changed = isinstance(changes, dict) and changes.get("base") is not None
    from_bot = (payload.get("sender") or {}).get("type") == "Bot"
    plan: list = []
    if name in ("schedule", "workflow_dispatch"):
        if enabled:
            return [Decision("auth-maintenance", "runs", "refresh of the agent credential", "R148")]
        return [Decision("auth-maintenance", "skipped", "reviews are disabled", "R106")]
    if name == "issue_comment":
        if action != "created":
            return [Decision("prepare", "skipped", f"comment was {action}", "R42")]
        if (payload.get("issue") or {}).get("pull_request") is None:
            return [Decision("prepare", "skipped", "comment on an ordinary issue", "R44")]
        if from_bot:
            return [Decision("prepare", "skipped", "comment by a bot", "R43")]
        if not enabled:
            return [Decision("prepare", "skipped", "reviews are disabled", "R106")]
        return [Decision("prepare", "runs", "comment on a pull request", "R37")]
    if name != "pull_request_target":
        return [Decision("workflow", "skipped", f"{name} is no trigger", "R3")]
    if action == "closed":
        return [Decision("cleanup-sessions", "runs", "pull request closed", "R96")]
    pull = payload["pull_request"]
    if action == "edited" and not base_changed:
        return [Decision("prepare", "skipped", "only title or body changed", "R182")]
    if action == "edited":
        plan.append(Decision("invalidate", "runs", "base branch changed", "R178"))
    if action not in ("opened", "synchronize", "reopened", "ready_for_review", "edited"):
        return [Decision("workflow", "skipped", f"action {action} is no trigger", "R3")]
    if not enabled:
        return [*plan, Decision("prepare", "skipped", "reviews are disabled", "R106")]
    if pull.get("draft"):
        return [*plan, Decision("prepare", "skipped", "draft", "R1")]
    if pull["base"]["ref"] != common.BASE_BRANCH:
        return [*plan, Decision("prepare", "skipped", f"base is not {common.BASE_BRANCH}", "R2")]
    if from_bot and action != "edited":
        return [*plan, Decision("prepare", "skipped", "sender is a bot", "R3")]
    return [*plan, Decision("prepare", "runs", f"pull request {action}", "R3")]


class MemoryVolumes:
    """Docker's volumes in memory."""

    def __init__(self, volumes: dict) -> None:
        self.volumes = dict(volumes)

    def __call__(self, *arguments: str) -> subprocess.CompletedProcess:
        verb, name = arguments[1], arguments[-1]
        if verb == "inspect" and name not in self.volumes:
            return subprocess.CompletedProcess(arguments, 1, "", f"get {name}: no such volume")
        if verb == "create":
            self.volumes[name] = arguments[3].split("=", 1)[1]
        elif verb == "rm":
            del self.volumes[name]
        labels = {sessions.LABEL: self.volumes.get(name, "")}
        return subprocess.CompletedProcess(arguments, 0, json.dumps([{"Name": name, "Labels": labels}]), "")


class Simulation:
    """A fake host made from the event, and the jobs played against it."""

    def __init__(self, name: str, payload: dict, state: dict, review: bytes) -> None:
        # The fake host is part of the test bench and not next to the trusted scripts.
        sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "bench"))
        from fake_github import FakeGitHub
        from inprocess import sender

        self.name, self.payload, self.review = name, payload, review
        repository = payload.get("repository") or {}
        self.host = FakeGitHub(repository.get("full_name", "owner/repo"), repository.get("id", 4711))
        self.number = self._pull(state)
        self.volumes = MemoryVolumes(state.get("volumes", {}))
        self.decisions: list = []
        self.auto_approve = str(state.get("auto_approve", "true")) == "true"
        common.send = sender(self.host)
        common.pause = lambda seconds: None
        sessions.docker = self.volumes

    def _pull(self, state: dict) -> int:
        recorded = self.payload.get("pull_request")
        number = positive_number((recorded or self.payload.get("issue") or {"number": 7}).get("number"), "number")
        pull = self.host.add_pull(number)
        if recorded:
            pull.update(copy.deepcopy(recorded))
        elif self.payload.get("issue"):
            pull["user"] = self.payload["issue"].get("user", pull["user"])
        for key, value in state.get("live", {}).items():
            if isinstance(value, dict) and isinstance(pull.get(key), dict):
                pull[key].update(value)
            else:
                pull[key] = value
        pull["base"].setdefault("repo", {"full_name": self.host.repo})
        self.host.collaborators.update(state.get("collaborators", {}))
        self.host.default_merge_base = state.get("merge_base", self.host.default_merge_base)
        self.host.actions_may_approve = state.get("actions_may_approve", True)
        if "files" in state:
            self.host.files[number] = state["files"]
        for review in state.get("reviews", []):
            self.host.add_review(number, **review)
        for comment in state.get("comments", []):
            self.host.issue_comments[number].append({"id": self.host.new_id(), **comment})
        for run in state.get("runs", []):
            self.host.add_run(run.pop("id"), number, **run)
        if self.payload.get("action") == "closed" or pull["state"] == "closed":
            self.host.close_events[number].append(f"CE_{self.host.new_id()}")
        return number

    def note(self, job: str, action: str, detail: str, rule: str) -> None:
        """Record one decision."""
        self.decisions.append(Decision(job, action, detail, rule))

    def play(self, enabled: bool) -> list[Decision]:
        """All jobs of the event."""
        for planned in planned_jobs(self.name, self.payload, enabled):
            self.decisions.append(planned)
            if planned.action != "runs":
                continue
            step = {"invalidate": self.invalidate, "cleanup-sessions": self.cleanup, "prepare": self.prepare}
            if not step.get(planned.job, lambda: True)():
                break
        return self.decisions

    def _token(self, name: str) -> None:
        os.environ["GH_TOKEN"] = name

    def invalidate(self) -> bool:
        """Dismiss this workflow's approvals."""
        self._token("publish-token")
        before = {review["id"] for review in self.host.standing_approvals(self.number)}
        publisher.revoke_approvals(self.host.repo, self.number)
        gone = before - {review["id"] for review in self.host.standing_approvals(self.number)}
        for identifier in sorted(gone):
            self.note("invalidate", "dismissed", f"approval {identifier}", "R178 R179")
        if not gone:
            self.note("invalidate", "nothing", "no approval of this workflow stands", "R177")
        return True

    def cleanup(self) -> bool:
        """Remove the session volumes."""
        self._token("read-token")
        before = set(self.volumes.volumes)
        word = sessions.manage_session(self.host.repo, self.number, self.host.repository_id, "cleanup")
        for name in sorted(before - set(self.volumes.volumes)):
            self.note("cleanup-sessions", "deleted", f"volume {name}", "R96")
        self.note("cleanup-sessions", word, f"sessions of #{self.number}", "R96 R103")
        return True

    def prepare(self) -> bool:
        """Authorise and route; then review and publish when ready."""
        self._token("read-token")
        os.environ[common.RERUN_TOKEN_VARIABLE] = "rerun-token"
        if self.name == "issue_comment" and not requests_review((self.payload.get("comment") or {}).get("body")):
            self.note("prepare", "nothing", "the comment holds no active command", "R37 R40 R41")
            return False
        with tempfile.TemporaryDirectory() as folder:
            outputs = os.path.join(folder, "outputs")
            preparation.prepare(
                self.name, self.payload, self.host.repo, os.path.join(folder, "discussion.json"), outputs
            )
            ready = os.path.exists(outputs)
        rerun = self.host.requests("POST", "/rerun$")
        if rerun:
            self.note("prepare", "re-run", f"run {rerun[0]['path'].split('/')[-2]}", "R54")
        elif not ready and self.host.requests("POST", "graphql"):
            self.note("prepare", "reused", "an active run answers, or the pull request changed", "R53 R79")
        elif not ready:
            self.note("prepare", "nothing", "not eligible: state, base, or permission of the sender", "R35 R36 R45")
        if not ready:
            return False
        self.note(
            "prepare", "ready", f"#{self.number} at {self.host.pulls[self.number]['head']['sha'][:12]}", "R14 R34"
        )
        self.review_and_publish()
        return True

    def review_and_publish(self) -> None:
        """The session's fate and what is posted for the given answer of the agent."""
        pull = self.host.pulls[self.number]
        head, base = pull["head"]["sha"], pull["base"]["sha"]
        word = sessions.manage_session(self.host.repo, self.number, self.host.repository_id, "review", head)
        self.note("review", word, "session volumes", "R100 R104")
        if word != "ready":
            return
        self._token("publish-token")
        before = {review["id"]: review["state"] for review in self.host.reviews[self.number]}
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "codex-review.json")
            with open(path, "wb") as file:
                file.write(self.review)
            try:
                result = publisher.publish(
                    path, self.host.repo, self.number, head, base, pull["base"]["ref"], self.auto_approve
                )
            except (ValueError, subprocess.CalledProcessError) as error:
                result = f"failed: {error} [A2 R165]"
        for review in self.host.reviews[self.number]:
            if before.get(review["id"]) not in (None, review["state"]):
                self.note("publish", "dismissed", f"approval {review['id']}", "R176")
            elif review["id"] not in before:
                word = "approved" if review["state"] == "APPROVED" else "posted"
                self.note("publish", word, f"review {review['id']} ({review['state']})", _rule(result))
                inline = [
                    c for c in self.host.review_comments[self.number] if c.get("pull_request_review_id") == review["id"]
                ]
                for comment in inline:
                    self.note(
                        "publish", "posted", f"comment on {comment['path']}:{comment['line']} {comment['side']}", "R7"
                    )
        self.note("publish", "result", result.split(" [")[0], _rule(result))

    def outcome(self) -> dict:
        """What a person would see afterwards."""
        return {
            "decisions": [decision._asdict() for decision in self.decisions],
            "reviews": self.host.reviews[self.number],
            "comments": self.host.review_comments[self.number],
            "volumes": self.volumes.volumes,
        }


def _rule(result: str) -> str:
    if "[" in result:
        return result.rsplit("[", 1)[1].rstrip("]")
    return "R163 R175" if "skipped" in result else "A1-A19 R153 R162"


def load(path: Path, default: Any) -> Any:
    """JSON of a file, or the default if there is none; ValueError naming the file."""
    if not path.exists():
        return default
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path}: not JSON: {error}") from None


def main() -> int:
    """Command line; see the module docstring."""
    parser = argparse.ArgumentParser(description="play a recorded event against a local fake of the hosting API")
    parser.add_argument("event", type=Path)
    parser.add_argument("--state", type=Path)
    parser.add_argument("--disabled", action="store_true", help="as if CODEX_REVIEW_ENABLED were not true")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if not options.event.is_file():
        raise ValueError(f"{options.event}: no such event file")
    recorded = as_object(load(options.event, None), str(options.event))
    wrapped = isinstance(recorded.get("payload"), dict)
    payload = recorded["payload"] if wrapped else recorded
    name = recorded.get("name") if wrapped else None
    state = as_object(load(options.state / "host.json", {}), "host.json") if options.state else {}
    answer = options.state / "codex-review.json" if options.state else None
    review = answer.read_bytes() if answer and answer.exists() else json.dumps(CLEAN).encode()
    try:
        simulation = Simulation(name or event_name(payload), payload, state, review)
        sys.stdout, out = sys.stderr, sys.stdout  # what the scripts report goes beside the decisions
        try:
            simulation.play(not options.disabled)
        finally:
            sys.stdout = out
    except KeyError as error:
        raise ValueError(f"{options.event}: the payload lacks {error}") from None
    outcome = simulation.outcome()
    if options.state:
        text = json.dumps(outcome, indent=1, ensure_ascii=False)
        (options.state / "result.json").write_text(text + "\n", encoding="utf-8")
    if options.json:
        print(json.dumps(outcome, ensure_ascii=False))
    else:
        for decision in simulation.decisions:
            print(f"{decision.job:<17} {decision.action:<10} {decision.detail}  [{decision.rule}]")
    return 0


if __name__ == "__main__":
    run_main(main)
