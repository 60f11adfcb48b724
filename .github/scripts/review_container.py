"""Exact docker arguments for every object of a review run; pure, so that each flag is a tested fact."""

from __future__ import annotations

import ipaddress
import re
from typing import Any, NamedTuple

from review_output import valid_session_id

USER = "1002:1003"
RUN_LABEL = "org.pypto.codex-review.run"
PROXY_ALIAS = "proxy"
PROXY_PORT = 7895
#: Processors of the review container; fewer on a smaller host, where the engine refuses to promise more than it has.
CPUS = 4
SESSION_FILE = "/codex-state/review-session-id"
_HARDENED = ("--read-only", "--cap-drop", "ALL", "--security-opt", "no-new-privileges")
#: Without it docker copies the image's directory, with its owner and mode, onto a volume each time it is empty.
_VOLUME = "volume-nocopy"
_ONE_SHOT = ("run", "--rm", "--network", "none", *_HARDENED)


class Names(NamedTuple):
    """Names of what one run creates; unique per run, attempt and a random part."""

    network: str
    sidecar: str
    agent: str


class Mounts(NamedTuple):
    """Host paths and volumes of the review container; it sees all but the profile, which is for the engine."""

    profile: str
    schema: str
    workspace: str
    discussion: str
    diff: str
    sessions: str
    index: str


def names(run_id: str, attempt: str, random: str) -> Names:
    """Object names; ValueError for anything that is not plain digits and hexadecimal text."""
    if not (
        re.fullmatch(r"[0-9]+", run_id) and re.fullmatch(r"[0-9]+", attempt) and re.fullmatch(r"[0-9a-f]+", random)
    ):
        raise ValueError(f"invalid run identity: {run_id!r}, {attempt!r}, {random!r}")
    suffix = f"{run_id}-{attempt}-{random}"
    return Names(f"codex-review-{suffix}", f"codex-proxy-{suffix}", f"codex-agent-{suffix}")


def pinned_image(reference: Any, what: str) -> str:
    """An image reference with a digest; ValueError otherwise."""
    if not isinstance(reference, str) or not re.fullmatch(
        r"[A-Za-z0-9][A-Za-z0-9._:/-]*@sha256:[0-9a-f]{64}", reference
    ):
        raise ValueError(f"{what} must be pinned as NAME@sha256:DIGEST, got {reference!r}")
    if reference.endswith("0" * 64):
        raise ValueError(f"{what} still has the placeholder digest: build the image and enter its digest")
    return reference


def create_network(network: str, run_id: str) -> list[str]:
    """The internal review network without a gateway address on the host."""
    return [
        "network", "create", "--internal", "--opt", "com.docker.network.bridge.inhibit_ipv4=true",
        "--label", f"{RUN_LABEL}={run_id}", network,
    ]  # fmt: skip


def leftovers(kind: str) -> list[str]:
    """List what earlier runs of any pull request left behind: `kind` is ``container`` or ``network``."""
    listing = ["ps", "--all"] if kind == "container" else ["network", "ls"]
    return [*listing, "--quiet", "--no-trunc", "--filter", f"label={RUN_LABEL}"]


def run_sidecar(name: str, image: str, egress: str, gateway: str, port: str, run_id: str) -> list[str]:
    """The fixed-function relay between review network and egress gateway."""
    ipaddress.ip_address(gateway)
    if not re.fullmatch(r"[1-9][0-9]{0,4}", port) or int(port) > 65535:
        raise ValueError(f"invalid relay port {port!r}")
    return [
        "run", "--detach", "--name", name, "--label", f"{RUN_LABEL}={run_id}", "--network", egress, *_HARDENED,
        "--pids-limit", "64", "--memory", "128m", "--cpus", "0.5", "--user", USER,
        "--env", f"RELAY_TARGET_HOST={gateway}", "--env", f"RELAY_TARGET_PORT={port}", image,
    ]  # fmt: skip


def initialise_volumes(image: str, sessions: str, index: str) -> list[str]:
    """Give both volumes to the container user; the only container that runs as root, and it sees no pull request.

    They are mounted straight below the root: without DAC_OVERRIDE not even root may pass through a private folder.
    """
    script = f"chown {USER} /sessions /index && chmod 700 /sessions /index"
    return [
        *_ONE_SHOT, "--cap-add", "CHOWN", "--cap-add", "FOWNER", "--user", "0:0",
        "--mount", f"type=volume,src={sessions},dst=/sessions,{_VOLUME}",
        "--mount", f"type=volume,src={index},dst=/index,{_VOLUME}",
        "--entrypoint", "/bin/sh", image, "-c", script,
    ]  # fmt: skip


