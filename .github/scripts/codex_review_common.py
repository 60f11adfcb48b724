"""What the review scripts share: constants, checked identifiers, the one way to call the hosting API, step summary."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from typing import Any, NamedTuple

COMMAND = "@pypto-codex review"
MARKER = "<!-- pypto-codex-review -->"
BOT_LOGIN = "github-actions[bot]"
BASE_BRANCH = "main"
WORKFLOW_PATH = ".github/workflows/codex-review.yml"
REVIEW_LIMIT = 60000
SNAPSHOT_LIMIT = 8 * 1024 * 1024
INLINE_LIMIT = 100
RERUN_TOKEN_VARIABLE = "CODEX_REVIEW_RERUN_TOKEN"

#: A read that failed for a passing reason is tried this often, waiting at most this long in total.
READ_TRIES = 3
READ_WAIT_LIMIT = 55.0
#: The longest one call of the client may take.
CALL_TIMEOUT = 120


class Response(NamedTuple):
    """One HTTP answer; header names are lower case."""

    status: int
    headers: dict[str, str]
    body: bytes


class ApiError(subprocess.CalledProcessError):
    """A refused or failed API call. ``status`` is None when no HTTP answer arrived, so the outcome is unknown."""

    def __init__(self, request: str, status: int | None, message: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(1, request, stderr=message)
        self.status = status
        self.message = message
        self.headers = headers or {}

    def __str__(self) -> str:
        status = "no answer" if self.status is None else f"HTTP {self.status}"
        return f"{self.cmd}: {self.message} ({status})"


def repository_name(value: object) -> str:
    """``owner/name``, or ValueError."""
    if not isinstance(value, str) or not re.fullmatch(r"[A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+", value):
        raise ValueError(f"invalid repository name: {value!r}; expected OWNER/NAME")
    return value


def positive_number(value: object, what: str) -> int:
    """A number written in plain digits or given as an integer, or ValueError naming `what`."""
    if isinstance(value, bool) or not isinstance(value, (int, str)) or not re.fullmatch(r"[1-9][0-9]*", str(value)):
        raise ValueError(f"invalid {what}: {value!r}; expected a positive decimal number")
    return int(value)


def commit_sha(value: object, what: str) -> str:
    """A full lower-case commit SHA, or ValueError naming `what`."""
    if not isinstance(value, str) or not re.fullmatch(r"[0-9a-f]{40}", value):
        raise ValueError(f"invalid {what}: {value!r}; expected 40 lower-case hexadecimal digits")
    return value


def pull_request_endpoint(repo: object, number: object) -> str:
    """REST path of a pull request; ValueError for a malformed repository or number."""
    return f"repos/{repository_name(repo)}/pulls/{positive_number(number, 'pull request number')}"


def as_object(value: Any, what: str) -> dict:
    """`value` if it is a JSON object, or ValueError: API answers are trusted only after a shape check."""
    if not isinstance(value, dict):
        raise ValueError(f"{what}: expected an object, got {type(value).__name__}")
    return value


def as_list(value: Any, what: str) -> list:
    """`value` if it is a JSON array, or ValueError."""
    if not isinstance(value, list):
        raise ValueError(f"{what}: expected a list, got {type(value).__name__}")
    return value


def login(owner: Any) -> str | None:
    """Login of a user object; None for a deleted account or an unexpected shape."""
    name = owner.get("login") if isinstance(owner, dict) else None
    return name if isinstance(name, str) else None


def by_this_workflow(entry: Any) -> bool:
    """Was this review or comment posted by the publisher? Needs the bot's login and the marker as first bytes."""
    if not isinstance(entry, dict):
        return False
    body = entry.get("body")
    return login(entry.get("user")) == BOT_LOGIN and isinstance(body, str) and body.startswith(MARKER)


