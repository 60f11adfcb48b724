"""Connects the review scripts to the fake host inside one process: fast, deterministic, no client program."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from codex_review_common import ApiError, Response
from fake_github import Dropped, FakeGitHub


def sender(host: FakeGitHub) -> Callable[..., Response]:
    """A replacement for `codex_review_common.send` with the same contract, token from GH_TOKEN unless given."""

    def send(method: str, endpoint: str, payload: Any = None, token: str | None = None) -> Response:
        body = b"" if payload is None else json.dumps(payload).encode()
        headers = {"Authorization": f"token {token or os.environ.get('GH_TOKEN', '')}"}
        target = "/" + endpoint
        for _ in range(3):
            try:
                status, answer, data = host.handle(method, target, headers, body)
            except Dropped:
                raise ApiError(f"{method} {endpoint}", None, "connection closed") from None
            if status != 302:
                return Response(status, {name.lower(): value for name, value in answer.items()}, data)
            target = urlsplit(answer["Location"]).path
        raise ApiError(f"{method} {endpoint}", None, "too many redirects")

    return send
