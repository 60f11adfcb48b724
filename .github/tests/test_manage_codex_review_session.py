"""Session volumes: the decision table, the exact names, and never a guess about what docker said."""

from __future__ import annotations

import json
import subprocess

import manage_codex_review_session as sessions
import pytest
from fake_github import HEAD, Rule
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from manage_codex_review_session import LABEL, manage_session, plan_session, volume_names

REPO = "owner/repo"
NAMES = ("pypto-codex-sessions-4711-7", "pypto-codex-sessions-4711-7-index")


class Volumes:
    """Docker's volumes in memory, with its wording."""

    def __init__(self) -> None:
        self.labels: dict = {}
        self.calls: list = []
        self.fail: dict = {}

    def __call__(self, *arguments: str) -> subprocess.CompletedProcess:
        self.calls.append(arguments)
        verb, name = arguments[1], arguments[-1]
        if verb in self.fail:
            return subprocess.CompletedProcess(arguments, 1, "", self.fail[verb])
        if verb == "inspect":
            if name not in self.labels:
                return subprocess.CompletedProcess(
                    arguments, 1, "[]\n", f"Error response from daemon: get {name}: no such volume"
                )
            found = json.dumps([{"Name": name, "Labels": self.labels[name]}])
            return subprocess.CompletedProcess(arguments, 0, found, "")
        if verb == "create":
            self.labels[name] = dict([arguments[3].split("=", 1)])
        elif verb == "rm":
            del self.labels[name]
        return subprocess.CompletedProcess(arguments, 0, name, "")


@pytest.fixture
def docker(monkeypatch) -> Volumes:
    volumes = Volumes()
    monkeypatch.setattr(sessions, "docker", volumes)
    return volumes


OPEN = {"state": "OPEN", "isDraft": False, "headRefOid": HEAD}


# R96 R97 R100-R105: section 11.1
@pytest.mark.parametrize(
    "pair", [["e", "e"], [None, None], ["e", None], ["old", "old"], ["", "e"], ["e", "old"]], ids=str
)
@pytest.mark.parametrize(
    ("mode", "pull", "fresh", "current"),
    [
        ("review", {**OPEN, "state": "CLOSED"}, (False, False, "skipped"), (False, False, "skipped")),
        ("review", {**OPEN, "state": "MERGED"}, (False, False, "skipped"), (False, False, "skipped")),
        ("review", {**OPEN, "isDraft": True}, (False, False, "skipped"), (False, False, "skipped")),
        ("review", {**OPEN, "headRefOid": "9" * 40}, (False, False, "skipped"), (False, False, "skipped")),
        ("review", OPEN, (True, True, "ready"), (False, False, "ready")),
        ("cleanup", {**OPEN, "state": "CLOSED"}, (True, False, "removed"), (True, False, "removed")),
        ("cleanup", {**OPEN, "state": "MERGED"}, (True, False, "removed"), (True, False, "removed")),
        ("cleanup", OPEN, (True, False, "removed"), (False, False, "retained")),
        ("cleanup", {**OPEN, "isDraft": True}, (True, False, "removed"), (False, False, "retained")),
    ],
)
def test_decision_table(mode: str, pull: dict, fresh: tuple, current: tuple, pair: list) -> None:
    assert plan_session(mode, pull, "e", HEAD, pair) == (current if pair == ["e", "e"] else fresh)


# R87 R88 R92
def test_first_review_creates_both_volumes(host, docker) -> None:
    assert manage_session(REPO, 7, 4711, "review", HEAD) == "ready"
    assert docker.labels == {name: {LABEL: "initial"} for name in NAMES}
    docker.calls.clear()
    assert manage_session(REPO, 7, 4711, "review", HEAD) == "ready"
    assert {call[1] for call in docker.calls} == {"inspect"}


