"""The real container engine: hardening flags as the kernel sees them, helper containers, session volumes.

The engine runs with its own folders and socket, without bridge and firewall rules; images come from local files only.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import manage_codex_review_session as sessions
import pytest
import review_container as container
import run_codex_review as driver
from fake_github import HEAD
from manage_codex_review_session import LABEL, manage_session, volume_names
from places import GITHUB
from real_engine import TOOLS, Engine, programs, python_files

SESSION = "01234567-89ab-cdef-0123-456789abcdef"
IMAGE = "bench/review:local"
PROFILE = GITHUB / "codex-review" / "seccomp.json"
#: Plays the agent and reports what it can see and do, as JSON values line by line.
AGENT = """#!/bin/sh
echo "uid $(id -u):$(id -g)"
grep -E '^(CapEff|CapBnd|NoNewPrivs):' /proc/self/status
for path in /x /workspace/x /etc/x /review-schema.json /review-diff.patch; do
  if ( : > "$path" ) 2>/dev/null; then echo "wrote $path"; else echo "denied $path"; fi
done
for path in /tmp/x /codex-home/x /codex-state/x /codex-home/sessions/x /home/codex-review/x; do
  if ( : > "$path" ) 2>/dev/null; then echo "wrote $path"; else echo "denied $path"; fi
