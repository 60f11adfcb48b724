"""Plays recorded events against a local fake of the hosting API and prints every decision with its requirement.

Usage: simulate.py EVENT.json... [--state DIR] [--disabled] [--json]
       simulate.py --example [--state DIR] [--json]

EVENT.json is a webhook payload, or {"name": EVENT_NAME, "payload": {...}, "review": {what the agent answers}}. Several
events happen one after the other to the same pull request; a re-run that a command asks for is played too. --example
plays a built-in life: opened, findings, reply, second request, approval, retarget, close. DIR may hold
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
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import codex_review_common as common
import manage_codex_review_session as sessions
import prepare_codex_review as preparation
import publish_codex_review as publisher
from codex_review_common import as_object, positive_number, run_main
from comment_command import requests_review

#: Number of the first run that a simulation plays.
FIRST_RUN = 1001
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
    if "comment" in payload and "pull_request" in payload:
        return "pull_request_review_comment"
    if "pull_request" in payload:
        return "pull_request_target"
    if "schedule" in payload:
        return "schedule"
    if "inputs" in payload:
        return "workflow_dispatch"
    raise ValueError("unknown payload: expected pull_request, issue or pull_request with comment, schedule, or inputs")


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
    if name == "pull_request_review_comment":
        return [Decision("workflow", "skipped", "inline replies start nothing; the next review reads them", "R48 R49")]
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


class Step(NamedTuple):
    """One event of a simulation: a heading, the event, and what the agent would answer."""

    title: str
    name: str
    payload: dict
    review: bytes


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
    """A fake host made from the first event, and the jobs played against it."""

    def __init__(self, payload: dict, state: dict) -> None:
        # The fake host is part of the test bench and not next to the trusted scripts.
        sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "bench"))
        from fake_github import FakeGitHub
        from inprocess import sender

        self.payload = payload
        repository = payload.get("repository") or {}
        self.host = FakeGitHub(repository.get("full_name", "owner/repo"), repository.get("id", 4711))
        self.number = self._pull(state)
        self.volumes = MemoryVolumes(state.get("volumes", {}))
        self.steps: list = []
        self.decisions: list = []
        #: Runs played here, so that a re-run of one of them can be played as well: number to its event.
        self.runs: dict = {}
        self.run_id = FIRST_RUN - 1
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
        _merge(pull, state.get("live", {}))
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
        if pull["state"] == "closed" and self.payload.get("action") != "closed":
            self.host.close_events[number].append(f"CE_{self.host.new_id()}")
        return number

    def happen(self, step: Step) -> None:
        """Bring the host into the state that the event reports."""
        self.name, self.payload, self.review = step.name, step.payload, step.review
        recorded, comment = step.payload.get("pull_request"), step.payload.get("comment")
        if self.steps and recorded and step.name == "pull_request_target":
            _merge(self.host.pulls[self.number], recorded)
        if step.payload.get("action") == "closed":
            self.host.close_events[self.number].append(f"CE_{self.host.new_id()}")
        if step.name == "issue_comment" and comment and (step.payload.get("issue") or {}).get("pull_request"):
            self.host.issue_comments[self.number].append({"id": self.host.new_id(), **comment})
        if step.name == "pull_request_review_comment" and comment:
            for thread in self.host.threads[self.number]:
                if thread["_comments"][0]["databaseId"] == comment.get("in_reply_to_id"):
                    self.host.add_thread_comment(self.number, thread, common.login(comment["user"]), comment["body"])

    def note(self, job: str, action: str, detail: str, rule: str) -> None:
        """Record one decision."""
        self.decisions.append(Decision(job, action, detail, rule))

    def play(self, step: Step, enabled: bool) -> list[Decision]:
        """All jobs of one event."""
        self.happen(step)
        self.decisions = []
        self.steps.append((step.title, self.decisions))
        self.run_id += 1
        for planned in planned_jobs(self.name, self.payload, enabled):
            self.decisions.append(planned)
            if planned.action != "runs":
                continue
            job = {"invalidate": self.invalidate, "cleanup-sessions": self.cleanup, "prepare": self.prepare}
            if not job.get(planned.job, lambda: True)():
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
        asked = len(self.host.log)
        os.environ["GITHUB_RUN_ID"], os.environ["GITHUB_RUN_ATTEMPT"] = str(self.run_id), "1"
        snapshot = self.collect()
        calls = self.host.log[asked:]
        rerun = [int(call["path"].split("/")[-2]) for call in calls if call["path"].endswith("/rerun")]
        if rerun:
            self.note("prepare", "re-run", f"run {rerun[0]}", "R54")
            if rerun[0] in self.runs:
                self.repeat(rerun[0])
        elif snapshot is None and any(call["path"].endswith("graphql") for call in calls):
            self.note("prepare", "reused", "an active run answers, or the pull request changed", "R53 R79")
        elif snapshot is None:
            self.note("prepare", "nothing", "not eligible: state, base, or permission of the sender", "R35 R36 R45")
        if snapshot is None:
            return False
        self.ready(snapshot)
        self.review_and_publish()
        if self.name == "pull_request_target":
            self.runs[self.run_id] = self.payload
            self.host.add_run(self.run_id, self.number)
        return True

    def collect(self) -> dict | None:
        """The prepare script for the present event: the discussion, or None when it starts no review here."""
        with tempfile.TemporaryDirectory() as folder:
            outputs, path = os.path.join(folder, "outputs"), os.path.join(folder, "discussion.json")
            preparation.prepare(self.name, self.payload, self.host.repo, path, outputs)
            return load(Path(path), None) if os.path.exists(outputs) else None

    def ready(self, snapshot: dict) -> None:
        """Note what the review will know."""
        inline = sum(len(thread["comments"]) for thread in snapshot["threads"])
        known = f"{_count(snapshot['comments'], 'comment')}, {_count(snapshot['reviews'], 'review')}, "
        known += f"{_count(snapshot['threads'], 'thread')} ({inline} inline)"
        self.note("prepare", "ready", f"#{self.number} at {snapshot['head'][:12]}: {known}", "R14-R18 R34")

    def repeat(self, run_id: int) -> None:
        """The next attempt of a run played earlier: the same event, the present discussion."""
        self.name, self.payload = "pull_request_target", self.runs[run_id]
        self.run_id = run_id
        os.environ["GITHUB_RUN_ID"] = str(run_id)
        os.environ["GITHUB_RUN_ATTEMPT"] = str(self.host.runs[run_id]["run_attempt"])
        self._token("read-token")
        snapshot = self.collect()
        if snapshot is None:
            self.note("prepare", "nothing", f"run {run_id} again: the pull request has moved on", "R104")
        else:
            self.ready(snapshot)
            self.review_and_publish()
        self.host.runs[run_id].update(status="completed", conclusion="success")

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
            "decisions": [decision._asdict() for _, decisions in self.steps for decision in decisions],
            "events": [
                {"title": title, "decisions": [decision._asdict() for decision in decisions]}
                for title, decisions in self.steps
            ],
            "reviews": self.host.reviews[self.number],
            "comments": self.host.review_comments[self.number],
            "volumes": self.volumes.volumes,
        }


def _merge(pull: dict, changes: dict) -> None:
    """Lay changes over a pull request; objects inside it keep what the changes do not name."""
    for key, value in copy.deepcopy(changes).items():
        if isinstance(value, dict) and isinstance(pull.get(key), dict):
            pull[key].update(value)
        else:
            pull[key] = value


def _count(items: list, what: str) -> str:
    return f"{len(items)} {what}" + ("" if len(items) == 1 else "s")


def example(simulation: Simulation | None) -> Iterator[Step]:
    """A whole life, event by event; later ones need to see what the earlier ones left on the host."""
    author = {"login": "contributor", "id": 1001, "type": "User"}
    pull = {
        **{"number": 7, "state": "open", "draft": False, "merged": False, "title": "Pad the rows", "body": ""},
        "user": author,
        "head": {"sha": "a" * 40, "ref": "topic", "repo": {"full_name": "contributor/repo"}},
        "base": {"sha": "b" * 40, "ref": common.BASE_BRANCH, "repo": {"full_name": "owner/repo"}},
    }
    event = {"number": 7, "sender": author, "repository": {"full_name": "owner/repo", "id": 4711}}
    locations = (
        {"path": "lib/copy.py", "line": 1, "side": "RIGHT"},
        {"path": "lib/other.py", "line": 9, "side": "RIGHT"},
    )
    findings = [
        {"title": title, "body": f"{title}: explained.", "location": location, "existing_comment_id": None}
        for title, location in zip(("Row stride ignores padding", "Caller passes the old width"), locations)
    ]
    first = encode({"verdict": "findings", "summary": "Read the whole diff.", "findings": findings})
    second = encode({"verdict": "pass", "summary": "The caller checks the width; withdrawn.", "findings": []})
    yield Step(
        "opened; the agent reports two findings",
        "pull_request_target",
        {**event, "action": "opened", "pull_request": pull},
        first,
    )
    root = simulation.host.threads[7][0]["_comments"][0]["databaseId"] if simulation else 0
    reply = {"in_reply_to_id": root, "user": author, "body": "The caller checks the width."}
    yield Step(
        "the author replies in the thread",
        "pull_request_review_comment",
        {**event, "action": "created", "pull_request": pull, "comment": reply},
        second,
    )
    issue = {"number": 7, "pull_request": {"url": "u"}, "user": author}
    comment = {"user": author, "body": f"Please look again.\n\n{common.COMMAND}"}
    yield Step(
        "the author asks again; the agent finds nothing any more",
        "issue_comment",
        {**event, "action": "created", "issue": issue, "comment": comment},
        second,
    )
    base = {**pull["base"], "ref": "release"}
    changes = {"base": {"ref": {"from": common.BASE_BRANCH}}}
    yield Step(
        "retargeted to another branch",
        "pull_request_target",
        {**event, "action": "edited", "changes": changes, "pull_request": {**pull, "base": base}},
        second,
    )
    closed = {**pull, "base": base, "state": "closed"}
    yield Step("closed", "pull_request_target", {**event, "action": "closed", "pull_request": closed}, second)


def encode(review: dict) -> bytes:
    """An answer of the agent as it arrives."""
    return json.dumps(review).encode("utf-8")


def recorded_step(path: Path, review: bytes) -> Step:
    """The event in a file; ValueError naming the file."""
    if not path.is_file():
        raise ValueError(f"{path}: no such event file")
    recorded = as_object(load(path, None), str(path))
    wrapped = isinstance(recorded.get("payload"), dict)
    payload = recorded["payload"] if wrapped else recorded
    name = (recorded.get("name") if wrapped else None) or event_name(payload)
    answer = encode(recorded["review"]) if wrapped and "review" in recorded else review
    return Step(path.name, name, payload, answer)


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
    parser = argparse.ArgumentParser(description="play recorded events against a local fake of the hosting API")
    parser.add_argument("event", type=Path, nargs="*")
    parser.add_argument("--example", action="store_true", help="play a built-in whole life instead of files")
    parser.add_argument("--state", type=Path)
    parser.add_argument("--disabled", action="store_true", help="as if CODEX_REVIEW_ENABLED were not true")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if bool(options.event) == options.example:
        parser.error("name event files, or --example")
    state = as_object(load(options.state / "host.json", {}), "host.json") if options.state else {}
    answer = options.state / "codex-review.json" if options.state else None
    review = answer.read_bytes() if answer and answer.exists() else encode(CLEAN)
    recorded = [recorded_step(path, review) for path in options.event]
    first = recorded[0] if recorded else next(example(None))
    sys.stdout, out = sys.stderr, sys.stdout  # what the scripts report goes beside the decisions
    step = first
    try:
        simulation = Simulation(first.payload, state)
        for step in recorded or example(simulation):
            simulation.play(step, not options.disabled)
    except KeyError as error:
        raise ValueError(f"{step.title}: the payload lacks {error}") from None
    finally:
        sys.stdout = out
    outcome = simulation.outcome()
    if options.state:
        text = json.dumps(outcome, indent=1, ensure_ascii=False)
        (options.state / "result.json").write_text(text + "\n", encoding="utf-8")
    if options.json:
        print(json.dumps(outcome, ensure_ascii=False))
        return 0
    for title, decisions in simulation.steps:
        if len(simulation.steps) > 1:
            print(("\n" if title != first.title else "") + f"== {title}")
        for decision in decisions:
            print(f"{decision.job:<17} {decision.action:<10} {decision.detail}  [{decision.rule}]")
    if len(simulation.steps) > 1:
        print("\n== what is left")
        for entry in simulation.host.reviews[simulation.number]:
            print(f"review {entry['id']} by {common.login(entry['user'])}: {entry['state']}")
        print(f"session volumes: {', '.join(simulation.volumes.volumes) or 'none'}")
    return 0


if __name__ == "__main__":
    run_main(main)