def read_checkpoint(image: str, index: str) -> list[str]:
    """Print the saved session id if there is one."""
    script = f"test ! -f {SESSION_FILE} || head -c 256 {SESSION_FILE}"
    return [
        *_ONE_SHOT, "--user", USER, "--mount", f"type=volume,src={index},dst=/codex-state,{_VOLUME},readonly",
        "--entrypoint", "/bin/sh", image, "-c", script,
    ]  # fmt: skip


def write_checkpoint(image: str, index: str, session: str) -> list[str]:
    """Save the session id, whole or not at all. What the agent may have planted under the names is removed first."""
    if not valid_session_id(session):
        raise ValueError("refusing to save a malformed session id")
    script = (
        f"rm -rf {SESSION_FILE}.tmp && printf %s {session} > {SESSION_FILE}.tmp && "
        f"{{ test ! -d {SESSION_FILE} || rm -rf {SESSION_FILE}; }} && mv -f {SESSION_FILE}.tmp {SESSION_FILE}"
    )
    return [
        *_ONE_SHOT, "--user", USER, "--mount", f"type=volume,src={index},dst=/codex-state,{_VOLUME}",
        "--entrypoint", "/bin/sh", image, "-c", script,
    ]  # fmt: skip


def agent_arguments(model: str, prompt: str, session: str | None) -> list[str]:
    """Command line of the agent inside the review container."""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", model):
        raise ValueError(f"invalid model name {model!r}")
    if session is not None and not valid_session_id(session):
        raise ValueError("refusing to resume a malformed session id")
    resume = ["resume", session] if session is not None else []
    return [
        "--model", model, "--config", 'model_reasoning_effort="high"', "--config", 'sqlite_home="/codex-state"',
        "--sandbox", "read-only", "--ask-for-approval", "never",
        "exec", *resume, "--json", "--output-schema", "/review-schema.json", prompt,
    ]  # fmt: skip


def run_agent(
    name: str, image: str, network: str, mounts: Mounts, arguments: list[str], *, run_id: str, cpus: int = CPUS
) -> list[str]:
    """The review container: no token, no socket, no writable root; the credential arrives on stdin."""
    for path in mounts[:5]:
        if "," in path or "\n" in path or not path.startswith("/"):
            raise ValueError(f"unusable mount path {path!r}")
    proxy = f"http://{PROXY_ALIAS}:{PROXY_PORT}"
    environment = {
        "CODEX_HOME": "/codex-home",
        "HOME": "/home/codex-review",
        "HTTP_PROXY": proxy,
        "HTTPS_PROXY": proxy,
        "ALL_PROXY": proxy,
        "NO_PROXY": f"localhost,127.0.0.1,::1,{PROXY_ALIAS}",
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "safe.directory",
        "GIT_CONFIG_VALUE_0": "/workspace",
    }
    owner = "uid=1002,gid=1003,mode=0700"
    return [
        "run", "--rm", "--interactive", "--name", name, "--label", f"{RUN_LABEL}={run_id}",
        "--hostname", "codex-review", "--network", network,
        # The agent's own sandbox needs user namespaces, which the engine's profile forbids and ours allows.
        *_HARDENED, "--security-opt", f"seccomp={mounts.profile}",
        "--pids-limit", "256", "--memory", "2g", "--cpus", str(cpus), "--user", USER,
        "--mount", f"type=bind,src={mounts.workspace},dst=/workspace,readonly",
        "--mount", f"type=bind,src={mounts.schema},dst=/review-schema.json,readonly",
        "--mount", f"type=bind,src={mounts.discussion},dst=/review-discussion.json,readonly",
        "--mount", f"type=bind,src={mounts.diff},dst=/review-diff.patch,readonly",
        "--tmpfs", "/tmp:rw,nosuid,nodev,noexec,size=256m,mode=1777",
        "--tmpfs", f"/codex-home:rw,nosuid,nodev,size=64m,{owner}",
        "--tmpfs", f"/home/codex-review:rw,nosuid,nodev,size=64m,{owner}",
        "--mount", f"type=volume,src={mounts.sessions},dst=/codex-home/sessions,{_VOLUME}",
        "--mount", f"type=volume,src={mounts.index},dst=/codex-state,{_VOLUME}",
        *(part for key, value in environment.items() for part in ("--env", f"{key}={value}")),
        image, *arguments,
    ]  # fmt: skip