# R98 R102 R103, E19 E20
def test_close_reopen_review_late_cleanup(host, docker) -> None:
    manage_session(REPO, 7, 4711, "review", HEAD)
    host.close(7)
    host.pulls[7]["state"] = "open"
    assert manage_session(REPO, 7, 4711, "review", HEAD) == "ready"
    event = host.close_events[7][-1]
    assert docker.labels == {name: {LABEL: f"closed:{event}"} for name in NAMES}
    assert manage_session(REPO, 7, 4711, "cleanup") == "retained" and len(docker.labels) == 2
    host.close(7, merged=True)
    host.pulls[7]["draft"] = True
    assert manage_session(REPO, 7, 4711, "cleanup") == "removed" and not docker.labels


def test_half_a_pair_is_recreated(host, docker) -> None:  # E21
    manage_session(REPO, 7, 4711, "review", HEAD)
    del docker.labels[NAMES[1]]
    docker.calls.clear()
    assert manage_session(REPO, 7, 4711, "review", HEAD) == "ready"
    assert [c[1] for c in docker.calls] == ["inspect", "inspect", "rm", "create", "create"] and len(docker.labels) == 2


@pytest.mark.parametrize(
    "error",
    [
        "Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?",
        "permission denied",
        "",
        "no such volume",
        "Error: no such volume: other",
        f"get {NAMES[0]}-index: no such volume",
        f"get x{NAMES[0]}: no such volume",
    ],
)  # E22
def test_only_the_daemons_word_about_this_volume_means_absent(host, docker, error: str) -> None:
    docker.fail["inspect"] = error
    with pytest.raises(subprocess.CalledProcessError):
        manage_session(REPO, 7, 4711, "review", HEAD)
    assert {call[1] for call in docker.calls} == {"inspect"}


@pytest.mark.parametrize(
    "error", [f"Error: No such volume: {NAMES[0]}", f"Error response from daemon: get {NAMES[0]}: no such volume"]
)
def test_wordings_of_absence(docker, error: str) -> None:
    docker.fail["inspect"] = error
    assert sessions.volume_labels(NAMES[0]) is None


@pytest.mark.parametrize(
    "output",
    ["", "[]", "{}", '[{"Name": "other", "Labels": {}}]', json.dumps([{"Name": NAMES[0], "Labels": []}]), "[1]"],
)
def test_unexpected_descriptions_fail(monkeypatch, output: str) -> None:
    monkeypatch.setattr(sessions, "docker", lambda *a: subprocess.CompletedProcess(a, 0, output, ""))
    with pytest.raises(ValueError):
        sessions.volume_labels(NAMES[0])


@pytest.mark.parametrize("verb", ["rm", "create"])
def test_failing_changes_fail_the_job(host, docker, verb: str) -> None:
    docker.labels[NAMES[0]] = {LABEL: "old"}
    docker.fail[verb] = "volume is in use"
    with pytest.raises(subprocess.CalledProcessError):
        manage_session(REPO, 7, 4711, "review", HEAD)


@pytest.mark.parametrize(
    ("number", "repository", "mode", "head"),
    [
        ("0", 1, "review", HEAD),
        ("01", 1, "review", HEAD),
        ("7;x", 1, "review", HEAD),
        (7, "-1", "review", HEAD),
        (7, True, "review", HEAD),
        (7, 1, "delete", HEAD),
        (7, 1, "review", None),
        (7, 1, "review", "main"),
        (7, 1, "review", HEAD.upper()),
    ],
)
def test_bad_arguments_touch_nothing(host, docker, number, repository, mode, head) -> None:
    with pytest.raises(ValueError):
        manage_session(REPO, number, repository, mode, head)
    assert not docker.calls and not host.log