done
echo "credential $(cat)"
echo "discussion $(cat /review-discussion.json)"
echo "interfaces $(ls /sys/class/net)"
echo "memory $(cat /sys/fs/cgroup/memory.max 2>/dev/null || cat /sys/fs/cgroup/memory/memory.limit_in_bytes)"
grep '^Seccomp:' /proc/self/status
echo "pids $(cat /sys/fs/cgroup/pids.max 2>/dev/null || cat /sys/fs/cgroup/pids/pids.max)"
cat /proc/self/environ
"""


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory):
    """A private engine with the bench image, stopped afterwards."""
    with Engine(tmp_path_factory.mktemp("docker")) as engine:
        folders = ("workspace", "codex-state", "codex-home/sessions", "home/codex-review")
        files = {"bin/agent": AGENT.encode(), **{f"{folder}/.keep": b"" for folder in folders}}
        engine.load(IMAGE, {**programs(TOOLS), **files})
        probe = engine.call("run", "--rm", "--network", "none", IMAGE, "/bin/id", "-u", check=False)
        if probe.returncode:
            pytest.skip(f"containers do not run here: {probe.stderr[-300:]}")
        yield engine


@pytest.fixture
def connected(engine: Engine, monkeypatch) -> Engine:
    monkeypatch.setenv("DOCKER_HOST", engine.address)
    yield engine
    for name in volume_names(4711, 7):
        engine.call("volume", "rm", "-f", name)


# R133-R138 R140: what the kernel says inside
def test_the_review_container_is_sealed(connected: Engine, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("GH_TOKEN", "read-token-must-not-travel")
    monkeypatch.setenv("ACTIONS_RUNTIME_TOKEN", "actions-token-must-not-travel")
    sessions_volume, index = volume_names(4711, 7)
    for name in (sessions_volume, index):
        driver.docker("volume", "create", name)
    driver.docker(*container.initialise_volumes(IMAGE, sessions_volume, index))
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    for name in ("schema", "discussion", "diff"):
        (tmp_path / name).write_text(json.dumps({name: 1}))
        (tmp_path / name).chmod(0o644)
    mounts = container.Mounts(
        str(PROFILE),
        str(tmp_path / "schema"),
        str(workspace),
        str(tmp_path / "discussion"),
        str(tmp_path / "diff"),
        sessions_volume,
        index,
    )
    command = container.run_agent("codex-agent-1-1-a", IMAGE, "none", mounts, ["/bin/agent"], run_id="1", cpus=1)
    events, log = tmp_path / "events", tmp_path / "log"
    assert driver.run_agent(command, b"the-credential", str(events), str(log), time.monotonic() + 60), log.read_text()
    text = events.read_text()
    assert "uid 1002:1003\n" in text, text
    assert "CapEff:\t0000000000000000" in text and "CapBnd:\t0000000000000000" in text and "NoNewPrivs:\t1" in text
    for path in ("/x", "/workspace/x", "/etc/x", "/review-schema.json", "/review-diff.patch"):
        assert f"denied {path}\n" in text
    for path in ("/tmp/x", "/codex-home/x", "/codex-state/x", "/codex-home/sessions/x", "/home/codex-review/x"):
        assert f"wrote {path}\n" in text, text
    assert "credential the-credential\n" in text and 'discussion {"discussion": 1}' in text
    assert "interfaces lo\n" in text
    assert "Seccomp:\t2\n" in text  # our profile
    assert "memory 2147483648\n" in text and "pids 256\n" in text
    assert "must-not-travel" not in text and "GITHUB" not in text and "HTTPS_PROXY=http://proxy:7895" in text
    assert list(workspace.iterdir()) == []


# R87 R90
def test_checkpoints_survive_whatever_the_agent_plants(connected: Engine) -> None:
    sessions_volume, index = volume_names(4711, 7)
    for name in (sessions_volume, index):
        driver.docker("volume", "create", name)
    driver.docker(*container.initialise_volumes(IMAGE, sessions_volume, index))
    assert driver.docker(*container.read_checkpoint(IMAGE, index)) == ""
    driver.docker(*container.write_checkpoint(IMAGE, index, SESSION))
    assert driver.docker(*container.read_checkpoint(IMAGE, index)) == SESSION
    mount = ["--mount", f"type=volume,src={index},dst=/codex-state", "--user", "1002:1003", "--entrypoint", "/bin/sh"]
    base = ["run", "--rm", "--network", "none", *mount, IMAGE, "-c"]
    for plant in (
        "mkdir /codex-state/review-session-id.tmp",
        "cd /codex-state; rm -f review-session-id; mkdir review-session-id; : > review-session-id/x",
    ):
        driver.docker(*base, plant)
        driver.docker(*container.write_checkpoint(IMAGE, index, SESSION))
        assert driver.docker(*container.read_checkpoint(IMAGE, index)) == SESSION
    # The reader cannot write, and what it prints is never taken for more than text.
    assert "readonly" in " ".join(container.read_checkpoint(IMAGE, index))


# R96 R100-R103 with the engine's own words
def test_session_volumes(connected: Engine, host) -> None:
    names = volume_names(4711, 7)
    assert sessions.volume_labels(names[0]) is None
    assert manage_session("owner/repo", 7, 4711, "review", HEAD) == "ready"
    assert [sessions.volume_labels(name) for name in names] == [{LABEL: "initial"}] * 2
    host.close(7)
    host.pulls[7]["state"] = "open"
    assert manage_session("owner/repo", 7, 4711, "review", HEAD) == "ready"
    assert sessions.volume_labels(names[0]) == {LABEL: f"closed:{host.close_events[7][-1]}"}
    assert manage_session("owner/repo", 7, 4711, "cleanup") == "retained"
    host.close(7, merged=True)
    assert manage_session("owner/repo", 7, 4711, "cleanup") == "removed"
    assert sessions.volume_labels(names[1]) is None


#: Calls with harmless arguments, by their numbers on both architectures; prints the error number of each.
CALLS = """
import ctypes, json, os, platform, sys
libc = ctypes.CDLL(None, use_errno=True)
which = 0 if platform.machine() == "x86_64" else 1
def call(numbers, *arguments):
    ctypes.set_errno(0)
    return 0 if libc.syscall(numbers[which], *arguments) >= 0 else ctypes.get_errno()
def domain(family):
    return call((41, 198), family, 2, 0)
