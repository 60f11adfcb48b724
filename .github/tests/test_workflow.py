"""The workflow file: triggers, permissions, pins, conditions; and whole lives of a pull request through it."""

from __future__ import annotations

import copy
import json
import re
import shutil
import stat
import sys
from pathlib import Path

import pytest
import yaml
from codex_review_common import MARKER
from expressions import condition
from fake_github import FakeGitHub
from fake_server import serve
from places import GITHUB
from test_run_codex_review import PASS, SESSION, Bench, Upstream, message_events
from workflow_runner import Run

TEXT = (GITHUB / "workflows" / "codex-review.yml").read_text(encoding="utf-8")
WORKFLOW = yaml.safe_load(TEXT)
JOBS = WORKFLOW["jobs"]
TRIGGERS = WORKFLOW.get("on", WORKFLOW.get(True))
HOSTED, SELF_HOSTED = "ubuntu-latest", ["self-hosted", "Linux", "ARM64", "cpu-codex"]


def steps():
    return [(name, step) for name, job in JOBS.items() for step in job["steps"]]


# R1 R3 R4 R42 R44 R49 R148
def test_triggers_exactly() -> None:
    assert WORKFLOW["name"] == "Codex Review"
    assert TRIGGERS == {
        "pull_request_target": {"types": ["opened", "synchronize", "reopened", "ready_for_review", "edited", "closed"]},
        "issue_comment": {"types": ["created"]},
        "schedule": [{"cron": "17 3 * * 1"}],
        "workflow_dispatch": None,
    }


# R68 R139 R167 and the table of section 4
READ = "read"
TABLE = {
    "invalidate": (HOSTED, 5, {"contents": READ, "pull-requests": "write"}, "codex-invalidate-", False),
    "cleanup-sessions": (SELF_HOSTED, 30, {"contents": READ, "pull-requests": READ, "issues": READ}, None, None),
    "prepare": (
        HOSTED,
        10,
        {"actions": READ, "checks": READ, "contents": READ, "pull-requests": READ, "issues": READ},
        "codex-prepare-",
        False,
    ),
    "review": (SELF_HOSTED, 20, {"contents": READ, "pull-requests": READ, "issues": READ}, "codex-review-", True),
    "publish": (HOSTED, 5, {"actions": READ, "contents": READ, "pull-requests": "write"}, "codex-publish-", False),
    "auth-maintenance": (SELF_HOSTED, 10, {}, None, None),
}


# R6 R110 R149 R179 R183
@pytest.mark.parametrize("name", TABLE)
def test_job_table(name: str) -> None:
    runs_on, timeout, permissions, group, cancel = TABLE[name]
    job = JOBS[name]
    assert (job["runs-on"], job["timeout-minutes"], job["permissions"]) == (runs_on, timeout, permissions)
    concurrency = job.get("concurrency", {})
    assert concurrency.get("cancel-in-progress") is cancel
    assert concurrency.get("group", "").startswith(f"{group}${{{{" if group else "") and bool(group) == bool(
        concurrency
    )
    assert set(JOBS) == set(TABLE)
    assert WORKFLOW["permissions"] == {} and "concurrency" not in WORKFLOW


# R60 R61
def test_prepare_jobs_queue_up() -> None:
    assert JOBS["prepare"]["concurrency"]["queue"] == "max"
    assert "github.event.issue.number" in JOBS["prepare"]["concurrency"]["group"]
    groups = [job["concurrency"]["group"].split("$")[0].lower() for job in JOBS.values() if "concurrency" in job]
    assert len(set(groups)) == len(groups)


# R4 R66 R111 R160 R194
def test_actions_are_pinned_and_checkouts_trusted() -> None:
    for _, step in steps():
        if "uses" in step:
            assert re.fullmatch(r"actions/(checkout|upload-artifact|download-artifact)@[0-9a-f]{40}", step["uses"])
        if step.get("uses", "").startswith("actions/checkout"):
            assert step["with"] == {
                "ref": "${{ github.workflow_sha }}",
                "sparse-checkout": ".github/scripts",
                "persist-credentials": False,
            }
    assert not any("uses" in step for step in JOBS["auth-maintenance"]["steps"])


