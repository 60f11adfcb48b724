"""Runs one review on the dedicated host: lock, live state, complete checkout, sealed container, leak filter, result.

Usage: run_codex_review.py DISCUSSION.json RESULT.json

Environment: GH_REPO, PR_NUMBER, REPOSITORY_ID, HEAD_SHA, BASE_SHA, WORKFLOW_SHA, GH_TOKEN (read), RUNNER_TEMP,
GITHUB_RUN_ID, GITHUB_RUN_ATTEMPT, GITHUB_OUTPUT, GITHUB_SERVER_URL, CODEX_MODEL, CODEX_REVIEW_IMAGE, CODEX_PROXY_IMAGE,
CODEX_EGRESS_NETWORK, CODEX_RELAY_CONTAINER, CODEX_RELAY_PORT. For tests: CODEX_AUTH_FILE, CODEX_AUTH_LOCK,
CODEX_REVIEW_REMOTE, CODEX_REVIEW_DEADLINE (seconds).

Writes number, head, base and completed=true to GITHUB_OUTPUT after a complete, validated review; nothing when the pull
request moved on meanwhile (a success). Everything made on the way is removed whatever happens, except the volumes.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import secrets
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import review_container as container
from codex_review_common import (
    MARKER,
    SNAPSHOT_LIMIT,
    as_object,
    commit_sha,
    positive_number,
    repository_name,
    run_main,
    tokenless_environment,
)
from leak_filter import leak_patterns, leaks
from manage_codex_review_session import manage_session, volume_names
from review_checkout import Checkout, make_checkout, remove_tree, trusted_file
from review_output import extract_session, read_regular, valid_session_id
from review_prompt import review_prompt

AUTH_FILE = "/home/ci-runner/.codex-ci/auth.json"
AUTH_LOCK = "/home/ci-runner/.codex-ci/auth.lock"
SCHEMA = ".github/codex-review-schema.json"
PROFILE = ".github/codex-review/seccomp.json"
#: Waiting and model time together; the job's 20 minutes must leave about seven for the upload.
DEADLINE = 750.0
ATTEMPTS = 3
RETRY_WAIT = 10.0
DOCKER_TIMEOUT = 300
EVENT_LIMIT = 64 * 1024 * 1024
#: How the engine says that what is to be removed is not there.
ABSENT = re.compile(r"no such (container|network)|not found", re.I)


class Job(NamedTuple):
    """What to review, from the trusted workflow."""

    repo: str
    repository_id: int
    number: int
    head: str
    base: str
    workflow: str
    run_id: str
    attempt: str


class Stopped(BaseException):
    """The runner asked the job to stop; cleanup still runs."""


class Leak(ValueError):
    """A credential value was about to be shown."""


def read_job(environment: Any) -> Job:
    """The job from the environment; ValueError for anything malformed, KeyError for anything missing."""
    return Job(
        repository_name(environment["GH_REPO"]),
        positive_number(environment["REPOSITORY_ID"], "REPOSITORY_ID"),
        positive_number(environment["PR_NUMBER"], "PR_NUMBER"),
        commit_sha(environment["HEAD_SHA"], "HEAD_SHA"),
        commit_sha(environment["BASE_SHA"], "BASE_SHA"),
        commit_sha(environment["WORKFLOW_SHA"], "WORKFLOW_SHA"),
        environment["GITHUB_RUN_ID"],
        environment["GITHUB_RUN_ATTEMPT"],
    )


def check_snapshot(data: bytes, job: Job) -> None:
    """Is this the complete discussion of exactly the state to review?"""
    snapshot = as_object(json.loads(data.decode("utf-8")), "discussion")
    expected = {"repository": job.repo, "number": job.number, "head": job.head, "base": job.base}
    for key, value in expected.items():
        if snapshot.get(key) != value:
            raise ValueError(f"the discussion is of another state: {key} is {snapshot.get(key)!r}, expected {value!r}")
    for key in ("comments", "reviews", "threads"):
        if not isinstance(snapshot.get(key), list):
            raise ValueError(f"the discussion has no {key}")


def regular_file(path: str) -> None:
    """ValueError unless the path is a regular file that only its owner can read."""
    try:
        mode = os.lstat(path).st_mode
    except OSError as error:
        raise ValueError(f"agent credential {path}: {error.strerror}; run credential maintenance") from None
    if not stat.S_ISREG(mode):
        raise ValueError(f"agent credential {path} is not a regular file")
    if stat.S_IMODE(mode) & 0o077:
        raise ValueError(f"agent credential {path} is readable by others (mode {stat.S_IMODE(mode):04o})")


@contextlib.contextmanager
def exclusive_lock(path: str, deadline: float) -> Iterator[None]:
    """Hold the host lock; TimeoutError-like ValueError of its own when it stays busy until the deadline."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise ValueError(f"host lock {path}: {error.strerror} (a link is not accepted)") from None
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise ValueError(f"host lock {path} is not a regular file")
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() >= deadline:
                    raise ValueError(f"host lock {path} stayed busy: another review or maintenance holds it") from None
                time.sleep(0.2)
        yield
    finally:
        os.close(descriptor)