def send(method: str, endpoint: str, payload: Any = None, token: str | None = None) -> Response:
    """One HTTP exchange through ``gh api``; bodies travel on stdin. ApiError when no HTTP answer arrived.

    The status line printed by ``--include`` is the only source of the status: error texts may contain any number.
    """
    command = ["gh", "api", "--include", "--method", method, endpoint]
    stdin = b""
    if payload is not None:
        command += ["--input", "-"]
        stdin = encode_json(payload)
    environment = dict(os.environ)
    # The dedicated re-run credential reaches a call only when it was chosen for that call.
    environment.pop(RERUN_TOKEN_VARIABLE, None)
    if token is not None:
        environment["GH_TOKEN"] = token
    try:
        # A session of its own: the runner's interrupt must not kill a request whose outcome has to be known.
        done = subprocess.run(
            command, input=stdin, capture_output=True, env=environment, timeout=CALL_TIMEOUT, start_new_session=True
        )
    except subprocess.TimeoutExpired:
        raise ApiError(f"{method} {endpoint}", None, f"no answer within {CALL_TIMEOUT} s") from None
    response = parse_response(done.stdout)
    if response is None:
        message = done.stderr.decode("utf-8", "replace").strip() or f"gh exited with {done.returncode}"
        raise ApiError(f"{method} {endpoint}", None, message)
    if done.returncode and response.status < 400:
        raise ApiError(f"{method} {endpoint}", None, done.stderr.decode("utf-8", "replace").strip() or "broken answer")
    return response


def tokenless_environment() -> dict:
    """This process's environment without any token, for programs that need none: nothing is passed on by accident."""
    secret = ("GH_TOKEN", "GITHUB_TOKEN", RERUN_TOKEN_VARIABLE)
    return {k: v for k, v in os.environ.items() if k not in secret and not k.startswith("ACTIONS_")}


def parse_response(raw: bytes) -> Response | None:
    """Status line, headers and body as ``gh api --include`` prints them; None when there is no status line."""
    head, separator, body = raw.partition(b"\r\n\r\n")
    lines = head.decode("latin-1").replace("\r\n", "\n").split("\n")
    match = re.match(r"HTTP/[0-9.]+ ([0-9]{3})\b", lines[0])
    if not match or not separator:
        return None
    headers = {}
    for line in lines[1:]:
        name, colon, value = line.partition(":")
        if colon:
            headers[name.strip().lower()] = value.strip()
    return Response(int(match.group(1)), headers, body)