# R63 R65 R66
def test_the_rerun_token_is_named_in_exactly_one_step() -> None:
    holders = [(name, step) for name, step in steps() if "CODEX_REVIEW_RERUN_TOKEN" in json.dumps(step)]
    assert [(name, step["id"]) for name, step in holders] == [("prepare", "prepare")]
    assert TEXT.count("secrets.") == 1
    value = holders[0][1]["env"]["CODEX_REVIEW_RERUN_TOKEN"]
    from expressions import expand

    for event, expected in (("issue_comment", "pat"), ("pull_request_target", ""), ("schedule", "")):
        contexts = {"github": {"event_name": event}, "secrets": {"CODEX_REVIEW_RERUN_TOKEN": "pat"}}
        assert expand(value, contexts) == expected


def test_no_foreign_text_reaches_a_shell() -> None:
    for _, step in steps():
        assert "${{" not in step.get("run", "")
        for value in step.get("env", {}).values():
            assert not re.search(r"github\.(event\.(?!pull_request\.number)|head_ref|actor)", str(value))


# R57 R80 R81
def test_artifact_names_and_retention() -> None:
    uploads = [step["with"] for _, step in steps() if step.get("uses", "").startswith("actions/upload")]
    kept = {with_["name"].split("-${{")[0]: with_["retention-days"] for with_ in uploads}
    assert kept == {"codex-target": 30, "codex-context": 1, "codex-review": 1}
    assert all(with_["name"].endswith("-${{ github.run_id }}-${{ github.run_attempt }}") for with_ in uploads)
    assert all(with_["if-no-files-found"] == "error" for with_ in uploads)


# R114
def test_images_are_pinned_by_digest() -> None:
    for name, repository in (("CODEX_REVIEW_IMAGE", "pypto-codex-review"), ("CODEX_PROXY_IMAGE", "pypto-codex-proxy")):
        assert re.fullmatch(rf"[a-z0-9.:]+/{repository}@sha256:[0-9a-f]{{64}}", WORKFLOW["env"][name])
    assert WORKFLOW["env"]["CODEX_RELAY_PORT"] == "17895"
    assert WORKFLOW["env"]["CODEX_EGRESS_NETWORK"] == "pypto-codex-egress"
    assert WORKFLOW["env"]["CODEX_RELAY_CONTAINER"] == "pypto-codex-proxy-relay"


# R122 R123 R51 R139
def test_what_must_not_appear() -> None:
    for word in (
        "setup-python",
        "contents: write",
        "@codex",
        "pull_request_review",
        "workflow_run",
        "allow-unsafe",
        "3.8",
    ):
        assert word not in TEXT
    writers = [name for name, job in JOBS.items() if "write" in job["permissions"].values()]
    assert writers == ["invalidate", "publish"]


# R148 R149 R151
def test_maintenance_runs_bare() -> None:
    (step,) = JOBS["auth-maintenance"]["steps"]
    script = step["run"]
    for part in (
        "umask 077",
        "env -i",
        "flock --exclusive",
        ">/dev/null 2>&1",
        "mktemp -d",
        "9>&-",
        "--sandbox read-only",
    ):
        assert part in script
    assert "GH_TOKEN" not in json.dumps(step) and "github.token" not in json.dumps(step)


# Job conditions: the event table of section 3; R1 R2 R42-R44 R98 R106-R109 R178-R182
def started(name: str, event: dict, enabled: str = "true", **results: str) -> set:
    """Jobs whose condition holds, given the results of the others (default: as the conditions say, then success)."""
    outcome: dict = {}
    contexts = {"github": {"event_name": name, "event": event}, "vars": {"CODEX_REVIEW_ENABLED": enabled}}
    outputs = {"prepare": {"ready": "true"}, "review": {"completed": "true"}}
    for job in ("invalidate", "cleanup-sessions", "prepare", "review", "publish", "auth-maintenance"):
        needs = [JOBS[job]["needs"]] if "needs" in JOBS[job] else []
        view = {
            n: {"result": outcome[n], "outputs": outputs.get(n, {}) if outcome[n] == "success" else {}} for n in needs
        }
        functions = {
            "success": lambda needs=needs: all(outcome[n] == "success" for n in needs),
            "cancelled": lambda: False,
        }
        runs = condition(JOBS[job]["if"], {**contexts, "needs": view}, functions)
        outcome[job] = results.get(job.replace("-", "_"), "success") if runs else "skipped"
    return {job for job, result in outcome.items() if result != "skipped"}


