"""A hosting API in memory: state, permissions, pagination, review rules, rate limits and fault injection, no network.

`FakeGitHub.handle` answers one request; fake_server puts it behind a loopback HTTP server. Everything that the review
scripts may call is here and nothing else: any other request is answered with 404 and noted in `unexpected`.
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
import re
import subprocess
import threading
import time
import zipfile
from collections.abc import Callable
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

BOT = "github-actions[bot]"
HEAD, BASE, MERGE_BASE = "a" * 40, "b" * 40, "d" * 40
WRITE_BODY_LIMIT = 65536


class Token(NamedTuple):
    """Who calls, and what the token may do: permission name to ``read`` or ``write``."""

    label: str
    login: str
    permissions: dict


class Rule:
    """One planned disturbance: at the `nth` request matching method and path, answer something else or change state.

    `apply` performs the request before the disturbed answer goes out, as when a gateway times out after the work is
    done. `times` repeats the disturbance for that many requests from the nth on.
    """

    def __init__(
        self,
        method: str,
        path: str,
        nth: int = 1,
        *,
        times: int = 1,
        status: int | None = None,
        body: Any = None,
        headers: dict | None = None,
        raw: bytes | None = None,
        drop: bool = False,
        apply: bool = False,
        mutate: Callable | None = None,
        after: Callable | None = None,
    ) -> None:
        self.method, self.path, self.nth, self.times = method, re.compile(path), nth, times
        self.status, self.body, self.headers, self.raw = status, body, headers or {}, raw
        self.drop, self.apply, self.mutate, self.after = drop, apply, mutate, after
        self.seen = 0

    def fires(self, method: str, path: str) -> bool:
        """Count a matching request and say whether this one is disturbed."""
        if method != self.method or not self.path.search(path):
            return False
        self.seen += 1
        return self.nth <= self.seen < self.nth + self.times


class Dropped(Exception):
    """The connection is closed without an answer."""


class Refused(Exception):
    """An error answer of the API."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status, self.message = status, message


READ_ALL = {"pull-requests": "read", "contents": "read", "issues": "read", "actions": "read", "checks": "read"}


