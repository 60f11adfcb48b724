"""The real agent program offline: schema and resume against a loopback model, its events through our extraction."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from fake_github import FakeGitHub
from fake_model import Model, login
from places import GITHUB
from review_container import agent_arguments
from review_output import extract_session, load_review
from workflow_runner import Run

CODEX = shutil.which("codex")
pytestmark = pytest.mark.skipif(
    CODEX is None, reason="codex is missing: npm install -g @openai/codex (or .github/tests/install.sh)"
)
REVIEW = {"verdict": "pass", "summary": "Read the diff.", "findings": []}


@pytest.fixture
def model():
    with Model([json.dumps(REVIEW)]) as server:
        yield server


class Agent:
    """The agent with the command line of the review container, in a home and a work tree of its own."""

    def __init__(self, folder: Path, model: Model) -> None:
        self.home, self.tree = folder / "home", folder / "tree"
        self.events = folder / "events.jsonl"
        self.result = folder / "codex-review.json"
        for each in (self.home, self.tree, folder / "state"):
            each.mkdir()
        subprocess.run(["git", "init", "-q", str(self.tree)], check=True)
        (self.home / "config.toml").write_text(model.settings(f"http://127.0.0.1:{model.port}/v1"))
        self.settings = ["--config", 'model_provider="bench"']
        self.state = folder / "state"

    def run(self, session: str | None = None) -> subprocess.CompletedProcess:
        arguments = agent_arguments("test-model", "Review the change.", session)
        replace = {
            "/review-schema.json": str(GITHUB / "codex-review-schema.json"),
            'sqlite_home="/codex-state"': f'sqlite_home="{self.state}"',
        }
        arguments = [replace.get(a, a) for a in arguments]
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "CODEX_HOME": str(self.home),
            "NO_PROXY": "*",
        }
        done = subprocess.run(
            [str(CODEX), *self.settings, *arguments],
            cwd=self.tree,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=120,
        )
        self.events.write_bytes(done.stdout)
        return done


def test_structured_output_and_resume(tmp_path: Path, model: Model) -> None:  # R89 R159
    agent = Agent(tmp_path, model)
    done = agent.run()
    assert done.returncode == 0, done.stderr.decode()
    session = extract_session(str(agent.events), str(agent.result))
    assert load_review(str(agent.result)) == REVIEW
    request = next(r for r in model.requests if r.address.endswith("/responses")).body
    schema = json.loads((GITHUB / "codex-review-schema.json").read_text())
    assert request["text"]["format"]["schema"] == schema and request["text"]["format"]["type"] == "json_schema"
    model.requests.clear()
    done = agent.run(session)
    assert done.returncode == 0, done.stderr.decode()
    assert extract_session(str(agent.events), str(agent.result)) == session
    request = next(r for r in model.requests if r.address.endswith("/responses")).body
    assert "Read the diff." in json.dumps(request["input"])  # the earlier turn came back
    assert request["text"]["format"]["schema"] == schema


def test_an_answer_against_the_schema_is_refused_by_us(tmp_path: Path, model: Model) -> None:
    model.script = ["Looks good to me!"]
    agent = Agent(tmp_path, model)
    assert agent.run().returncode == 0
    with pytest.raises(ValueError):
        extract_session(str(agent.events), str(agent.result))


def test_a_failing_model_is_no_result(tmp_path: Path, model: Model) -> None:
    model.status = 400
    agent = Agent(tmp_path, model)
    assert agent.run().returncode != 0
    with pytest.raises(ValueError):
        extract_session(str(agent.events), str(agent.result))


def test_the_image_configuration_is_accepted(tmp_path: Path, model: Model) -> None:
    agent = Agent(tmp_path, model)
    config = agent.home / "config.toml"
    config.write_text((GITHUB / "codex-review" / "codex-config.toml").read_text() + "\n" + config.read_text())
    if b"--strict-config" in subprocess.run([str(CODEX), "--help"], capture_output=True).stdout:
        agent.settings.append("--strict-config")
    done = agent.run()
    assert done.returncode == 0, done.stderr.decode()


# R148-R151: the job as it stands, with the real agent
def test_maintenance_with_the_real_agent(tmp_path: Path) -> None:
    home = tmp_path / "home" / ".codex-ci"
    home.mkdir(parents=True)
    credential = login()
    (home / "auth.json").write_text(json.dumps(credential))
    (home / "auth.json").chmod(0o600)
    (home / "config.toml").write_text(
        'model_provider = "bench"\n' + Model.settings("http://model.bench/v1", login=True)
    )
    programs = {str(Path(shutil.which(name) or "").parent) for name in ("codex", "node")}
    with Model(["ready"]) as model:
        replaced = {
            "127.0.0.1:7895": f"127.0.0.1:{model.port}",
            "PATH=/usr/local/bin": f"PATH={':'.join(programs)}:/usr/local/bin",
        }
        run = Run(
            FakeGitHub(),
            tmp_path,
            "schedule",
            {"schedule": "17 3 * * 1"},
            variables={"CODEX_REVIEW_ENABLED": "true"},
            environment={"PATH": os.environ["PATH"]},
            replaced=replaced,
        ).play()
        asked = [request for request in model.requests if request.address.endswith("/responses")]
    assert run.ran() == {"auth-maintenance": "success"} and "the agent answered" in run.log, run.log
    assert asked[0].headers["authorization"] == f"Bearer {credential['tokens']['access_token']}"
    assert "single word" in json.dumps(asked[0].body["input"])
    kept = json.loads((home / "auth.json").read_text())
    assert kept["tokens"]["refresh_token"] == credential["tokens"]["refresh_token"]
    assert (home / "auth.json").stat().st_mode & 0o777 == 0o600 and not (home / "auth.json.backup").exists()
    assert not [value for value in credential["tokens"].values() if value in run.log]