REVIEW = {"prepare", "review", "publish"}


def pull(action: str, sender: str = "User", draft: bool = False, base: str = "main", **more: object) -> dict:
    return {
        "action": action,
        "sender": {"type": sender},
        "pull_request": {"number": 7, "draft": draft, "base": {"ref": base}},
        **more,
    }


RETARGET = {"changes": {"base": {"ref": {"from": "x"}}}}


@pytest.mark.parametrize(
    ("event", "enabled", "expected"),
    [
        *[(pull(action), "true", REVIEW) for action in ("opened", "synchronize", "reopened", "ready_for_review")],
        *[(pull(action, "Bot"), "true", set()) for action in ("opened", "synchronize", "reopened", "ready_for_review")],
        *[(pull(action, draft=True), "true", set()) for action in ("opened", "synchronize", "reopened")],
        (pull("opened", base="release"), "true", set()),
        (pull("edited"), "true", set()),
        (pull("edited", changes={"title": {"from": "x"}}), "true", set()),
        (pull("edited", **RETARGET), "true", {"invalidate"} | REVIEW),
        (pull("edited", "Bot", **RETARGET), "true", {"invalidate"} | REVIEW),
        (pull("edited", draft=True, **RETARGET), "true", {"invalidate"}),
        (pull("edited", base="release", **RETARGET), "true", {"invalidate"}),
        (pull("edited", "Bot", draft=True, **RETARGET), "false", {"invalidate"}),
        *[
            (pull("closed", sender, draft=draft, base=base), on, {"cleanup-sessions"})
            for sender in ("User", "Bot")
            for draft in (True, False)
            for base in ("main", "x")
            for on in ("true", "false")
        ],
        *[(pull("opened"), value, set()) for value in ("false", "", "1", "yes", None, "true ")],
    ],
)
def test_which_pull_request_event_starts_what(event: dict, enabled: str, expected: set) -> None:
    assert started("pull_request_target", event, enabled) == expected


@pytest.mark.parametrize(
    ("change", "runs"),
    [
        ({}, True),
        ({"action": "edited"}, False),
        ({"action": "deleted"}, False),
        ({"issue": {"number": 7}}, False),
        ({"sender": {"type": "Bot"}}, False),
    ],
)
def test_which_comment_starts_what(change: dict, runs: bool) -> None:
    event = {
        "action": "created",
        "issue": {"number": 7, "pull_request": {"url": "x"}},
        "sender": {"type": "User"},
        **change,
    }
    assert started("issue_comment", event) == (REVIEW if runs else set())
    assert started("issue_comment", event, "false") == set()


@pytest.mark.parametrize("name", ["schedule", "workflow_dispatch"])
def test_maintenance_only_when_enabled(name: str) -> None:
    assert started(name, {}) == {"auth-maintenance"} and started(name, {}, "false") == set()


def test_failures_stop_what_follows() -> None:  # R146 R181
    assert started("pull_request_target", pull("edited", **RETARGET), invalidate="failure") == {"invalidate"}
    assert started("pull_request_target", pull("edited", **RETARGET), invalidate="cancelled") == {"invalidate"}
    assert started("pull_request_target", pull("opened"), prepare="failure") == {"prepare"}
    assert started("pull_request_target", pull("opened"), review="failure") == {"prepare", "review"}


# R142-R147: names and settings of the upload attempts
def test_upload_attempts() -> None:
    uploads = [step for step in JOBS["review"]["steps"] if step.get("id", "").startswith("upload")]
    assert [u["timeout-minutes"] for u in uploads] == [2, 2, 2]
    assert [u.get("continue-on-error", False) for u in uploads] == [True, True, False]
    assert [u["with"].get("overwrite", False) for u in uploads] == [False, True, True]
    assert all((u["with"]["compression-level"], u["with"]["include-hidden-files"]) == (9, False) for u in uploads)
    waits = [step["run"] for step in JOBS["review"]["steps"] if step.get("id", "").startswith("wait")]
    assert waits == ["sleep 10", "sleep 30"]


# Whole lives ----------------------------------------------------------------------------------------------------------


