"""Safety under any order of events, races and failures: hypothesis drives the fake host against the real scripts.

What must hold whatever happens: an approval stands only if every precondition held between the first and the last look
and again after it was posted; none survives an invalidation; no finding is lost silently; nothing is posted twice;
people's approvals stay; what went wrong is visible as an exception.
"""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path

import codex_review_common as common
import publish_codex_review as publisher
import pytest
from codex_review_common import ApiError
from fake_github import BOT, FakeGitHub, Rule
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from inprocess import sender
from prepare_codex_review import prepare
from publish_codex_review import publish, revoke_approvals

EXAMPLES = int(os.environ.get("REVIEW_BENCH_EXAMPLES", "60"))
REPO = "owner/repo"


class MergeBases(dict):
    """Commits of one line of history share a merge base with every head; a rewritten base starts another line."""

    def get(self, key: tuple, default: object = None) -> str:
        return f"{'e' * 8}{key[0][:8]}{'0' * 24}"


class WatchedHost(FakeGitHub):
    """Calls `watch` after every request."""

    watch = staticmethod(lambda method, path: None)

    def _answer(self, method, path, *arguments):
        try:
            return super()._answer(method, path, *arguments)
        finally:
            self.watch(method, path)


CHANGES = st.sampled_from(["push", "retarget", "advance", "rewrite", "draft", "close", "reopen"])
#: Requests of a publication and how often each occurs.
PLACES = st.sampled_from(
    [
        *[("GET", r"/pulls/7$", nth) for nth in (1, 2, 3)],
        *[("GET", "/compare/", nth) for nth in (1, 2, 3, 4)],
        *[("POST", r"/reviews$", nth) for nth in (1, 1, 1, 2)],
        *[("GET", r"/reviews$", nth) for nth in (1, 2, 3)],
        ("PUT", "dismissals", 1),
        ("PUT", "dismissals", 2),
        ("GET", "/files", 1),
        ("GET", "/comments", 1),
    ]
)
FAULTS = [
    "change",
    "change",
    "change after",
    "change after",
    "500",
    "502 applied",
    "403",
    "422",
    "drop",
    "drop applied",
    "garbage",
]
DISTURBANCES = st.lists(
    st.fixed_dictionaries(
        {"place": PLACES, "kind": st.sampled_from(FAULTS), "times": st.sampled_from([1, 1, 2, 9]), "change": CHANGES}
    ),
    max_size=2,
)
ANSWERS = st.sampled_from(["pass", "pass", "pass", "findings", "incomplete", "invalid", "huge"])


