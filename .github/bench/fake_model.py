"""A model server on loopback for the real agent: plays a script of tool calls and answers, remembers every request.

It also stands in for the host's outgoing proxy: requests with a whole address are answered the same way, tunnels are
refused and noted, so nothing leaves the machine.
"""

from __future__ import annotations

import base64
import json
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple


class Command(NamedTuple):
    """The model wants a shell command run."""

    text: str


class Request(NamedTuple):
    """One request of the agent; header names are lower case."""

    address: str
    headers: dict
    body: Any


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    model: Model

    def do_POST(self) -> None:
        body = self._body()
        try:
            self._answer(
                *self.model.respond(
                    Request(self.path, {k.lower(): v for k, v in self.headers.items()}, json.loads(body))
                )
            )
        except ValueError:
            self._answer(400, b"")

    def do_GET(self) -> None:
        self._answer(404, b"")

    def do_CONNECT(self) -> None:
        self.model.refused.append(self.path)
        self._answer(403, b"")

    def _body(self) -> bytes:
        if "chunked" not in self.headers.get("Transfer-Encoding", ""):
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        pieces = []
        while True:
            size = int(self.rfile.readline().split(b";")[0], 16)
            pieces.append(self.rfile.read(size))
            self.rfile.readline()
            if not size:
                return b"".join(pieces)

    def _answer(self, status: int, data: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *arguments: Any) -> None:
        """Quiet: the request log is `Model.requests`."""


class Model:
    """Context manager: the server. `script` holds a Command or a final text per request; its last entry repeats."""

    def __init__(self, script: list) -> None:
        self.script = list(script)
        self.requests: list[Request] = []
        self.refused: list[str] = []
        #: What the observer raised.
        self.failures: list[Exception] = []
        self.status = 200
        #: Called with each request before it is answered.
        self.observer: Callable[[Request], None] = lambda request: None
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"model": self}))
        self.server.daemon_threads = True

    def __enter__(self) -> Model:
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        return self

    def __exit__(self, *_: Any) -> None:
        self.server.shutdown()
        self.server.server_close()

    @property
    def port(self) -> int:
        """Where it listens on 127.0.0.1."""
        return self.server.server_address[1]

    @staticmethod
    def settings(address: str, *, login: bool = False) -> str:
        """Agent configuration that names a model server at this address."""
        return (
            f'[model_providers.bench]\nname = "bench"\nbase_url = "{address}"\nwire_api = "responses"\n'
            f"requires_openai_auth = {str(login).lower()}\nrequest_max_retries = 0\nstream_max_retries = 0\n"
        )

    def respond(self, request: Request) -> tuple[int, bytes]:
        """(status, event stream) for the next step of the script."""
        self.requests.append(request)
        try:
            self.observer(request)
        except Exception as error:
            self.failures.append(error)
            return 400, b""
        if self.status != 200:
            return self.status, b""
        step = self.script.pop(0) if len(self.script) > 1 else self.script[0]
        number = len(self.requests)
        if isinstance(step, Command):
            item: dict = {
                "type": "function_call",
                "id": f"fc_{number}",
                "call_id": f"call_{number}",
                "name": "exec_command",
                "arguments": json.dumps({"cmd": step.text, "yield_time_ms": 20000}),
            }
        else:
            content = [{"type": "output_text", "text": step, "annotations": []}]
            item = {"type": "message", "role": "assistant", "id": f"msg_{number}", "content": content}
        usage = {
            "input_tokens": 1,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": 1,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": 2,
        }
        item["status"] = "completed"
        response = {"id": f"resp_{number}", "output": [item], "usage": usage}
        events = [
            {"type": "response.created", "response": {"id": response["id"]}},
            {"type": "response.output_item.done", "output_index": 0, "item": item},
            {"type": "response.completed", "response": response},
        ]
        return 200, "".join(f"event: {e['type']}\ndata: {json.dumps(e)}\n\n" for e in events).encode()


def _token(claims: dict) -> str:
    """An unsigned login token."""
    parts = [base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in ({}, claims)]
    return ".".join([*parts, "c2lnbmF0dXJl"])


def login() -> dict:
    """A credential of the agent that needs no renewal and is worth nothing anywhere."""
    account = {"chatgpt_account_id": "account-0123456789", "chatgpt_plan_type": "pro"}
    claims = {"exp": int(time.time()) + 86400, "email": "a@example.org", "https://api.openai.com/auth": account}
    tokens = {
        "id_token": _token({**claims, "use": "id"}),
        "access_token": _token({**claims, "use": "access"}),
        "refresh_token": "refresh-0123456789abcdef-0123456789",
        "account_id": account["chatgpt_account_id"],
    }
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    return {"auth_mode": "chatgpt", "OPENAI_API_KEY": None, "tokens": tokens, "last_refresh": now}