class Life:
    """A pull request, its host, and runs of the workflow."""

    def __init__(self, bench: Bench, scratch: Path) -> None:
        self.bench, self.scratch, self.host = bench, scratch, bench.host
        self.run_id = 1000
        self.variables = {"CODEX_REVIEW_ENABLED": "true", "CODEX_REVIEW_AUTO_APPROVE": "true"}
        self.secrets: dict = {}
        self.failures: dict = {}
        self.replaced: dict = {}
        kept = {
            k: v
            for k, v in bench.environment.items()
            if k not in ("GH_TOKEN", "GH_REPO", "PR_NUMBER", "RUNNER_TEMP", "HEAD_SHA", "BASE_SHA")
        }
        self.environment = {
            k: v for k, v in kept.items() if not k.startswith(("GITHUB_", "ACTIONS_", "WORKFLOW", "REPOSITORY"))
        }
        (scratch / "home" / ".codex-ci").mkdir(parents=True)
        up = bench.upstream
        self.host.tokens["the-pat"] = self.host.tokens["rerun-token"]
        self.host.merge_bases.update({(up.base, up.head): up.merge_base, (up.workflow, up.head): up.merge_base})

    def run(self, name: str, event: dict, run_id: int | None = None) -> Run:
        self.run_id += 1
        run = Run(
            self.host,
            self.scratch,
            name,
            event,
            variables=self.variables,
            secrets=self.secrets,
            environment=self.environment,
            workflow_sha=self.bench.upstream.workflow,
            run_id=run_id or self.run_id,
            failures=self.failures,
            replaced=self.replaced,
        )
        shutil.rmtree(self.bench.output, ignore_errors=True)
        return run.play()

    def pull(self, action: str, **changes: object) -> Run:
        live = copy.deepcopy(self.host.pulls[7])
        event = {"action": action, "number": 7, "sender": {"type": "User"}, "pull_request": live, **changes}
        return self.run("pull_request_target", event)

    def comment(self, body: str) -> Run:
        comment = {"body": body, "user": {"login": "contributor", "id": 1001, "type": "User"}}
        event = {
            "action": "created",
            "issue": {"number": 7, "pull_request": {}},
            "comment": comment,
            "sender": {"type": "User"},
        }
        return self.run("issue_comment", event)


@pytest.fixture(scope="module")
def upstream(tmp_path_factory: pytest.TempPathFactory) -> Upstream:
    return Upstream(tmp_path_factory.mktemp("upstream") / "repo")


@pytest.fixture
def life(tmp_path: Path, upstream: Upstream):
    host = FakeGitHub()
    host.add_pull()
    with serve(host) as url:
        yield Life(Bench(tmp_path, upstream, url, host), tmp_path / "runs")
    assert not host.unexpected


def test_a_whole_life(life: Life) -> None:
    """Open, approve, command, rerun, retarget, close: R6 R52 R56 R58 R96 R139 R153 R178 R179."""
    host = life.host
    run = life.pull("opened")
    assert run.results == {
        "invalidate": "skipped",
        "prepare": "success",
        "review": "success",
        "publish": "success",
        "cleanup-sessions": "skipped",
        "auth-maintenance": "skipped",
    }, run.log
    assert len(host.standing_approvals()) == 1 and host.reviews[7][0]["body"].startswith(MARKER)
    # Only the publishing job wrote, and every job got along with the permissions it declares.
    assert {r["token"] for r in host.log if r["method"] in ("PUT", "POST") and "graphql" not in r["path"]} == {
        "publish"
    }
    assert len(life.bench.volumes()) == 2

    # The command finds that run, needs the dedicated token, and reviews nothing itself.
    host.add_run(run.run_id)
    run = life.comment("please\n@pypto-codex review")
    assert run.results["prepare"] == "failure" and "CODEX_REVIEW_RERUN_TOKEN" in run.log, run.log
    life.secrets["CODEX_REVIEW_RERUN_TOKEN"] = "the-pat"
    host.log.clear()
    run = life.comment("please\n@pypto-codex review")
    assert run.results["prepare"] == "success" and run.results["review"] == "skipped", run.log
    assert "re-running all jobs" in run.summary
    assert [r["token"] for r in host.requests("POST", "/rerun$")] == ["rerun"]

    # Findings replace the approval.
    finding = {
        "title": "Stride",
        "body": "b",
        "location": {"path": "lib/copy.py", "line": 1, "side": "RIGHT"},
        "existing_comment_id": None,
    }
    review = {"verdict": "findings", "summary": "s", "findings": [finding]}
    life.bench.scenario([{"events": message_events(review, "$RESUMED")}])
    life.pull("reopened")
    assert not host.standing_approvals() and len(host.review_comments[7]) == 1

    # A clean review again, then a retarget by a bot while everything is off: only our approval falls.
    life.bench.scenario([{"events": message_events(PASS, "$RESUMED")}])
    life.pull("synchronize")
    human = host.add_review(login="maintainer", body="fine")
    assert len(host.standing_approvals()) == 1
    life.variables["CODEX_REVIEW_ENABLED"] = "false"
    host.pulls[7]["draft"] = True
    host.pulls[7]["base"]["ref"] = "release"
    run = life.pull("edited", changes={"base": {"ref": {"from": "main"}}}, sender={"type": "Bot"})  # E17
    assert run.results["invalidate"] == "success" and run.results["prepare"] == "skipped"
    assert not host.standing_approvals() and human["state"] == "APPROVED"

    # Closing removes the volumes, also now; R109.
    host.close(7)
    run = life.pull("closed")
    assert run.results["cleanup-sessions"] == "success" and "removed" in run.log, run.log
    assert not life.bench.volumes()