def read_credential(path: str) -> tuple[bytes, list[str]]:
    """Bytes of the credential and its leak patterns; ValueError without showing anything of it."""
    data = read_regular(path, 1024 * 1024)
    try:
        credential = as_object(json.loads(data.decode("utf-8")), "credential")
        tokens = as_object(credential.get("tokens"), "tokens")
    except ValueError:
        raise ValueError("agent credential is not readable; run credential maintenance") from None
    if credential.get("auth_mode") != "chatgpt" or not tokens.get("refresh_token"):
        raise ValueError("agent credential is not a refreshable login; run credential maintenance")
    return data, leak_patterns(credential)


def docker(*arguments: str, check: bool = True, timeout: float = DOCKER_TIMEOUT) -> str:
    """Output of a docker command; ValueError with its message when it fails."""
    done = subprocess.run(
        ["docker", *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=timeout,
        env=tokenless_environment(),
    )
    if check and done.returncode:
        # The client's advice ("See 'docker run --help'") comes last, the reason first.
        message = done.stderr.decode("utf-8", "replace").strip().splitlines() or ["no message"]
        raise ValueError(f"docker {' '.join(arguments[:2])} failed: {message[0][:300]}")
    return done.stdout.decode("utf-8", "replace").strip()


def relay_address(egress: str, relay: str) -> str:
    """Gateway address of the egress network, after checking that network and relay are there and healthy."""
    template = "{{range .IPAM.Config}}{{.Gateway}} {{end}}"
    gateways = docker("network", "inspect", "--format", template, egress).split()
    if not gateways:
        raise ValueError(f"docker network {egress} has no gateway")
    template = "{{.State.Status}}/{{if .State.Health}}{{.State.Health.Status}}{{end}}"
    state = docker("container", "inspect", "--format", template, relay)
    if state != "running/healthy":
        raise ValueError(f"relay container {relay} is {state or 'unknown'}, expected running/healthy")
    return gateways[0]


def run_agent(command: list[str], credential: bytes, events: str, log: str, deadline: float) -> bool:
    """One run of the review container; True when the agent ended well. Event file and log start empty."""
    remaining = deadline - time.monotonic()
    if remaining <= 0:
        raise ValueError("no time left for the model: the job's time is used up")
    with open(events, "wb") as stdout, open(log, "wb") as stderr:
        # The lock must not travel into the container runtime: descriptors are closed on exec.
        process = subprocess.Popen(
            ["docker", *command], stdin=subprocess.PIPE, stdout=stdout, stderr=stderr, env=tokenless_environment()
        )
        try:
            process.communicate(credential, timeout=remaining)
        except subprocess.TimeoutExpired:
            raise ValueError("the model did not finish in time") from None
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
    return process.returncode == 0


def show_log(path: str, patterns: list[str]) -> None:
    """Print the end of the agent's log, unless it leaks; its lines cannot act as workflow commands."""
    with open(path, "rb") as file:
        data = file.read(EVENT_LIMIT)
    if leaks(data, patterns):
        print("The agent's log is withheld: it failed the leak filter.")
        return
    stop = secrets.token_hex(16)
    print(f"::stop-commands::{stop}")
    for line in data.decode("utf-8", "replace").splitlines()[-20:]:
        print(line)
    print(f"::{stop}::", flush=True)


def refuse_leaks(paths: list[str], patterns: list[str]) -> None:
    """Leak after truncating all the files when any of them holds a credential value."""
    for path in paths:
        if os.path.getsize(path) > EVENT_LIMIT:
            raise ValueError("the agent's output is too large to be checked; refusing to publish")
        with open(path, "rb") as file:
            found = leaks(file.read(), patterns)
        if found:
            for each in paths:
                with open(each, "wb"):
                    pass
            raise Leak("the agent's output failed the leak filter; refusing to publish")


def ignore_signals() -> None:
    """From here on only cleanup happens; a signal must not interrupt it half-way."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)


class Review:
    """The objects of one run and the steps that use them, in order."""

    def __init__(self, job: Job, scratch: str, environment: Any, deadline: float) -> None:
        self.job, self.scratch, self.environment, self.deadline = job, scratch, environment, deadline
        self.names = container.names(job.run_id, job.attempt, secrets.token_hex(6))
        self.image = container.pinned_image(environment["CODEX_REVIEW_IMAGE"], "CODEX_REVIEW_IMAGE")
        self.proxy = container.pinned_image(environment["CODEX_PROXY_IMAGE"], "CODEX_PROXY_IMAGE")
        self.sessions, self.index = volume_names(job.repository_id, job.number)
        self.events, self.log = os.path.join(scratch, "events.jsonl"), os.path.join(scratch, "agent.log")

    def start_network(self) -> None:
        """Pull both images and bring up the internal network with its one relay."""
        for image in (self.image, self.proxy):
            docker("pull", "--quiet", image)
        egress = self.environment["CODEX_EGRESS_NETWORK"]
        gateway = relay_address(egress, self.environment["CODEX_RELAY_CONTAINER"])
        docker(*container.create_network(self.names.network, self.job.run_id))
        port = self.environment["CODEX_RELAY_PORT"]
        docker(*container.run_sidecar(self.names.sidecar, self.proxy, egress, gateway, port, self.job.run_id))
        docker("network", "connect", "--alias", container.PROXY_ALIAS, self.names.network, self.names.sidecar)

    def saved_session(self) -> str | None:
        """The checkpoint of the last completed review; ValueError if it is not a session id."""
        docker(*container.initialise_volumes(self.image, self.sessions, self.index))
        saved = docker(*container.read_checkpoint(self.image, self.index))
        if saved and not valid_session_id(saved):
            raise ValueError("the saved session id is malformed")
        return saved or None

    def ask(self, checkout: Checkout, discussion: str, credential: bytes, patterns: list[str], session: Any) -> None:
        """Run the agent, up to three times."""
        trusted = []
        for path in (PROFILE, SCHEMA):
            trusted.append(os.path.join(self.scratch, os.path.basename(path)))
            remote = remote_of(self.job, self.environment)
            trusted_file(checkout.tree, remote, self.job.workflow, path, trusted[-1])
        mounts = container.Mounts(*trusted, checkout.tree, discussion, checkout.diff, self.sessions, self.index)
        prompt = review_prompt(base=self.job.base, head=self.job.head, merge_base=checkout.merge_base, marker=MARKER)
        arguments = container.agent_arguments(self.environment["CODEX_MODEL"], prompt, session)
        cpus = min(container.CPUS, os.cpu_count() or container.CPUS)
        command = container.run_agent(
            self.names.agent,
            self.image,
            self.names.network,
            mounts,
            arguments,
            run_id=self.job.run_id,
            cpus=cpus,
        )
        for attempt in range(1, ATTEMPTS + 1):
            if attempt > 1:
                time.sleep(RETRY_WAIT)
            if run_agent(command, credential, self.events, self.log, self.deadline):
                return
            print(f"The agent failed (attempt {attempt} of {ATTEMPTS}).", flush=True)
            docker("rm", "--force", self.names.agent, check=False)
        show_log(self.log, patterns)
        raise ValueError(f"the agent failed {ATTEMPTS} times")

    def finish(self, result: str, patterns: list[str], session: str | None) -> None:
        """Filter, validate and only then save the checkpoint and hand out the result."""
        refuse_leaks([self.events, self.log], patterns)
        answer = os.path.join(self.scratch, "codex-review.json")
        found = extract_session(self.events, answer)
        if session is not None and found != session:
            raise ValueError("the agent continued another session than the saved one")
        refuse_leaks([answer], patterns)
        docker(*container.write_checkpoint(self.image, self.index, found))
        shutil.copyfile(answer, result)

    def remove(self) -> None:
        """Remove containers and network by name, saying what could not be removed. Never the volumes."""
        ignore_signals()
        for arguments in (
            ("rm", "--force", self.names.agent),
            ("rm", "--force", self.names.sidecar),
            ("network", "rm", self.names.network),
        ):
            try:
                docker(*arguments, timeout=60)
            except (ValueError, OSError, subprocess.SubprocessError) as error:
                if not ABSENT.search(str(error)):
                    print(f"warning: {arguments[-1]} is left behind: {error}", file=sys.stderr)


def sweep() -> None:
    """Remove containers and networks of runs that were killed; the host lock says that none of them is alive.

    A container that outlived its driver would still write to the session volumes.
    """
    for kind in ("container", "network"):
        for identifier in docker(*container.leftovers(kind)).split():
            print(f"Removing the {kind} {identifier[:12]} of a killed run.", flush=True)
            docker(*(("rm", "--force") if kind == "container" else ("network", "rm")), identifier)


def remote_of(job: Job, environment: Any) -> str:
    """Address of the base repository; tests name a local one."""
    server = environment.get("GITHUB_SERVER_URL", "https://github.com")
    return environment.get("CODEX_REVIEW_REMOTE") or f"{server}/{job.repo}.git"


def review(job: Job, discussion: str, result: str, environment: Any) -> bool:
    """The whole run; False when the pull request moved on and nothing is to be published."""
    deadline = time.monotonic() + float(environment.get("CODEX_REVIEW_DEADLINE", DEADLINE))
    auth = environment.get("CODEX_AUTH_FILE", AUTH_FILE)
    snapshot = read_regular(discussion, SNAPSHOT_LIMIT)
    check_snapshot(snapshot, job)
    regular_file(auth)
    scratch = tempfile.mkdtemp(prefix="codex-review-", dir=environment["RUNNER_TEMP"])
    try:
        checkout = make_checkout(
            scratch,
            remote_of(job, environment),
            base=job.base,
            head=job.head,
            workflow=job.workflow,
            number=job.number,
            token=environment.get("GH_TOKEN"),
        )
        shown = os.path.join(scratch, "discussion.json")
        with open(shown, "wb") as file:
            file.write(snapshot)
        os.chmod(shown, 0o644)
        with exclusive_lock(environment.get("CODEX_AUTH_LOCK", AUTH_LOCK), deadline):
            return _locked(job, Review(job, scratch, environment, deadline), checkout, shown, result, auth)
    finally:
        ignore_signals()
        remove_tree(scratch)


def _locked(job: Job, run: Review, checkout: Checkout, discussion: str, result: str, auth: str) -> bool:
    if shutil.which("gh") is None:
        raise ValueError("gh is not on PATH: the live state of the pull request cannot be read")
    sweep()
    word = manage_session(job.repo, job.number, job.repository_id, "review", job.head)
    if word != "ready":
        print("The pull request is closed, a draft, or has a newer head: nothing to review.", flush=True)
        return False
    # Nothing of the persistent credential but this private copy leaves the lock's owner.
    credential, patterns = read_credential(auth)
    try:
        run.start_network()
        session = run.saved_session()
        run.ask(checkout, discussion, credential, patterns, session)
        run.finish(result, patterns, session)
    finally:
        run.remove()
    return True


def main() -> int:
    """Command line; see the module docstring."""
    if len(sys.argv) != 3:
        print(__doc__, file=sys.stderr)
        return 2

    def stop(signum: int, _frame: Any) -> None:
        ignore_signals()
        raise Stopped(f"stopped by signal {signum}")

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)
    os.umask(0o022)
    try:
        job = read_job(os.environ)
        if review(job, sys.argv[1], sys.argv[2], os.environ):
            with open(os.environ["GITHUB_OUTPUT"], "a", encoding="utf-8") as file:
                file.write(f"number={job.number}\nhead={job.head}\nbase={job.base}\ncompleted=true\n")
    except KeyError as error:
        raise ValueError(f"environment variable {error} is not set") from None
    except Stopped as stopped:
        print(f"error: {stopped}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    run_main(main)