class FakeGitHub:
    """State of one repository and the answers to requests about it."""

    def __init__(self, repo: str = "owner/repo", repository_id: int = 4711) -> None:
        self.repo, self.repository_id = repo, repository_id
        self.pulls: dict = {}
        self.files: dict = {}
        self.issue_comments: dict = {}
        self.reviews: dict = {}
        self.review_comments: dict = {}
        self.threads: dict = {}
        self.close_events: dict = {}
        self.contexts: dict = {}
        self.collaborators: dict = {}
        self.runs: dict = {}
        self.artifacts: dict = {}
        self.merge_bases: dict = {}
        #: A repository that answers comparisons instead of the tables.
        self.repository: str | None = None
        self.default_merge_base: str | None = MERGE_BASE
        self.actions_may_approve = True
        self.ids_as_text = True
        self.log: list = []
        self.unexpected: list = []
        self.rules: list = []
        self.next_id = 9007199254740993
        self.clock: Callable[[], float] = time.time
        self.lock = threading.RLock()
        self.tokens = {
            "publish-token": Token("publish", BOT, {"pull-requests": "write", "contents": "read", "actions": "read"}),
            "read-token": Token("read", BOT, dict(READ_ALL)),
            "rerun-token": Token("rerun", "maintainer", {"actions": "write"}),
        }

    # State -----------------------------------------------------------------------------------------------------

    def new_id(self) -> int:
        """A fresh id beyond the integers that floating point keeps exact."""
        self.next_id += 1
        return self.next_id

    def add_pull(self, number: int = 7, **changes: Any) -> dict:
        """A ready pull request on ``main`` with one ordinary changed file."""
        pull = {
            "number": number,
            "state": "open",
            "draft": False,
            "merged": False,
            "title": "Pad the rows",
            "body": "Rows are padded now.",
            "user": {"login": "contributor", "id": 1001, "type": "User"},
            "head": {"sha": HEAD, "ref": "topic", "repo": {"full_name": "fork/repo"}},
            "base": {"sha": BASE, "ref": "main", "repo": {"full_name": self.repo, "id": self.repository_id}},
        }
        pull.update(changes)
        self.pulls[number] = pull
        self.files.setdefault(
            number, [{"filename": "lib/copy.py", "status": "modified", "patch": "@@ -1,2 +1,2 @@\n-a\n+b\n c"}]
        )
        for table in (self.issue_comments, self.reviews, self.review_comments, self.threads, self.contexts):
            table.setdefault(number, [])
        self.close_events.setdefault(number, [])
        return pull

    def add_review(
        self, number: int = 7, login: str = BOT, state: str = "APPROVED", body: str = "", **more: Any
    ) -> dict:
        """A submitted review."""
        review = {
            "id": self.new_id(),
            "user": {"login": login, "type": "Bot" if login.endswith("[bot]") else "User"},
            "body": body,
            "state": state,
            "commit_id": self.pulls[number]["head"]["sha"],
            "submitted_at": "2026-01-01T00:00:00Z",
        }
        review.update(more)
        self.reviews[number].append(review)
        return review

    def add_run(
        self, run_id: int, number: int = 7, *, age_days: float = 1, artifact: dict | None = None, **more: Any
    ) -> dict:
        """A workflow run with its identity artifact (unless it uploaded one) and a check on the pull request's head."""
        created = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self.clock() - age_days * 86400))
        run = {
            "id": run_id,
            "status": "completed",
            "conclusion": "success",
            "event": "pull_request_target",
            "path": ".github/workflows/codex-review.yml",
            "repository": {"full_name": self.repo},
            "created_at": created,
            "run_attempt": 1,
            # Fork runs carry the base branch's values here: nothing may rely on them.
            "head_sha": "f" * 40,
            "head_branch": "main",
            "head_repository": {"full_name": self.repo},
            "pull_requests": [],
        }
        run.update(more)
        self.runs[run_id] = run
        pull = self.pulls[number]
        identity = {
            "repository": self.repo,
            "number": number,
            "head": pull["head"]["sha"],
            "base_ref": pull["base"]["ref"],
        }
        if not self.artifacts.get(run_id):
            self.add_artifact(run_id, f"codex-target-{run_id}-1", "review-target.json", artifact or identity)
        self.add_check(number, f"/{self.repo}/actions/runs/{run_id}")
        return run

    def add_check(self, number: int, resource_path: Any) -> None:
        """A check run of a workflow run on the newest commit."""
        suite = {"workflowRun": {"resourcePath": resource_path}}
        self.contexts[number].append({"__typename": "CheckRun", "checkSuite": suite})

    def add_artifact(self, run_id: int, name: str, file: str, content: Any, **more: Any) -> dict:
        """An uploaded artifact; `content` is JSON data or a ready archive."""
        data = content if isinstance(content, bytes) else zip_bytes({file: json.dumps(content).encode("utf-8")})
        artifact = {"id": self.new_id(), "name": name, "size_in_bytes": len(data), "expired": False}
        artifact.update(more)
        artifact["_data"] = data
        self.artifacts.setdefault(run_id, []).append(artifact)
        return artifact

    def add_thread(self, number: int, comments: list, **more: Any) -> dict:
        """An inline thread; each comment is {"login", "body"} and gets an id."""
        thread = {
            "id": f"PRRT_{self.new_id()}",
            "isResolved": False,
            "isOutdated": False,
            "path": "lib/copy.py",
            "line": 1,
            "originalLine": 1,
            "diffSide": "RIGHT",
            "resolvedBy": None,
        }
        thread.update(more)
        thread["_comments"] = []
        self.threads[number].append(thread)
        for comment in comments:
            self.add_thread_comment(number, thread, comment["login"], comment["body"])
        return thread

    def add_thread_comment(self, number: int, thread: dict, login: str | None, body: str, **more: Any) -> dict:
        """The next comment of a thread, as both APIs show it; a later one is a reply to the first."""
        identifier = self.new_id()
        nodes = thread["_comments"]
        head = self.pulls[number]["head"]["sha"]
        rest = {
            "id": identifier,
            "user": {"login": login} if login else None,
            "body": body,
            "path": thread["path"],
            "line": thread["line"],
            "original_line": thread["originalLine"],
            "side": thread["diffSide"],
            "original_commit_id": head,
            **more,
        }
        if nodes:
            rest["in_reply_to_id"] = nodes[0]["databaseId"]
        nodes.append(
            {
                "databaseId": identifier,
                "body": body,
                "url": f"https://github.com/{self.repo}/pull/{number}#discussion_r{identifier}",
                "createdAt": "2026-01-01T00:00:00Z",
                "updatedAt": "2026-01-01T00:00:00Z",
                # GraphQL names bots without the suffix that REST adds.
                "author": {"login": login.replace("[bot]", "")} if login else None,
                "replyTo": {"databaseId": nodes[0]["databaseId"]} if nodes else None,
                "commit": {"oid": head},
            }
        )
        self.review_comments[number].append(rest)
        return rest

    def close(self, number: int, merged: bool = False) -> None:
        """Close or merge."""
        self.pulls[number].update(state="closed", merged=merged)
        self.close_events[number].append(f"CE_{self.new_id()}")

    def standing_approvals(self, number: int = 7) -> list:
        """The bot's approvals in force."""
        return [r for r in self.reviews[number] if r["state"] == "APPROVED" and r["user"]["login"] == BOT]

    def requests(self, method: str | None = None, path: str = "") -> list:
        """Logged requests of a method whose path matches."""
        return [r for r in self.log if (method is None or r["method"] == method) and re.search(path, r["path"])]

    # Requests --------------------------------------------------------------------------------------------------

    def handle(self, method: str, target: str, headers: dict, body: bytes = b"") -> tuple:
        """(status, headers, body) of one request; Dropped when the connection breaks."""
        with self.lock:
            parts = urlsplit(target)
            path = "/" + parts.path.lstrip("/")
            query = {key: values[-1] for key, values in parse_qs(parts.query).items()}
            lowered = {key.lower(): value for key, value in headers.items()}
            token = self._token(lowered.get("authorization", ""))
            parsed = _json_or_none(body)
            label = token.label if token else None
            self.log.append({"method": method, "path": path, "query": query, "token": label, "body": parsed})
            rule = next((r for r in list(self.rules) if r.fires(method, path)), None)
            if rule and rule.mutate:
                rule.mutate(self)
            if rule and not rule.apply and (rule.drop or rule.status or rule.raw is not None):
                answer = None
            else:
                answer = self._answer(method, path, query, token, parsed, lowered)
            if rule and rule.after:
                rule.after(self)
            if rule and rule.drop:
                raise Dropped
            if rule and rule.status:
                return rule.status, dict(rule.headers), json.dumps(rule.body or {"message": "injected"}).encode()
            if rule and rule.raw is not None:
                return 200, {}, rule.raw
            assert answer is not None
            return answer

    def _token(self, authorization: str) -> Token | None:
        return self.tokens.get(re.sub(r"^(?:token|bearer)\s+", "", authorization, flags=re.I))

    def _answer(self, method: str, path: str, query: dict, token: Token | None, body: Any, headers: dict) -> tuple:
        try:
            if token is None:
                raise Refused(401, "Bad credentials")
            if path in ("/graphql", "/api/graphql"):
                return 200, {}, _encode(self._graphql(token, body))
            status, value, more = self._rest(method, path, query, token, body)
        except Refused as refused:
            return refused.status, {}, _encode({"message": refused.message})
        data = value if isinstance(value, bytes) else b"" if value is None else _encode(value)
        tag = f'"{hashlib.sha256(data).hexdigest()[:16]}"'
        if method == "GET" and headers.get("if-none-match") == tag:
            return 304, {"ETag": tag}, b""
        return status, {"ETag": tag, **more}, data

    def _need(self, token: Token, permission: str, level: str = "read") -> None:
        have = token.permissions.get(permission)
        if have != "write" and have != level:
            raise Refused(403, "Resource not accessible by integration")

    def _rest(self, method: str, path: str, query: dict, token: Token, body: Any) -> tuple:
        prefix = f"/repos/{self.repo}/"
        if not path.startswith(prefix):
            self.unexpected.append(f"{method} {path}")
            raise Refused(404, "Not Found")
        rest = path[len(prefix) :]
        for verb, pattern, handler in self._ROUTES:
            match = re.fullmatch(pattern, rest)
            if verb == method and match:
                return handler(self, query, token, body, *match.groups())
        self.unexpected.append(f"{method} {path}")
        raise Refused(404, "Not Found")

    def _pull(self, number: str) -> dict:
        if int(number) not in self.pulls:
            raise Refused(404, "Not Found")
        return self.pulls[int(number)]

    def _page(self, items: list, query: dict, path: str) -> tuple:
        size = min(100, int(query.get("per_page", 30)))
        page = int(query.get("page", 1))
        start = (page - 1) * size
        more = {}
        if start + size < len(items):
            last = -(-len(items) // size)
            url = f"http://api.github.localhost/repos/{self.repo}/{path}?per_page={size}&page="
            more = {"Link": f'<{url}{page + 1}>; rel="next", <{url}{last}>; rel="last"'}
        return 200, [_public(item) for item in items[start : start + size]], more

    def _get_pull(self, query: dict, token: Token, body: Any, number: str) -> tuple:
        self._need(token, "pull-requests")
        pull = self._pull(number)
        return 200, {"changed_files": len(self.files[int(number)]), **pull}, {}

    def _get_files(self, query: dict, token: Token, body: Any, number: str) -> tuple:
        self._need(token, "pull-requests")
        self._pull(number)
        return self._page(self.files[int(number)][:3000], query, f"pulls/{number}/files")

    def _get_comments(self, query: dict, token: Token, body: Any, number: str) -> tuple:
        self._need(token, "pull-requests")
        self._pull(number)
        return self._page(self.review_comments[int(number)], query, f"pulls/{number}/comments")

    def _get_reviews(self, query: dict, token: Token, body: Any, number: str) -> tuple:
        self._need(token, "pull-requests")
        self._pull(number)
        return self._page(self.reviews[int(number)], query, f"pulls/{number}/reviews")

    def _get_issue_comments(self, query: dict, token: Token, body: Any, number: str) -> tuple:
        self._need(token, "issues")
        return self._page(self.issue_comments[int(number)], query, f"issues/{number}/comments")

    def _post_review(self, query: dict, token: Token, body: Any, number: str) -> tuple:
        self._need(token, "pull-requests", "write")
        pull = self._pull(number)
        if not isinstance(body, dict) or body.get("event") not in ("APPROVE", "COMMENT", "REQUEST_CHANGES"):
            raise Refused(422, "Unprocessable Entity: event")
        if len(str(body.get("body", ""))) > WRITE_BODY_LIMIT:
            raise Refused(422, "body is too long (maximum is 65536 characters)")
        if body.get("commit_id") != pull["head"]["sha"] and body.get("commit_id") not in pull.get("_commits", []):
            raise Refused(422, "commit_id is not part of the pull request")
        if body["event"] == "APPROVE":
            if pull["user"]["login"] == token.login:
                raise Refused(422, "Can not approve your own pull request")
            if token.login == BOT and not self.actions_may_approve:
                raise Refused(422, "GitHub Actions is not permitted to approve pull requests.")
        comments = body.get("comments", [])
        for comment in comments:
            if not self._anchored(int(number), comment):
                raise Refused(422, "Unprocessable Entity: line must be part of the diff")
        state = {"APPROVE": "APPROVED", "COMMENT": "COMMENTED"}.get(body["event"], "CHANGES_REQUESTED")
        review = self.add_review(int(number), token.login, state, body.get("body", ""), commit_id=body["commit_id"])
        for comment in comments:
            line = comment["line"]
            place = {"path": comment["path"], "line": line, "originalLine": line, "diffSide": comment["side"]}
            thread = self.add_thread(int(number), [], **place)
            more = {"original_commit_id": body["commit_id"], "pull_request_review_id": review["id"]}
            self.add_thread_comment(int(number), thread, token.login, comment["body"], **more)
        return 200, _public(review), {}

    def _anchored(self, number: int, comment: dict) -> bool:
        """An independent reading of the stored patch: is the commented line part of the diff?"""
        for entry in self.files[number]:
            if entry["filename"] != comment.get("path") or not entry.get("patch"):
                continue
            old = new = 0
            for line in entry["patch"].split("\n"):
                hunk = re.match(r"@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@", line)
                if hunk:
                    old, new = int(hunk.group(1)), int(hunk.group(2))
                    continue
                here = {"-": ("LEFT", old), "+": ("RIGHT", new), " ": ("RIGHT", new)}.get(line[:1])
                if here == (comment.get("side"), comment.get("line")):
                    return True
                old += line[:1] in ("-", " ")
                new += line[:1] in ("+", " ")
        return False

    def _dismiss(self, query: dict, token: Token, body: Any, number: str, review_id: str) -> tuple:
        self._need(token, "pull-requests", "write")
        self._pull(number)
        for review in self.reviews[int(number)]:
            if review["id"] == int(review_id):
                if review["state"] not in ("APPROVED", "CHANGES_REQUESTED"):
                    raise Refused(422, "Can not dismiss a dismissed or commented pull request review")
                if not (isinstance(body, dict) and body.get("message")):
                    raise Refused(422, "message is missing")
                review.update(state="DISMISSED", dismissed_by=token.login, dismissal_message=body["message"])
                return 200, _public(review), {}
        raise Refused(404, "Not Found")

    def _permission(self, query: dict, token: Token, body: Any, login: str) -> tuple:
        role = self.collaborators.get(login)
        if role is None:
            raise Refused(404, "Not Found")
        # The legacy field has no word for maintain and triage.
        legacy = {"maintain": "write", "triage": "read"}.get(role, role)
        return 200, {"permission": legacy, "role_name": role, "user": {"login": login}}, {}

    def _compare(self, query: dict, token: Token, body: Any, base: str, head: str) -> tuple:
        self._need(token, "contents")
        if self.repository is not None:
            command = ["git", "-C", self.repository, "merge-base", base, head]
            found = subprocess.run(command, capture_output=True, text=True).stdout.strip() or None
        else:
            found = self.merge_bases.get((base, head), self.default_merge_base)
        if found is None:
            raise Refused(404, "No common ancestor")
        return 200, {"merge_base_commit": {"sha": found}, "status": "diverged", "commits": [], "files": []}, {}

    def _get_run(self, query: dict, token: Token, body: Any, run_id: str) -> tuple:
        self._need(token, "actions")
        if int(run_id) not in self.runs:
            raise Refused(404, "Not Found")
        return 200, self.runs[int(run_id)], {}

    def _get_artifacts(self, query: dict, token: Token, body: Any, run_id: str) -> tuple:
        self._need(token, "actions")
        items = self.artifacts.get(int(run_id), [])
        status, page, more = self._page(items, query, f"actions/runs/{run_id}/artifacts")
        return status, {"total_count": len(items), "artifacts": page}, more

    def _get_zip(self, query: dict, token: Token, body: Any, artifact_id: str) -> tuple:
        self._need(token, "actions")
        for items in self.artifacts.values():
            for artifact in items:
                if artifact["id"] == int(artifact_id):
                    if artifact["expired"]:
                        raise Refused(410, "Artifact has expired")
                    url = f"http://api.github.localhost/repos/{self.repo}/_blobs/{artifact_id}"
                    return 302, None, {"Location": url}
        raise Refused(404, "Not Found")

    def _get_blob(self, query: dict, token: Token, body: Any, artifact_id: str) -> tuple:
        for items in self.artifacts.values():
            for artifact in items:
                if artifact["id"] == int(artifact_id):
                    return 200, artifact["_data"], {"Content-Type": "application/zip"}
        raise Refused(404, "Not Found")

    def _rerun(self, query: dict, token: Token, body: Any, run_id: str) -> tuple:
        self._need(token, "actions", "write")
        run = self.runs.get(int(run_id))
        if run is None:
            raise Refused(404, "Not Found")
        created = time.mktime(time.strptime(run["created_at"], "%Y-%m-%dT%H:%M:%SZ")) - time.timezone
        if run["status"] != "completed":
            raise Refused(403, "This workflow is already running")
        if self.clock() - created > 30 * 86400 or run["run_attempt"] > 50:
            raise Refused(403, "Unable to retry this workflow run")
        run.update(status="queued", conclusion=None, run_attempt=run["run_attempt"] + 1)
        return 201, None, {}

    _ROUTES: Any = (
        ("GET", r"pulls/(\d+)", _get_pull),
        ("GET", r"pulls/(\d+)/files", _get_files),
        ("GET", r"pulls/(\d+)/comments", _get_comments),
        ("GET", r"pulls/(\d+)/reviews", _get_reviews),
        ("POST", r"pulls/(\d+)/reviews", _post_review),
        ("PUT", r"pulls/(\d+)/reviews/(\d+)/dismissals", _dismiss),
        ("GET", r"issues/(\d+)/comments", _get_issue_comments),
        ("GET", r"collaborators/([A-Za-z0-9-]+)/permission", _permission),
        ("GET", r"compare/([^/.]+)\.\.\.([^/.]+)", _compare),
        ("GET", r"actions/runs/(\d+)", _get_run),
        ("GET", r"actions/runs/(\d+)/artifacts", _get_artifacts),
        ("GET", r"actions/artifacts/(\d+)/zip", _get_zip),
        ("GET", r"_blobs/(\d+)", _get_blob),
        ("POST", r"actions/runs/(\d+)/rerun", _rerun),
    )

    # GraphQL: four known queries, recognised by a distinctive field and checked name by name ----------------------

    def _graphql(self, token: Token, body: Any) -> dict:
        query = body.get("query", "") if isinstance(body, dict) else ""
        variables = body.get("variables", {}) if isinstance(body, dict) else {}
        for field, allowed, required, handler in self._QUERIES:
            if field in query:
                names = set(re.findall(r"[A-Za-z_]\w*", re.sub(r"\$\w+\s*:\s*\w+|\$\w+", "", query)))
                unknown = names - set(allowed.split()) - {"query", "on", "String", "Int", "ID"}
                missing = [name for name in required if name not in variables]
                if unknown or missing:
                    return {"errors": [{"message": f"unknown fields {sorted(unknown)}, missing {missing}"}]}
                if set(variables) - set(re.findall(r"\$(\w+)\s*:", query)):
                    return {"errors": [{"message": "undeclared variables"}]}
                return {"data": handler(self, token, variables)}
        self.unexpected.append("POST graphql: " + query[:80])
        return {"errors": [{"message": "unknown query"}]}

    def _live(self, variables: dict) -> dict | None:
        if f"{variables['owner']}/{variables['name']}".lower() != self.repo.lower():
            return None
        return self.pulls.get(variables["number"])

    def _slice(self, items: list, cursor: Any, size: int = 100) -> dict:
        start = int(base64.b64decode(cursor).decode().split(":")[1]) if cursor else 0
        end = start + size
        more = end < len(items)
        after = base64.b64encode(f"cursor:{end}".encode()).decode() if more else None
        return {"nodes": items[start:end], "pageInfo": {"hasNextPage": more, "endCursor": after}}

    def _identifier(self, value: int) -> Any:
        return str(value) if self.ids_as_text else value

    def _query_threads(self, token: Token, variables: dict) -> dict:
        self._need(token, "pull-requests")
        if self._live(variables) is None:
            return {"repository": None}
        threads = [_public(thread) for thread in self.threads[variables["number"]]]
        return {"repository": {"pullRequest": {"reviewThreads": self._slice(threads, variables["cursor"])}}}

    def _query_comments(self, token: Token, variables: dict) -> dict:
        self._need(token, "pull-requests")
        for threads in self.threads.values():
            for thread in threads:
                if thread["id"] == variables["id"]:
                    nodes = []
                    for node in thread["_comments"]:
                        parent = node["replyTo"] and {"databaseId": self._identifier(node["replyTo"]["databaseId"])}
                        nodes.append({**node, "databaseId": self._identifier(node["databaseId"]), "replyTo": parent})
                    return {"node": {"comments": self._slice(nodes, variables["cursor"])}}
        return {"node": None}

    def _query_checks(self, token: Token, variables: dict) -> dict:
        self._need(token, "checks")
        pull = self._live(variables)
        if pull is None:
            return {"repository": None}
        contexts = self.contexts[variables["number"]]
        rollup = {"contexts": self._slice(contexts, variables["cursor"])} if contexts else None
        head = pull["head"]["sha"]
        commits = {"nodes": [{"commit": {"oid": head, "statusCheckRollup": rollup}}]}
        return {"repository": {"pullRequest": {"headRefOid": head, "commits": commits}}}

    def _query_state(self, token: Token, variables: dict) -> dict:
        self._need(token, "pull-requests")
        pull = self._live(variables)
        if pull is None:
            return {"repository": None}
        events = [{"id": event} for event in self.close_events[pull["number"]][-1:]]
        state = "MERGED" if pull["merged"] else pull["state"].upper()
        live = {
            "number": pull["number"],
            "state": state,
            "isDraft": pull["draft"],
            "headRefOid": pull["head"]["sha"],
            "timelineItems": {"nodes": events},
        }
        return {"repository": {"nameWithOwner": self.repo, "pullRequest": live}}

    _COMMON = "repository owner name number pullRequest cursor first after nodes pageInfo hasNextPage endCursor "
    _PAGED = ("owner", "name", "number", "cursor")
    _QUERIES: Any = (
        (
            "reviewThreads",
            _COMMON + "reviewThreads id isResolved isOutdated path line originalLine diffSide resolvedBy login",
            _PAGED,
            _query_threads,
        ),
        (
            "PullRequestReviewThread",
            _COMMON + "node id PullRequestReviewThread comments databaseId fullDatabaseId body url createdAt updatedAt "
            "author login replyTo commit oid",
            ("id", "cursor"),
            _query_comments,
        ),
        (
            "statusCheckRollup",
            _COMMON + "headRefOid commits last commit oid statusCheckRollup contexts __typename CheckRun checkSuite "
            "workflowRun resourcePath",
            _PAGED,
            _query_checks,
        ),
        (
            "CLOSED_EVENT",
            _COMMON + "nameWithOwner state isDraft headRefOid timelineItems last itemTypes CLOSED_EVENT ClosedEvent id",
            ("owner", "name", "number"),
            _query_state,
        ),
    )


def zip_bytes(files: dict) -> bytes:
    """An archive with these files."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return buffer.getvalue()


def _public(item: dict) -> dict:
    return {key: value for key, value in item.items() if not key.startswith("_")}


def _encode(value: Any) -> bytes:
    return json.dumps(value).encode("utf-8")


def _json_or_none(body: bytes) -> Any:
    try:
        return json.loads(body.decode("utf-8")) if body else None
    except ValueError:
        return None