def encode_json(value: Any) -> bytes:
    """UTF-8 JSON with readable text; lone surrogates, which UTF-8 cannot carry, are written as escapes."""
    try:
        return json.dumps(value, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        return json.dumps(value).encode("ascii")


def checked(method: str, endpoint: str, response: Response) -> Response:
    """The response if it is a success, else ApiError with the API's own message."""
    if 200 <= response.status < 300:
        return response
    try:
        message = json.loads(response.body.decode("utf-8")).get("message")
    except (ValueError, AttributeError):
        message = None
    raise ApiError(f"{method} {endpoint}", response.status, str(message or "request failed"), response.headers)


def retry_delay(error: ApiError, attempt: int) -> float | None:
    """Seconds until a failed *read* is worth another try, or None when trying again is pointless."""
    if error.status in (502, 503, 504):
        return float(2**attempt)
    if error.status in (403, 429):
        wait = error.headers.get("retry-after", "")
        if re.fullmatch(r"[0-9]+", wait):
            return float(wait)
        if error.headers.get("x-ratelimit-remaining") == "0":
            reset = error.headers.get("x-ratelimit-reset", "")
            return max(0.0, float(reset) - now()) if re.fullmatch(r"[0-9]+", reset) else float(2**attempt)
    return None


def now() -> float:
    """Seconds since the epoch; a name of its own so that tests can hold the clock."""
    return time.time()


def pause(seconds: float) -> None:
    """Sleep; a name of its own so that tests need not wait."""
    time.sleep(seconds)


def read(endpoint: str, token: str | None = None) -> Response:
    """GET with the bounded retries allowed for reads."""
    return _patiently("GET", endpoint, None, token)


def _patiently(method: str, endpoint: str, payload: Any, token: str | None) -> Response:
    waited = 0.0
    for attempt in range(READ_TRIES):
        try:
            return checked(method, endpoint, send(method, endpoint, payload, token))
        except ApiError as error:
            delay = retry_delay(error, attempt)
            if delay is None or attempt == READ_TRIES - 1 or waited + delay > READ_WAIT_LIMIT:
                raise
            waited += delay
            pause(delay)
    raise AssertionError("internal error: the last try either returns or raises")


def github_api(
    endpoint: str, payload: Any = None, *, paginate: bool = False, method: str | None = None, token: str | None = None
) -> Any:
    """Call the API and return the parsed JSON (None for an empty body).

    Without a payload this is a GET, with one a POST unless `method` says otherwise. `paginate` follows the ``Link``
    header to the end and concatenates the lists of all pages; a page that is no list is a ValueError. Reads (GET and
    GraphQL) are repeated after passing failures, writes never are.
    Errors: ApiError (a CalledProcessError), json.JSONDecodeError, OSError.
    """
    verb = method or ("GET" if payload is None else "POST")
    if not paginate:
        if verb == "GET" or endpoint == "graphql":
            response = _patiently(verb, endpoint, payload, token)
        else:
            response = checked(verb, endpoint, send(verb, endpoint, payload, token))
        return parse_json(response.body)
    collected: list = []
    separator = "&" if "?" in endpoint else "?"
    number = 1
    while True:
        page = _patiently("GET", f"{endpoint}{separator}page={number}", None, token)
        collected += as_list(parse_json(page.body), f"page {number} of {endpoint}")
        following = next_page(page.headers.get("link", ""))
        if following is None:
            return collected
        if following != number + 1:
            raise ValueError(f"{endpoint}: page {number} is followed by page {following}")
        number = following


def parse_json(body: bytes) -> Any:
    """JSON of an answer; None when the body is empty."""
    text = body.decode("utf-8")
    return json.loads(text) if text.strip() else None


def next_page(link: str) -> int | None:
    """Page number of ``rel="next"`` in a Link header, None on the last page."""
    for part in link.split(","):
        match = re.fullmatch(r"\s*<([^>]*)>\s*;(.*)", part)
        if match and re.search(r'\brel="next"', match.group(2)):
            page = re.search(r"[?&]page=([0-9]+)(?:&|$)", match.group(1))
            if page:
                return int(page.group(1))
            raise ValueError(f"unreadable Link header: {link!r}")
    return None


def http_status(error: BaseException) -> int | None:
    """HTTP status of a failed call, or None when there was no answer."""
    status = getattr(error, "status", None)
    return status if isinstance(status, int) else None


def graphql(query: str, variables: dict) -> dict:
    """``data`` of a GraphQL answer; ValueError when the answer carries errors or has no data."""
    answer = as_object(github_api("graphql", {"query": query, "variables": variables}), "GraphQL answer")
    if answer.get("errors"):
        raise ValueError(f"GraphQL errors: {json.dumps(answer['errors'])[:500]}")
    return as_object(answer.get("data"), "GraphQL data")


def pull_request_is(pull: dict, head: str, base_ref: str) -> bool:
    """Is this live pull request still open, ready and at exactly this head and base branch?"""
    return (
        pull.get("state") == "open"
        and pull.get("draft") is False
        and as_object(pull.get("head"), "pull request head").get("sha") == head
        and as_object(pull.get("base"), "pull request base").get("ref") == base_ref
    )


def report(text: str) -> None:
    """Print a line and append it to the step summary, when there is one."""
    print(text, flush=True)
    path = os.environ.get("GITHUB_STEP_SUMMARY")
    if path:
        with open(path, "a", encoding="utf-8") as summary:
            summary.write(text + "\n")


def run_main(main: Any) -> None:
    """Exit with main's code; 1 with one readable line for an expected failure."""
    try:
        sys.exit(main())
    except (ValueError, OSError, subprocess.SubprocessError) as error:
        detail = "" if isinstance(error, ApiError) else str(getattr(error, "stderr", None) or "").strip()
        print(f"error: {error}" + (f"\n{detail}" if detail else ""), file=sys.stderr)
        sys.exit(1)