found = {name: call(*rest) for name, rest in json.loads(sys.argv[1]).items()}
found.update({f"socket {family}": domain(family) for family in (1, 2, 16, 17, 38, 40)})
# A name space of its own, and a mount in it.
found["namespaces"] = call((272, 97), 0x10000000 | 0x20000 | 0x40000000)
found["mount"] = call((165, 40), b"none", b"/tmp", b"tmpfs", 0, None)
print(json.dumps(found))
"""
DENIED = {
    "ptrace": [[101, 117], 0, 0, 0, 0],
    "bpf": [[321, 280], 0, 0, 0],
    "perf_event_open": [[298, 241], 0, 0, -1, -1, 0],
    "userfaultfd": [[323, 282], 1],
    "io_uring_setup": [[425, 425], 0, 0],
    "keyctl": [[250, 219], 0, -3, 0],
    "add_key": [[248, 217], 0, 0, 0, 0, -3],
    "init_module": [[175, 105], 0, 0, 0],
    "kexec_load": [[246, 104], 0, 0, 0, 0],
    "open_by_handle_at": [[304, 265], -1, 0, 0],
    "setns": [[308, 268], -1, 0],
    "process_vm_readv": [[310, 270], 1, 0, 0, 0, 0, 0],
    "fsopen": [[430, 430], 0, 0],
    "personality": [[135, 92], 0x0040000],
}


# Section 10.2: a profile of our own instead of none
def test_the_system_call_profile_allows_the_inner_sandbox_and_little_else(connected: Engine) -> None:
    connected.load("bench/python", python_files(), {"bin/python3": str(Path(sys.executable).resolve())})

    def errors(profile: object) -> dict:
        sealed = ("--network", "none", "--read-only", "--cap-drop", "ALL", "--security-opt", "no-new-privileges")
        options = (*sealed, "--security-opt", f"seccomp={profile}", "--user", "1002:1003")
        return connected.json(
            "run", "--rm", *options, "bench/python", "/bin/python3", "-I", "-c", CALLS, json.dumps(DENIED)
        )

    ours, none = errors(PROFILE), errors("unconfined")
    assert {name: ours[name] for name in DENIED} == dict.fromkeys(DENIED, errno.EPERM)
    assert [ours[f"socket {family}"] for family in (1, 2, 16, 17, 38, 40)] == [0, 0, 0, *[errno.EPERM] * 3]
    assert ours["namespaces"] == ours["mount"] == 0
    # Without the profile the kernel itself lets through, or looks at the arguments of, most of them.
    assert len([name for name in DENIED if none[name] != errno.EPERM]) >= 6


# R132: a driver that was killed could not clean up; the next one does, and touches nothing else
def test_what_a_killed_run_left_is_removed(connected: Engine) -> None:
    label = f"{container.RUN_LABEL}=41"
    connected.call("network", "create", "--internal", "--label", label, "codex-review-41-1-a")
    connected.call("network", "create", "someone-elses")
    for name, options in (("codex-agent-41-1-a", ("--label", label)), ("someone-else", ())):
        connected.call("run", "--detach", "--name", name, "--network", "none", *options, IMAGE, "/bin/sleep", "300")
    driver.sweep()
    assert connected.text("ps", "--all", "--format", "{{.Names}}") == "someone-else"
    networks = connected.text("network", "ls", "--filter", "type=custom", "--format", "{{.Name}}")
    assert networks == "someone-elses"
    driver.sweep()
    connected.call("rm", "--force", "someone-else")
    connected.call("network", "rm", "someone-elses")


def test_an_absent_engine_is_no_absent_volume(monkeypatch, tmp_path: Path) -> None:  # E22
    if shutil.which("docker") is None:
        pytest.skip("docker is missing: apt-get install docker.io (or .github/tests/install.sh)")
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/nobody")
    with pytest.raises(subprocess.CalledProcessError):
        sessions.volume_labels("pypto-codex-sessions-1-1")


def test_the_entrypoint_hands_over_and_removes_the_credential(tmp_path: Path) -> None:  # R91
    """The real entrypoint with stand-ins for the watcher and the agent."""
    programs, home = tmp_path / "bin", tmp_path / "home"
    programs.mkdir()
    home.mkdir()
    scripts = {
        "install": '#!/bin/sh\n: > "$4"\n',
        # Waits until somebody has read the credential.
        "inotifywait": '#!/bin/sh\necho "Watches established." >&2\n'
        'while [ ! -e "$CODEX_HOME/was-read" ]; do sleep 0.05; done\n',
        "codex": '#!/bin/sh\ncat "$CODEX_HOME/auth.json"; : > "$CODEX_HOME/was-read"; cat; echo "args $*"\n'
        'for n in 1 2 3 4 5 6 7 8 9 10; do sleep 0.5; [ -e "$CODEX_HOME/auth.json" ] || { echo gone; exit 0; }; done\n',
    }
    for name, text in scripts.items():
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    environment = {"PATH": f"{programs}:{os.environ['PATH']}", "CODEX_HOME": str(home)}
    entrypoint = GITHUB / "codex-review" / "entrypoint.sh"
    assert entrypoint.read_bytes().startswith(b"#!") and os.access(entrypoint, os.X_OK)
    done = subprocess.run(
        [str(entrypoint), "--model", "m"], env=environment, input=b"secret\n", capture_output=True, timeout=60
    )
    assert done.stdout.decode() == "secret\nargs --model m\ngone\n", done.stderr
