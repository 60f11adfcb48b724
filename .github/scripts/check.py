"""Checks what can be seen of the review's settings: files of this checkout, optionally the repository and the host.

Usage: check.py [--repo OWNER/NAME] [--host] [--json]

One line per fact: ok, warn or fail, and the fix. Exit 1 when anything fails. ``--repo`` asks the hosting API through
``gh`` (read only); ``--host`` looks at the dedicated runner it is started on.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from codex_review_common import RERUN_TOKEN_VARIABLE, ApiError, as_object, github_api, repository_name, run_main

GITHUB = Path(__file__).resolve().parents[1]
PROFILE = "codex-review/seccomp.json"
LABELS = {"self-hosted", "linux", "arm64", "cpu-codex"}


class Fact(NamedTuple):
    """One checked fact."""

    level: str
    what: str
    fix: str
    rule: str


def fact(good: bool, what: str, fix: str, rule: str, level: str = "fail") -> Fact:
    """`ok`, or `level` with the fix."""
    return Fact("ok" if good else level, what, "" if good else fix, rule)


def workflow_facts(text: str) -> list[Fact]:
    """What the workflow file alone shows."""
    facts = []
    for name in ("CODEX_REVIEW_IMAGE", "CODEX_PROXY_IMAGE"):
        match = re.search(rf"^\s*{name}:\s*(\S+)", text, re.M)
        reference = match.group(1) if match else ""
        pinned = re.fullmatch(r"\S+@sha256:[0-9a-f]{64}", reference) is not None
        facts.append(fact(pinned, f"{name} is pinned by digest", "write NAME@sha256:DIGEST", "R114"))
        if pinned:
            placeholder = reference.endswith("0" * 64)
            facts.append(
                fact(
                    not placeholder, f"{name} names a built image", "build the image, enter its digest", "R114", "warn"
                )
            )
    unpinned = [use for use in re.findall(r"uses:\s*(\S+)", text) if not re.search(r"@[0-9a-f]{40}$", use)]
    facts.append(fact(not unpinned, "actions are pinned by commit", f"pin {', '.join(unpinned)}", "R160"))
    facts.append(fact("permissions: {}" in text, "no default permissions", "add a top-level permissions: {}", "R139"))
    facts.append(fact("setup-python" not in text, "the host's interpreter is used", "remove setup-python", "R123"))
    facts.append(fact("contents: write" not in text, "no job can merge", "remove contents: write", "R167"))
    return facts


def schema_facts(schema: Any) -> list[Fact]:
    """The two rules of the provider: everything required, nothing additional."""
    wrong = []

    def walk(node: Any, where: str) -> None:
        if isinstance(node, dict):
            if node.get("type") == "object":
                complete = set(node.get("required", [])) == set(node.get("properties", {}))
                if not complete or node.get("additionalProperties") is not False:
                    wrong.append(where or "top level")
            for key, value in node.items():
                walk(value, f"{where}/{key}")
        elif isinstance(node, list):
            for number, value in enumerate(node):
                walk(value, f"{where}/{number}")

    walk(schema, "")
    what = "every object of the schema is closed and requires all its properties"
    return [fact(not wrong, what, f"fix {', '.join(wrong)}", "R159")]


def local_facts(folder: Path) -> list[Fact]:
    """Files of the checkout."""
    facts = []
    files = ("workflows/codex-review.yml", "codex-review-schema.json", "codex-review/Dockerfile", PROFILE)
    for name in files:
        facts.append(fact((folder / name).is_file(), f".github/{name} exists", "restore the file", "R160"))
    if (folder / "workflows/codex-review.yml").is_file():
        facts += workflow_facts((folder / "workflows/codex-review.yml").read_text(encoding="utf-8"))
    if (folder / "codex-review-schema.json").is_file():
        facts += schema_facts(json.loads((folder / "codex-review-schema.json").read_text(encoding="utf-8")))
    if (folder / PROFILE).is_file():
        profile = as_object(json.loads((folder / PROFILE).read_text(encoding="utf-8")), PROFILE)
        closed = profile.get("defaultAction") == "SCMP_ACT_ERRNO"
        facts.append(fact(closed, "the system call profile denies what it does not name", "restore the file", "R136"))
    return facts


def variable_facts(variables: dict, secrets: list) -> list[Fact]:
    """Repository variables and the names of secrets."""
    facts = []
    for name, meaning in (("CODEX_REVIEW_ENABLED", "R107"), ("CODEX_REVIEW_AUTO_APPROVE", "R153")):
        value = variables.get(name)
        facts.append(
            fact(
                value in ("true", "false", None), f"{name} is {value!r}", "only exactly 'true' enables", meaning, "warn"
            )
        )
    what = f"secret {RERUN_TOKEN_VARIABLE} exists"
    facts.append(
        fact(RERUN_TOKEN_VARIABLE in secrets, what, "add a fine-grained token with Actions: write", "R63", "warn")
    )
    return facts


def repository_facts(repo: str, call: Callable[[str], Any]) -> list[Fact]:
    """Settings of the repository, each as far as the token may read it."""
    facts: list = []

    def ask(what: str, endpoint: str) -> Any:
        try:
            return as_object(call(f"repos/{repo}/{endpoint}"), what)
        except ApiError as error:
            facts.append(Fact("warn", f"{what} cannot be read", str(error), "-"))
            return None

    workflow = ask("workflow permissions", "actions/permissions/workflow")
    if workflow is not None:
        allowed = workflow.get("can_approve_pull_request_reviews") is True
        fix = 'enable "Allow GitHub Actions to create and approve pull requests" (repository-wide)'
        facts.append(fact(allowed, "Actions may approve pull requests", fix, "R154 R191", "warn"))
    variables = ask("repository variables", "actions/variables?per_page=100")
    secrets = ask("repository secrets", "actions/secrets?per_page=100")
    if variables is not None and secrets is not None:
        found = {entry["name"]: entry["value"] for entry in variables.get("variables", [])}
        facts += variable_facts(found, [entry["name"] for entry in secrets.get("secrets", [])])
    runners = ask("runners", "actions/runners?per_page=100")
    if runners is not None:
        matching = [
            runner
            for runner in runners.get("runners", [])
            if {label["name"].lower() for label in runner.get("labels", [])} >= LABELS
        ]
        fix = "register one with labels Linux, ARM64, cpu-codex"
        facts.append(fact(bool(matching), "a dedicated runner is registered", fix, "R110"))
        online = any(runner.get("status") == "online" for runner in matching)
        facts.append(
            fact(online, "a dedicated runner is online", "start it; jobs stay queued until then", "R110", "warn")
        )
    return facts


def host_facts(auth: str, run: Callable[..., Any]) -> list[Fact]:
    """The dedicated runner: programs, credential, network, relay."""
    facts = [
        fact(shutil.which(program) is not None, f"{program} is on PATH", f"install {program}", rule)
        for program, rule in (("gh", "R112"), ("docker", "R110"), ("git", "R126"), ("flock", "R99"), ("codex", "R148"))
    ]
    facts.append(fact(sys.version_info >= (3, 8), "Python is 3.8 or newer", "install a newer python3", "R118"))
    try:
        mode = os.lstat(auth).st_mode
        good = stat.S_ISREG(mode) and not stat.S_IMODE(mode) & 0o077
    except OSError:
        good = False
    facts.append(fact(good, f"{auth} is a private regular file", "log in as the runner account, chmod 600", "R113"))
    for what, command, expected, rule in (
        ("network pypto-codex-egress", ["docker", "network", "inspect", "pypto-codex-egress"], None, "R115"),
        (
            "relay pypto-codex-proxy-relay is healthy",
            ["docker", "container", "inspect", "--format", "{{.State.Health.Status}}", "pypto-codex-proxy-relay"],
            "healthy",
            "R116",
        ),
    ):
        try:
            done = run(command, capture_output=True, text=True, timeout=30)
            good = done.returncode == 0 and expected in (None, done.stdout.strip())
        except (OSError, subprocess.SubprocessError):
            good = False
        facts.append(fact(good, what, "see the operator page, section Host", rule))
    return facts


def main() -> int:
    """Command line; see the module docstring."""
    parser = argparse.ArgumentParser(description="check the settings of the automated review")
    parser.add_argument("--repo", type=repository_name)
    parser.add_argument("--host", action="store_true")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    facts = local_facts(GITHUB)
    if options.repo:
        facts += repository_facts(options.repo, github_api)
    if options.host:
        facts += host_facts("/home/ci-runner/.codex-ci/auth.json", subprocess.run)
    if options.json:
        print(json.dumps([entry._asdict() for entry in facts]))
    else:
        for entry in facts:
            print(f"{entry.level:<4}  {entry.what}" + (f" - {entry.fix}" if entry.fix else "") + f"  [{entry.rule}]")
    return 1 if any(entry.level == "fail" for entry in facts) else 0


if __name__ == "__main__":
    run_main(main)
