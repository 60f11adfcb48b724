"""The real agent program offline: schema and resume against a loopback model, its events through our extraction."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from places import GITHUB
from review_container import agent_arguments
from review_output import extract_session, load_review

CODEX = shutil.which("codex")
pytestmark = pytest.mark.skipif(
    CODEX is None, reason="codex is missing: npm install -g @openai/codex (or .github/tests/install.sh)"
)
REVIEW = {"verdict": "pass", "summary": "Read the diff.", "findings": []}


class Model:
    """A model server that answers every request with one message and remembers what it was asked."""

    def __init__(self) -> None:
        self.requests: list = []
        self.answer = json.dumps(REVIEW)
        self.status = 200
        model = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                model.requests.append((self.path, json.loads(body)))
                if model.status != 200:
                    self.send_response(model.status)
                    self.send_header("Content-Length", "0")
                    self.end_headers()
                    return
                item = {
                    "type": "message",
                    "role": "assistant",
                    "id": "msg_1",
                    "status": "completed",
                    "content": [{"type": "output_text", "text": model.answer, "annotations": []}],
                }
                usage = {
                    "input_tokens": 1,
                    "input_tokens_details": {"cached_tokens": 0},
                    "output_tokens": 1,
                    "output_tokens_details": {"reasoning_tokens": 0},
                    "total_tokens": 2,
                }
                events = [
                    {"type": "response.created", "response": {"id": "resp_1"}},
                    {"type": "response.output_item.done", "output_index": 0, "item": item},
                    {"type": "response.completed", "response": {"id": "resp_1", "output": [item], "usage": usage}},
                ]
                data = "".join(f"event: {e['type']}\ndata: {json.dumps(e)}\n\n" for e in events).encode()
                self.send_response(200)
                self.send_header("Content-Type", "text/event-stream")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def do_GET(self) -> None:
                self.send_response(404)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *arguments: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_address[1]}/v1"


@pytest.fixture
def model():
    server = Model()
    yield server
    server.server.shutdown()
    server.server.server_close()


class Agent:
    """The agent with the command line of the review container, in a home and a work tree of its own."""

    def __init__(self, folder: Path, model: Model) -> None:
        self.home, self.tree = folder / "home", folder / "tree"
        self.events = folder / "events.jsonl"
        self.result = folder / "codex-review.json"
        for each in (self.home, self.tree, folder / "state"):
            each.mkdir()
        subprocess.run(["git", "init", "-q", str(self.tree)], check=True)
        options = f'name="bench",base_url="{model.url}",wire_api="responses",requires_openai_auth=false'
        provider = f"model_providers.bench={{{options}}}"
        self.settings = ["--config", 'model_provider="bench"', "--config", provider]
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
    _, request = next(r for r in model.requests if r[0].endswith("/responses"))
    schema = json.loads((GITHUB / "codex-review-schema.json").read_text())
    assert request["text"]["format"]["schema"] == schema and request["text"]["format"]["type"] == "json_schema"
    model.requests.clear()
    done = agent.run(session)
    assert done.returncode == 0, done.stderr.decode()
    assert extract_session(str(agent.events), str(agent.result)) == session
    _, request = next(r for r in model.requests if r[0].endswith("/responses"))
    assert "Read the diff." in json.dumps(request["input"])  # the earlier turn came back
    assert request["text"]["format"]["schema"] == schema


def test_an_answer_against_the_schema_is_refused_by_us(tmp_path: Path, model: Model) -> None:
    model.answer = "Looks good to me!"
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
    shutil.copy(GITHUB / "codex-review" / "codex-config.toml", agent.home / "config.toml")
    if b"--strict-config" in subprocess.run([str(CODEX), "--help"], capture_output=True).stdout:
        agent.settings.append("--strict-config")
    done = agent.run()
    assert done.returncode == 0, done.stderr.decode()