LOGIN = {
    "auth_mode": "chatgpt",
    "tokens": {"access_token": "access-0123456789abcdef", "refresh_token": "refresh-0123456789abcdef"},
    "last_refresh": "2026-02-01T00:00:00Z",
}
NEWER = {**LOGIN, "last_refresh": "2026-02-08T00:00:00Z"}


# Section 18, R148-R151: the credential that is left, whatever the agent did to the file
@pytest.mark.parametrize(
    ("action", "left", "green"),
    [
        ("true", LOGIN, True),
        ("cat new > auth.json", NEWER, True),
        ("cat new > auth.json; exit 1", NEWER, False),
        ("exit 1", LOGIN, False),
        ("head -c 40 new > auth.json", LOGIN, False),
        ("cat old > auth.json", LOGIN, False),
        ("echo null > auth.json", LOGIN, False),
        ("cat new > auth.json; chmod 644 auth.json", LOGIN, False),
        ("rm auth.json", LOGIN, False),
        ("rm auth.json; ln -s new auth.json", LOGIN, False),
        ("cat new > auth.json; kill -TERM $(cat parent); sleep 1", NEWER, False),
    ],
)
def test_maintenance_leaves_a_sound_credential(
    life: Life, tmp_path: Path, action: str, left: dict, green: bool
) -> None:
    home = life.scratch / "home" / ".codex-ci"
    for name, login in (("auth.json", LOGIN), ("new", NEWER), ("old", {**LOGIN, "last_refresh": "2026-01-01"})):
        (home / name).write_text(json.dumps(login))
        (home / name).chmod(0o600)
    (tmp_path / "bin").mkdir(exist_ok=True)
    program = tmp_path / "bin" / "codex"
    facts = (
        f"json.dump([sys.argv[1:], dict(os.environ), os.getcwd(), os.listdir()], open({str(tmp_path / 'seen')!r}, 'w'))"
    )
    recorder = f"import json, os, sys; {facts}"
    program.write_text(
        "#!/bin/bash\n"
        f'{sys.executable} -S -c "{recorder}" "$@"\n'
        "echo access-0123456789abcdef\ncd $CODEX_HOME\n"
        # The shell that started `timeout`, which started this.
        "awk '/^PPid/ {print $2}' /proc/$PPID/status > parent\n"
        f"{action}\n"
    )
    program.chmod(0o755)
    life.replaced = {"PATH=/usr/local/bin": f"PATH={program.parent}:/usr/local/bin"}
    run = life.run("workflow_dispatch", {"inputs": {}})
    assert run.results["auth-maintenance"] == ("success" if green else "failure"), run.log
    assert json.loads((home / "auth.json").read_text()) == left
    mode = (home / "auth.json").lstat().st_mode
    assert stat.S_ISREG(mode) and stat.S_IMODE(mode) == 0o600
    restored = "previous one is back" in run.log
    assert restored is (home / "auth.json.backup").exists()
    assert restored is (not green and left is LOGIN and action != "exit 1")
    if restored:
        assert stat.S_IMODE((home / "auth.json.backup").stat().st_mode) == 0o600
    assert "0123456789abcdef" not in run.log
    arguments, environment, folder, content = json.loads((tmp_path / "seen").read_text())
    assert "read-only" in arguments and content == [] and not Path(folder).exists()
    assert set(environment) - {"LC_CTYPE", "PWD", "SHLVL", "_", "OLDPWD"} == {
        *("HOME", "PATH", "CODEX_HOME", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")
    }


def test_denied_invalidation_starts_no_review(life: Life) -> None:  # E18
    from fake_github import Rule

    life.host.add_review(body=MARKER)
    life.host.rules.append(Rule("PUT", "dismissals", status=403))
    run = life.pull("edited", changes={"base": {"ref": {"from": "x"}}})
    assert run.results["invalidate"] == "failure" and run.results["prepare"] == "skipped"


@pytest.mark.parametrize(("failures", "green"), [(1, True), (2, True), (3, False)])  # E44 E45
def test_upload_retries(life: Life, failures: int, green: bool) -> None:
    life.failures = {f"Upload the result ({n} of 3)": 1 for n in range(1, failures + 1)}
    run = life.pull("opened")
    assert run.results["review"] == ("success" if green else "failure")
    assert run.results["publish"] == ("success" if green else "skipped")
    tried = [name for job, name, _ in run.steps if name.startswith("Upload")]
    assert len(tried) == min(3, failures + 1)
    assert len(life.host.standing_approvals()) == (1 if green else 0)


@pytest.mark.parametrize(
    ("change", "job"), [(lambda h: h.pulls[7].update(draft=True), "prepare"), (lambda h: h.close(7), "prepare")]
)
def test_late_changes_end_quietly(life: Life, change, job: str) -> None:
    event = {
        "action": "opened",
        "number": 7,
        "sender": {"type": "User"},
        "pull_request": copy.deepcopy(life.host.pulls[7]),
    }
    change(life.host)
    run = life.run("pull_request_target", event)
    assert run.results["prepare"] == "success" and run.results["review"] == "skipped" and not life.host.reviews[7]


def test_a_skipped_review_publishes_nothing(life: Life) -> None:
    from fake_github import Rule

    life.host.rules.append(Rule("POST", "graphql", 2, mutate=lambda h: h.pulls[7].update(draft=True)))
    run = life.pull("opened")
    assert run.results["review"] == "success" and run.results["publish"] == "skipped" and not life.host.reviews[7]
    assert not any(name.startswith(("Upload the result", "Wait")) for _, name, _ in run.steps)


def test_a_failed_review_is_red_and_takes_nothing_back(life: Life) -> None:
    life.bench.scenario([{"events": message_events({"verdict": "pass"})}])
    run = life.pull("opened")
    assert run.results["review"] == "failure" and run.results["publish"] == "skipped"


def test_later_discussion_does_not_matter(life: Life) -> None:  # R31 R32
    from fake_github import Rule

    life.host.rules.append(
        Rule("GET", "/compare/", mutate=lambda h: h.issue_comments[7].append({"id": 1, "body": "wait!", "user": None}))
    )
    life.pull("opened")
    assert len(life.host.standing_approvals()) == 1


def test_the_scripts_run_under_python_3_8(life: Life, tmp_path: Path) -> None:  # R118
    candidates = [
        *Path.home().glob(".pyenv/versions/3.8*/bin/python3.8"),
        Path(shutil.which("python3.8") or "/nonexistent"),
    ]
    interpreter = next((c for c in candidates if c.exists()), None)
    if interpreter is None:
        pytest.skip("no python3.8; install one with: pyenv install 3.8")
    programs = tmp_path / "bin38"
    programs.mkdir()
    (programs / "python3").symlink_to(interpreter)
    life.environment["PATH"] = f"{programs}:{life.environment['PATH']}"
    run = life.pull("opened")
    assert run.results["publish"] == "success", run.log
    assert len(life.host.standing_approvals()) == 1
    assert life.bench.checkpoint.read_text() == SESSION
