"""Stands in for the ``gh`` client on PATH: the part of ``gh api`` that the scripts use, against FAKE_GITHUB_URL.

Exit 1 with the body on stdout and ``gh: MESSAGE (HTTP STATUS)`` on stderr for an error answer, 2 for unknown flags,
4 without a token.
"""

from __future__ import annotations

import http.client
import json
import os
import sys
from urllib.parse import urlsplit


def main() -> int:
    """Command line."""
    arguments = sys.argv[1:]
    if not arguments or arguments.pop(0) != "api":
        return 2
    method, include, stdin, endpoint = "GET", False, None, None
    while arguments:
        argument = arguments.pop(0)
        if argument == "--method":
            method = arguments.pop(0)
        elif argument == "--include":
            include = True
        elif argument == "--input" and arguments.pop(0) == "-":
            stdin = sys.stdin.buffer.read()
        elif argument.startswith("-") or endpoint is not None:
            print(f"unknown flag: {argument}", file=sys.stderr)
            return 2
        else:
            endpoint = argument
    token = os.environ.get("GH_TOKEN")
    if not token:
        print("gh: set the GH_TOKEN environment variable", file=sys.stderr)
        return 4
    if endpoint is None:
        return 2
    address = urlsplit(os.environ["FAKE_GITHUB_URL"])
    target = "/" + endpoint
    for _ in range(4):
        connection = http.client.HTTPConnection(str(address.hostname), int(address.port or 80), timeout=60)
        try:
            connection.request(method, target, body=stdin, headers={"Authorization": f"token {token}"})
            answer = connection.getresponse()
            data = answer.read()
        except (OSError, http.client.HTTPException) as error:
            print(f"error connecting: {error!r}", file=sys.stderr)
            return 1
        if answer.status != 302:
            break
        target = urlsplit(str(answer.getheader("Location"))).path
    if include:
        lines = [f"HTTP/1.1 {answer.status} {answer.reason}"] + [f"{k}: {v}" for k, v in answer.getheaders()]
        sys.stdout.buffer.write(("\r\n".join(lines) + "\r\n\r\n").encode("latin-1"))
    sys.stdout.buffer.write(data)
    if answer.status >= 400:
        try:
            message = json.loads(data.decode("utf-8")).get("message")
        except ValueError:
            message = "error"
        print(f"gh: {message} (HTTP {answer.status})", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