class ReviewLife(RuleBasedStateMachine):
    """One pull request, its reviews in flight, and everything that may happen to them."""

    def __init__(self) -> None:
        super().__init__()
        self.host = WatchedHost()
        self.host.add_pull()
        self.host.merge_bases = MergeBases()
        self.counter = 0
        self.line = 0
        self.pending: list = []
        self.runs = 0
        self.unanswered_base_change = False
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(common, "send", sender(self.host))
        self.patch.setattr(common, "pause", lambda seconds: None)
        self.patch.setattr(publisher, "pause", lambda seconds: None)
        self.folder = Path(tempfile.mkdtemp())
        self.patch.delenv("GITHUB_STEP_SUMMARY", raising=False)
        self.host.pulls[7]["base"]["sha"] = self.new_base()
        self.human = self.host.add_review(login="maintainer", body="fine")

    def teardown(self) -> None:
        self.patch.undo()
        for path in self.folder.iterdir():
            path.unlink()
        self.folder.rmdir()

    @initialize()
    def start(self) -> None:
        self.prepare_review("pass")

    def new_base(self) -> str:
        self.counter += 1
        return f"{self.line:08x}{self.counter:032x}"

    @property
    def pull(self) -> dict:
        return self.host.pulls[7]

    def change(self, kind: str) -> None:
        if kind == "push":
            self.counter += 1
            self.pull.setdefault("_commits", []).append(self.pull["head"]["sha"])
            self.pull["head"]["sha"] = f"{self.counter:040x}"
        elif kind == "retarget":
            self.pull["base"]["ref"] = "release" if self.pull["base"]["ref"] == "main" else "main"
            self.unanswered_base_change = True
        elif kind == "advance":
            self.pull["base"]["sha"] = self.new_base()
        elif kind == "rewrite":
            self.line += 1
            self.pull["base"]["sha"] = self.new_base()
        elif kind == "draft":
            self.pull["draft"] = not self.pull["draft"]
        elif kind == "close":
            self.pull["state"] = "closed"
        elif kind == "reopen":
            self.pull["state"] = "open"

    @rule(kind=CHANGES)
    def happen(self, kind: str) -> None:
        self.change(kind)

    @rule(protected=st.booleans(), complete=st.booleans())
    def edit_files(self, protected: bool, complete: bool) -> None:
        name = ".github/x.yml" if protected else "lib/copy.py"
        self.host.files[7] = [{"filename": name, "status": "modified", "patch": "@@ -1,2 +1,2 @@\n-a\n+b\n c"}]
        self.pull["changed_files"] = 1 if complete else 2

    @rule(allowed=st.booleans())
    def toggle_setting(self, allowed: bool) -> None:
        self.host.actions_may_approve = allowed

    @rule()
    def invalidate(self) -> None:
        """The job for a base change; nothing of ours stands afterwards."""
        self.patch.setenv("GH_TOKEN", "publish-token")
        revoke_approvals(REPO, 7)
        assert not self.host.standing_approvals()
        self.unanswered_base_change = False

    @rule(answer=ANSWERS)
    def prepare_review(self, answer: str) -> None:
        """A run of the workflow up to its result. A base change is answered by the invalidation first."""
        if self.unanswered_base_change:
            self.invalidate()
        self.patch.setenv("GH_TOKEN", "read-token")
        outputs = self.folder / "outputs"
        outputs.unlink(missing_ok=True)
        event = {"action": "synchronize", "sender": {"type": "User"}, "pull_request": json.loads(json.dumps(self.pull))}
        prepare("pull_request_target", event, REPO, str(self.folder / "discussion.json"), str(outputs))
        if outputs.exists():
            found = dict(line.split("=") for line in outputs.read_text().splitlines())
            self.runs += 1
            self.pending.append((self.runs, found["head"], found["base"], self.pull["base"]["ref"], answer))

    def answer_file(self, answer: str) -> Path:
        located = {
            "title": f"Anchored {self.runs}",
            "body": "b",
            "location": {"path": "lib/copy.py", "line": 1, "side": "RIGHT"},
        }
        loose = {"title": f"Loose {self.runs}", "body": "b", "location": None}
        review: dict = {"verdict": answer, "summary": "s", "findings": [located, loose] if answer == "findings" else []}
        if answer == "invalid":
            review = {"verdict": "pass", "summary": "s", "findings": [loose]}
        elif answer == "huge":
            review = {"verdict": "findings", "summary": "s", "findings": [{**loose, "body": "@" * 20000}] * 2}
        path = self.folder / "codex-review.json"
        path.write_text(json.dumps(review))
        return path

    @rule(answer=ANSWERS, disturbances=DISTURBANCES)
    def whole_run(self, answer: str, disturbances: list) -> None:
        """A run on a healthy pull request, so that the interesting moments are reached often."""
        if self.pull["base"]["ref"] != "main":
            self.change("retarget")
        self.pull.update(state="open", draft=False)
        self.host.actions_may_approve = True
        self.prepare_review(answer)
        self.publish_review(True, disturbances, len(self.pending) - 1)

    @rule(enabled=st.sampled_from([True, True, True, False]), disturbances=DISTURBANCES, pick=st.integers(0, 3))
    def publish_review(self, enabled: bool, disturbances: list, pick: int) -> None:
        """A publication, possibly with a race or a failure at one request."""
        if not self.pending:
            return
        run, head, base, base_ref, answer = self.pending.pop(pick % len(self.pending))
        self.patch.setenv("GH_TOKEN", "publish-token")
        self.patch.setenv("GITHUB_RUN_ID", str(run))
        self.host.rules = [self.rule_for(disturbance) for disturbance in disturbances]
        before = {review["id"] for review in self.host.standing_approvals()}
        moments: list = []

        def valid() -> bool:
            live = self.pull
            return (
                live["state"] == "open"
                and not live["draft"]
                and live["head"]["sha"] == head
                and live["base"]["ref"] == base_ref == "main"
                and live["base"]["sha"][:8] == base[:8]
            )

        posted: list = []
        current: list = []

        def watch(method: str, path: str) -> None:
            moments.append(valid())
            if method == "GET" and path.endswith("/pulls/7"):
                live = self.pull
                ready = live["state"] == "open" and not live["draft"]
                current.append(ready and (live["head"]["sha"], live["base"]["ref"]) == (head, base_ref))
            if method == "POST" and path.endswith("/reviews") and not posted:
                assert current[-1:] == [True], "posted for a state that the last look had shown to be gone"
            if method == "POST" and path.endswith("/reviews"):
                posted.append(len(moments))

        self.host.watch = watch
        path = self.answer_file(answer)
        files_fine = self.pull.get("changed_files", 1) == 1 and self.host.files[7][0]["filename"] == "lib/copy.py"
        failure: BaseException | None = None
        result = ""
        try:
            result = publish(str(path), REPO, 7, head, base, base_ref, enabled)
        except (ValueError, ApiError) as error:
            failure = error
        finally:
            self.host.watch = lambda method, path: None
            self.host.rules = []
        stamp = f"<!-- codex-review-run: {run}/0 -->"
        mine = [review for review in self.host.reviews[7] if stamp in str(review["body"])]
        approvals = [review for review in mine if review["state"] == "APPROVED"]
        if approvals and "could not dismiss" not in str(failure):
            assert failure is None, f"an approval outlived {failure}"
            assert enabled and answer == "pass" and files_fine
            assert any(moments[: posted[0]]) and any(moments[posted[-1] :]), (
                "never valid before, or never after posting"
            )
            assert approvals[0]["commit_id"] == head
        # Earlier approvals never stand beside a new result.
        if mine and failure is None:
            assert not before & {review["id"] for review in self.host.standing_approvals()}
        assert len([review for review in mine if review["state"] != "DISMISSED"]) <= 1, "posted twice"
        if failure is None and answer == "findings" and not result.startswith("skipped"):
            shown = mine[-1]["body"] + "".join(c["body"] for c in self.host.review_comments[7])
            for title in ("Anchored", "Loose"):
                assert f"{title} {self.runs}" in shown, "a finding was lost"
        if failure is None and answer in ("invalid", "huge"):
            assert result.startswith("skipped") and not mine

    def rule_for(self, planned: dict) -> Rule:
        kind, (method, path, nth) = planned["kind"], planned["place"]
        if kind == "change":
            return Rule(method, path, nth, mutate=lambda host: self.change(planned["change"]))
        if kind == "change after":
            return Rule(method, path, nth, after=lambda host: self.change(planned["change"]))
        options: dict = {
            "500": {"status": 500},
            "502 applied": {"status": 502, "apply": True},
            "403": {"status": 403},
            "422": {"status": 422},
            "drop": {"drop": True},
            "drop applied": {"drop": True, "apply": True},
            "garbage": {"raw": b"{", "apply": True},
        }[kind]
        return Rule(method, path, nth, times=planned["times"], **options)

    @invariant()
    def people_keep_their_approvals(self) -> None:
        assert self.human["state"] == "APPROVED"

    @invariant()
    def only_the_known_surface_is_used(self) -> None:
        assert not self.host.unexpected

    @invariant()
    def only_the_publisher_wrote(self) -> None:
        writes = [r for r in self.host.log if r["method"] != "GET" and "graphql" not in r["path"]]
        assert {r["token"] for r in writes} <= {"publish"}
        assert all(review["user"]["login"] in (BOT, "maintainer") for review in self.host.reviews[7])
        assert not any(r["body"].get("event") == "REQUEST_CHANGES" for r in writes if r["method"] == "POST")


ReviewLife.TestCase.settings = settings(max_examples=EXAMPLES, stateful_step_count=15, deadline=None)
TestReviewLife = ReviewLife.TestCase