@pytest.mark.parametrize(
    "change",
    [
        {"nameWithOwner": "x/y"},
        {"number": 8},
        {"number": "7"},
        {"state": "open"},
        {"isDraft": "false"},
        {"headRefOid": "x"},
        {"events": [{}, {}]},
        {"events": [{"id": ""}]},
        {"events": [{"id": 5}]},
        {"events": [None]},
        {"events": None},
    ],
    ids=str,
)
def test_unexpected_states_touch_no_volume(host, docker, change: dict) -> None:
    pull = {
        "number": 7,
        "state": "OPEN",
        "isDraft": False,
        "headRefOid": HEAD,
        "timelineItems": {"nodes": change.pop("events", [])},
    }
    data = {"nameWithOwner": change.pop("nameWithOwner", REPO), "pullRequest": {**pull, **change}}
    host.rules.append(Rule("POST", "graphql", raw=json.dumps({"data": {"repository": data}}).encode()))
    with pytest.raises(ValueError):
        manage_session(REPO, 7, 4711, "review", HEAD)
    assert not docker.calls


def test_a_failing_state_query_touches_no_volume(host, docker) -> None:
    from codex_review_common import ApiError

    host.rules.append(Rule("POST", "graphql", times=9, status=500))
    with pytest.raises(ApiError):
        manage_session(REPO, 7, 4711, "cleanup")
    assert not docker.calls


def test_names_belong_to_one_pull_request() -> None:
    assert volume_names("4711", "7") == NAMES
    assert not set(volume_names(4711, 71)) & set(volume_names(4711, 7))


class SessionLife(RuleBasedStateMachine):
    """Any order of events: a `ready` never leaves volumes of an older epoch, and no other pull request is touched."""

    def __init__(self) -> None:
        super().__init__()
        import codex_review_common
        from fake_github import FakeGitHub
        from inprocess import sender

        self.host, self.docker = FakeGitHub(), Volumes()
        for number in (7, 71):
            self.host.add_pull(number)
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(codex_review_common, "send", sender(self.host))
        self.patch.setattr(sessions, "docker", self.docker)
        self.patch.setenv("GH_TOKEN", "read-token")

    def teardown(self) -> None:
        self.patch.undo()

    numbers = st.sampled_from([7, 71])

    @rule(number=numbers, merged=st.booleans())
    def close(self, number: int, merged: bool) -> None:
        if self.host.pulls[number]["state"] == "open":
            self.host.close(number, merged)

    @rule(number=numbers)
    def reopen(self, number: int) -> None:
        if not self.host.pulls[number]["merged"]:
            self.host.pulls[number]["state"] = "open"

    @rule(number=numbers)
    def toggle_draft(self, number: int) -> None:
        self.host.pulls[number]["draft"] = not self.host.pulls[number]["draft"]

    @rule(number=numbers)
    def push(self, number: int) -> None:
        head = self.host.pulls[number]["head"]
        head["sha"] = f"{int(head['sha'], 16) ^ 1:040x}"

    @rule(number=numbers, half=st.booleans())
    def lose_volumes(self, number: int, half: bool) -> None:
        for name in volume_names(4711, number)[half:]:
            self.docker.labels.pop(name, None)

    @rule(number=numbers, mode=st.sampled_from(["review", "cleanup"]), current=st.booleans())
    def call(self, number: int, mode: str, current: bool) -> None:
        pull = self.host.pulls[number]
        own = volume_names(4711, number)
        self.docker.calls.clear()
        word = manage_session(REPO, number, 4711, mode, pull["head"]["sha"] if current else "9" * 40)
        assert {call[-1] for call in self.docker.calls} <= set(own)
        events = self.host.close_events[number]
        epoch = f"closed:{events[-1]}" if events else "initial"
        present = [self.docker.labels[name] for name in own if name in self.docker.labels]
        if word in ("ready", "retained"):
            assert present == [{LABEL: epoch}] * 2
        if word == "ready":
            assert pull["state"] == "open" and not pull["draft"] and current
        if word == "removed":
            assert not present
        if mode == "cleanup" and pull["state"] == "closed":
            assert not present

    @invariant()
    def only_known_volumes(self) -> None:
        assert set(self.docker.labels) <= {*volume_names(4711, 7), *volume_names(4711, 71)}


SessionLife.TestCase.settings = settings(max_examples=40, stateful_step_count=20, deadline=None)
TestSessionLife = SessionLife.TestCase
