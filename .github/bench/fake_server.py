"""Puts the fake hosting API behind a loopback HTTP server, which the real client can also use as its proxy."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit

from fake_github import Dropped, FakeGitHub


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    host: FakeGitHub

    def _body(self) -> bytes:
        """The request body; the real client sends what it reads from stdin in chunks."""
        if "chunked" not in self.headers.get("Transfer-Encoding", ""):
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        pieces = []
        while True:
            size = int(self.rfile.readline().split(b";")[0], 16)
            pieces.append(self.rfile.read(size))
            self.rfile.readline()
            if not size:
                return b"".join(pieces)

    def _respond(self) -> None:
        body = self._body()
        # A proxied request carries the whole address; only its path and query matter here.
        parts = urlsplit(self.path)
        target = unquote(parts.path) + (f"?{parts.query}" if parts.query else "")
        try:
            status, headers, data = self.host.handle(self.command, target, dict(self.headers), body)
        except Dropped:
            self.close_connection = True
            return
        self.send_response(status)
        headers.setdefault("Content-Type", "application/json; charset=utf-8")
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_POST = do_PUT = do_DELETE = do_PATCH = _respond

    def log_message(self, *arguments: Any) -> None:
        """Quiet: the request log is `FakeGitHub.log`."""


class serve:
    """Context manager: the fake behind a loopback server, also usable as an HTTP proxy; yields its address."""

    def __init__(self, host: FakeGitHub) -> None:
        handler = type("Handler", (_Handler,), {"host": host})
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.server.daemon_threads = True

    def __enter__(self) -> str:
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        return f"http://127.0.0.1:{self.server.server_address[1]}"

    def __exit__(self, *_: Any) -> None:
        self.server.shutdown()
        self.server.server_close()
