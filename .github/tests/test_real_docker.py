"""The real container engine: hardening flags as the kernel sees them, helper containers, session volumes.

The engine runs with its own folders and socket, without bridge and firewall rules; images come from local files only.
"""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import subprocess
import tarfile
import time
from pathlib import Path

import manage_codex_review_session as sessions
import pytest
import review_container as container
import run_codex_review as driver
from fake_github import HEAD
from manage_codex_review_session import LABEL, manage_session, volume_names
from places import GITHUB

SESSION = "01234567-89ab-cdef-0123-456789abcdef"
IMAGE = "bench/review:local"
PROGRAMS = (
    "sh",
    "cat",
    "head",
    "id",
    "touch",
    "rm",
    "mv",
    "chown",
    "chmod",
    "ls",
    "mkdir",
    "grep",
    "sleep",
    "install",
    "mktemp",
)

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
echo "pids $(cat /sys/fs/cgroup/pids.max 2>/dev/null || cat /sys/fs/cgroup/pids/pids.max)"
cat /proc/self/environ
"""


def rootfs() -> bytes:
    """A root file system made of this machine's own programs and their libraries."""
    files: dict = {}
    for name in PROGRAMS:
        source = shutil.which(name)
        if source is None:
            continue
        files[f"bin/{name}"] = Path(source).resolve().read_bytes()
        listing = subprocess.run(["ldd", source], capture_output=True, text=True).stdout
        for library in re.findall(r"(/\S+)", listing):
            files[library.lstrip("/")] = Path(library).resolve().read_bytes()
    files["bin/agent"] = AGENT.encode()
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        empty = ("workspace", "tmp", "codex-state", "codex-home/sessions", "home/codex-review", "etc")
        parents = {str(p) for name in (*files, *(f"{e}/x" for e in empty)) for p in Path(name).parents}
        for folder in sorted(parents - {"."}):
            entry = tarfile.TarInfo(folder)
            # Some runtimes give a tmpfs the mode of the image's folder, whatever its own option says.
            entry.type, entry.mode = tarfile.DIRTYPE, 0o1777 if folder == "tmp" else 0o755
            archive.addfile(entry)
        for name, data in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(data), 0o755
            archive.addfile(entry, io.BytesIO(data))
    return buffer.getvalue()


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory):
    """Address of a private engine with the bench image, stopped afterwards."""
    for program, package in (("docker", "docker.io"), ("dockerd", "docker.io"), ("containerd", "docker.io")):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is missing: apt-get install {package} (or .github/tests/install.sh)")
    if os.geteuid() != 0:
        pytest.skip("the container engine needs root")
    folder = tmp_path_factory.mktemp("docker")
    address = f"unix://{folder}/s"
    log = (folder / "log").open("wb")
    process = subprocess.Popen(
        [
            "dockerd",
            "--iptables=false",
            "--ip6tables=false",
            "--bridge=none",
            "--storage-driver=vfs",
            f"--data-root={folder}/data",
            f"--exec-root={folder}/exec",
            "-p",
            f"{folder}/pid",
            "-H",
            address,
        ],
        stdout=log,
        stderr=log,
    )
    environment = {**os.environ, "DOCKER_HOST": address}
    try:
        for _ in range(150):
            if process.poll() is not None:
                pytest.skip("dockerd does not run here: " + (folder / "log").read_text()[-400:])
            if subprocess.run(["docker", "version"], env=environment, capture_output=True).returncode == 0:
                break
            time.sleep(0.2)
        else:
            pytest.skip("dockerd did not answer within 30 s")
        done = subprocess.run(["docker", "import", "-", IMAGE], env=environment, input=rootfs(), capture_output=True)
        assert done.returncode == 0, done.stderr
        probe = ["docker", "run", "--rm", "--network", "none", "--ulimit", "nofile=1024:1024", IMAGE, "/bin/id", "-u"]
        done = subprocess.run(probe, env=environment, capture_output=True, text=True)
        if done.returncode:
            pytest.skip(f"containers do not run here: {done.stderr[-300:]}")
        yield address
    finally:
        process.terminate()
        try:
            process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()
        log.close()


@pytest.fixture
def connected(engine: str, monkeypatch) -> str:
    monkeypatch.setenv("DOCKER_HOST", engine)
    yield engine
    for name in volume_names(4711, 7):
        subprocess.run(["docker", "volume", "rm", "-f", name], capture_output=True)


def local(arguments: list) -> list:
    """The same command line without what this machine lacks: a bridge network, file descriptors, four processors."""
    changed = list(arguments)
    if "--cpus" in changed:
        changed[changed.index("--cpus") + 1] = "1"
    changed[changed.index("--network") + 1] = "none"
    return ["run", "--ulimit", "nofile=1024:1024", *changed[1:]]


# R133-R138 R140: what the kernel says inside
def test_the_review_container_is_sealed(connected: str, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("GH_TOKEN", "read-token-must-not-travel")
    monkeypatch.setenv("ACTIONS_RUNTIME_TOKEN", "actions-token-must-not-travel")
    sessions_volume, index = volume_names(4711, 7)
    for name in (sessions_volume, index):
        driver.docker("volume", "create", name)
    driver.docker(*local(container.initialise_volumes(IMAGE, sessions_volume, index)))
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    for name in ("schema", "discussion", "diff"):
        (tmp_path / name).write_text(json.dumps({name: 1}))
        (tmp_path / name).chmod(0o644)
    for folder in (tmp_path, workspace):
        folder.chmod(0o755)
    mounts = container.Mounts(
        str(workspace),
        str(tmp_path / "schema"),
        str(tmp_path / "discussion"),
        str(tmp_path / "diff"),
        sessions_volume,
        index,
    )
    command = local(container.run_agent("codex-agent-1-1-a", IMAGE, "none", mounts, ["/bin/agent"]))
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
    assert "memory 2147483648\n" in text and "pids 256\n" in text
    assert "must-not-travel" not in text and "GITHUB" not in text and "HTTPS_PROXY=http://proxy:7895" in text
    assert list(workspace.iterdir()) == []


# R87 R90
def test_checkpoints_survive_whatever_the_agent_plants(connected: str) -> None:
    sessions_volume, index = volume_names(4711, 7)
    for name in (sessions_volume, index):
        driver.docker("volume", "create", name)
    driver.docker(*local(container.initialise_volumes(IMAGE, sessions_volume, index)))
    assert driver.docker(*local(container.read_checkpoint(IMAGE, index))) == ""
    driver.docker(*local(container.write_checkpoint(IMAGE, index, SESSION)))
    assert driver.docker(*local(container.read_checkpoint(IMAGE, index))) == SESSION
    mount = ["--mount", f"type=volume,src={index},dst=/codex-state", "--user", "1002:1003", "--entrypoint", "/bin/sh"]
    base = ["run", "--rm", "--network", "none", "--ulimit", "nofile=1024:1024", *mount, IMAGE, "-c"]
    for plant in (
        "mkdir /codex-state/review-session-id.tmp",
        "cd /codex-state; rm -f review-session-id; mkdir review-session-id; : > review-session-id/x",
    ):
        driver.docker(*base, plant)
        driver.docker(*local(container.write_checkpoint(IMAGE, index, SESSION)))
        assert driver.docker(*local(container.read_checkpoint(IMAGE, index))) == SESSION
    # The reader cannot write, and what it prints is never taken for more than text.
    assert "readonly" in " ".join(container.read_checkpoint(IMAGE, index))


# R96 R100-R103 with the engine's own words
def test_session_volumes(connected: str, host) -> None:
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
