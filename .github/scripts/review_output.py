"""The agent's result: strict validation of the review file and extraction of result and session id from the events.

The validator is independent of the schema handed to the agent and never trusts that the schema was enforced.
"""

from __future__ import annotations

import json
import os
import re
import stat
from typing import Any

from codex_review_common import REVIEW_LIMIT

VERDICTS = ("pass", "findings", "incomplete")
SESSION_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
#: Results of older runs have neither or only the first of the two optional keys.
_FINDING_KEYS = (
    {"title", "body"},
    {"title", "body", "location"},
    {"title", "body", "location", "existing_comment_id"},
)


def parse_strict(text: str) -> Any:
    """JSON without duplicate keys, NaN or infinities; ValueError also for bottomless nesting."""

    def unique(pairs: list) -> dict:
        keys = [key for key, _ in pairs]
        if len(set(keys)) != len(keys):
            raise ValueError(f"duplicate key in JSON: {next(k for k in keys if keys.count(k) > 1)!r}")
        return dict(pairs)

    def constant(name: str) -> Any:
        raise ValueError(f"{name} is not JSON")

    try:
        return json.loads(text, object_pairs_hook=unique, parse_constant=constant)
    except RecursionError:
        raise ValueError("JSON is nested too deeply") from None


def read_regular(path: str, limit: int) -> bytes:
    """Bytes of a regular file of 1 to `limit` bytes; ValueError for links, other kinds, empty or larger files."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        raise ValueError(f"cannot open {path} as a regular file: {error.strerror}") from None
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise ValueError(f"{path} is not a regular file")
        data = file.read(limit + 1)
    if not data:
        raise ValueError(f"{path} is empty")
    if len(data) > limit:
        raise ValueError(f"{path} is larger than {limit} bytes")
    return data


def load_review(path: str) -> dict:
    """The validated review in the file; ValueError saying what is wrong."""
    try:
        text = read_regular(str(path), REVIEW_LIMIT).decode("utf-8")
    except UnicodeDecodeError:
        raise ValueError("review is not valid UTF-8") from None
    return validate_review(parse_strict(text))


def validate_review(review: Any) -> dict:
    """`review` unchanged if it is a consistent review, else ValueError. A bad location is no reason to reject."""
    if not isinstance(review, dict) or set(review) != {"verdict", "summary", "findings"}:
        raise ValueError("review must be an object with exactly the keys verdict, summary, findings")
    verdict = review["verdict"]
    if not isinstance(verdict, str) or verdict not in VERDICTS:
        raise ValueError(f"unknown verdict {verdict!r}; expected one of {', '.join(VERDICTS)}")
    _text(review["summary"], "summary")
    findings = review["findings"]
    if not isinstance(findings, list):
        raise ValueError("findings must be a list")
    for number, finding in enumerate(findings, 1):
        if not isinstance(finding, dict) or set(finding) not in _FINDING_KEYS:
            raise ValueError(f"finding {number}: unexpected keys")
        _text(finding["title"], f"title of finding {number}")
        _text(finding["body"], f"body of finding {number}")
        cited = finding.get("existing_comment_id")
        if cited is not None and (isinstance(cited, bool) or not isinstance(cited, int) or cited <= 0):
            raise ValueError(f"finding {number}: existing comment ID must be null or a positive integer, got {cited!r}")
    if verdict == "pass" and findings:
        raise ValueError("verdict pass contradicts the reported findings")
    if verdict == "findings" and not findings:
        raise ValueError("verdict findings without any finding")
    return review


def _text(value: Any, what: str) -> None:
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"{what} must be a non-blank string")


def valid_session_id(value: Any) -> bool:
    """Is this a whole lower-case UUID? Only such text may ever reach a command line."""
    return isinstance(value, str) and SESSION_ID.fullmatch(value) is not None


def parse_events(data: bytes) -> tuple[str, str]:
    """(session id, final answer) of one agent run from its JSONL events; ValueError unless it completed cleanly."""
    sessions: list = []
    answer = None
    completed = False
    for number, line in enumerate(data.split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            event = parse_strict(line.decode("utf-8"))
        except ValueError as error:
            raise ValueError(f"event {number} is not valid JSON: {type(error).__name__}") from None
        if not isinstance(event, dict):
            raise ValueError(f"event {number} is not an object")
        kind = event.get("type")
        if kind == "thread.started":
            sessions.append(event.get("thread_id"))
        elif kind == "turn.completed":
            completed = True
        elif kind in ("turn.failed", "error"):
            raise ValueError(f"the agent reported {kind}")
        elif kind == "item.completed":
            item = event.get("item")
            # Tool output is never the answer.
            if isinstance(item, dict) and item.get("type") == "agent_message":
                answer = item.get("text")
    if len(sessions) != 1 or not valid_session_id(sessions[0]):
        raise ValueError("expected exactly one session with a valid id")
    if not completed:
        raise ValueError("the agent's turn was not completed")
    if not isinstance(answer, str):
        raise ValueError("the agent gave no final answer")
    return sessions[0], answer


def extract_session(events: str, output: str) -> str:
    """Write the final answer of the event file to `output`, check that it is a review, return the session id."""
    with open(events, "rb") as file:
        session, answer = parse_events(file.read())
    data = answer.encode("utf-8", "surrogatepass")
    descriptor = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
    load_review(output)
    return session
