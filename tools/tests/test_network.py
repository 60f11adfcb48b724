"""Remotes that are slow, silent, cut the connection or refuse it: a git daemon and a web server on the loopback."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from ptows.git import command

pytestmark = pytest.mark.skipif(
    not Path(subprocess.check_output(["git", "--exec-path"], text=True).strip(), "git-daemon").exists(),
    reason="this git has no daemon",
)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture
def daemon(world):
    """The port of a git daemon that serves the world's remotes."""
    port = free_port()
    base = world.folder / "remotes"
    base.mkdir(exist_ok=True)
    arguments = ["--reuseaddr", "--listen=127.0.0.1", f"--port={port}", f"--base-path={base}", "--export-all"]
    process = subprocess.Popen(
        ["git", "daemon", *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    for _ in range(200):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                break
        time.sleep(0.02)
    yield port
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


class Relay:
    """Passes connections on to a port and misbehaves as told.

    ``cut``: bytes from the server after which the connection is cut; ``silent``: bytes after which nothing more is
    said; ``pace``: seconds to wait per piece. ``faults`` counts how many connections misbehave.
    """

    def __init__(self, target: int, *, cut: int = -1, silent: int = -1, pace: float = 0, faults: int = 1000) -> None:
        self.target, self.cut, self.silent, self.pace, self.faults = target, cut, silent, pace, faults
        self.connections = 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self) -> None:
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            self.connections += 1
            server = socket.create_connection(("127.0.0.1", self.target))
            threading.Thread(target=self.pump, args=(client, server, False), daemon=True).start()
            threading.Thread(target=self.pump, args=(server, client, True), daemon=True).start()

    def pump(self, source: socket.socket, sink: socket.socket, is_answer: bool) -> None:
        is_faulty = is_answer and self.connections <= self.faults
        seen = 0
        try:
            while data := source.recv(1024 if is_faulty else 65536):
                seen += len(data)
                if is_faulty:
                    time.sleep(self.pace)
                    if 0 <= self.silent < seen:
                        time.sleep(60)
                    if 0 <= self.cut < seen:
                        break
                sink.sendall(data)
        except OSError:
            pass
        for end in (source, sink):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue

    def close(self) -> None:
        # Closing alone would not wake the thread that waits for a connection.
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()


@pytest.fixture
def relay():
    made = []

    def make(*arguments, **options) -> Relay:
        made.append(Relay(*arguments, **options))
        return made[-1]

    yield make
    for item in made:
        item.close()


def manifest(world, **urls: tuple[str, str]) -> None:
    lines = ["workspace: 1", "name: test", "repos:"]
    lines += [f'  {name}: {{url: "{url}", rev: "{rev}", path: {name}}}' for name, (url, rev) in urls.items()]
    world.manifest("\n".join(lines) + "\n")


def big(world, name: str = "big") -> tuple[str, str]:
    """A remote of about 300 kB that cannot be compressed, and its commit."""
    import random

    noise = random.Random(1)
    remote, commit = world.remote(name, {f"f{i}": noise.randbytes(15000).hex() for i in range(20)})
    return remote.bare.name, commit


def test_clone_and_move_over_a_daemon(world, daemon):
    remote, first = world.remote("alpha")
    url = f"git://127.0.0.1:{daemon}/alpha.git"
    manifest(world, alpha=(url, first))
    assert world.sync().code == 0 and world.head("alpha") == first
    second = remote.commit({"a.txt": "second\n"})
    manifest(world, alpha=(url, second))
    assert world.sync().code == 0 and world.head("alpha") == second


def test_nothing_to_do_opens_no_connection(world, daemon, relay):
    _, first = world.remote("alpha")
    through = relay(daemon)
    manifest(world, alpha=(f"git://127.0.0.1:{through.port}/alpha.git", first))
    assert world.sync().code == 0
    opened = through.connections
    assert opened > 0
    for arguments in (
        ["sync", "--no-install"],
        ["status"],
        ["lock", "--check"],
        ["diff"],
        ["sync", "--locked", "--no-install"],
    ):
        assert world.run(*arguments).code == 0
    assert through.connections == opened


def test_a_slow_remote_is_waited_for(world, daemon, relay):
    name, commit = big(world)
    manifest(world, big=(f"git://127.0.0.1:{relay(daemon, pace=0.002).port}/{name}", commit))
    assert world.sync().code == 0 and world.head("big") == commit


def test_a_cut_connection_is_tried_again(world, daemon, relay):
    name, commit = big(world)
    through = relay(daemon, cut=100_000, faults=1)
    manifest(world, big=(f"git://127.0.0.1:{through.port}/{name}", commit))
    assert world.sync().code == 0 and world.head("big") == commit
    assert through.connections >= 2


def test_a_connection_that_is_always_cut_fails_alone_and_the_next_sync_succeeds(world, daemon, relay):
    name, commit = big(world)
    _, good = world.remote("good")
    through = relay(daemon, cut=100_000)
    port = daemon
    manifest(
        world,
        big=(f"git://127.0.0.1:{through.port}/{name}", commit),
        good=(f"git://127.0.0.1:{port}/good.git", good),
        gone=(f"git://127.0.0.1:{free_port()}/gone.git", good),
    )
    answer = world.sync()
    assert answer.code == 1
    assert "big: failed: " in answer.err and "gone: failed: " in answer.err
    assert "unable to connect" in answer.err and "check the network and the URL" in answer.err
    assert world.head("good") == good
    assert not world.path("big").exists() and not world.temporary()
    through.faults = 0
    manifest(world, big=(f"git://127.0.0.1:{through.port}/{name}", commit))
    assert world.sync().code == 0 and world.head("big") == commit


def test_a_fetch_that_is_cut_leaves_the_checkout_as_it_was(world, daemon, relay):
    remote, first = world.remote("alpha")
    through = relay(daemon, cut=2000, faults=0)
    url = f"git://127.0.0.1:{through.port}/alpha.git"
    manifest(world, alpha=(url, first))
    assert world.sync().code == 0
    import random

    second = remote.commit({"a.txt": random.Random(2).randbytes(50000).hex()})
    manifest(world, alpha=(url, second))
    through.faults = 1000
    assert world.sync().code == 1
    assert world.head("alpha") == first and world.git("alpha", "status", "--porcelain") == ""
    through.faults = 0
    assert world.sync().code == 0 and world.head("alpha") == second


def test_a_silent_remote_is_given_up(world, daemon, relay, monkeypatch):
    monkeypatch.setattr(command, "STALL_SECONDS", 0.6)
    name, commit = big(world)
    _, good = world.remote("good")
    through = relay(daemon, silent=50_000)
    manifest(
        world,
        big=(f"git://127.0.0.1:{through.port}/{name}", commit),
        good=(f"git://127.0.0.1:{daemon}/good.git", good),
    )
    answer = world.sync()
    assert answer.code == 1 and "big: failed: the remote said nothing for 0.6 s" in answer.err
    assert world.head("good") == good and not world.temporary()


def test_interrupt_keeps_what_is_finished_and_names_the_rest(world, daemon, relay):
    name, commit = big(world)
    _, good = world.remote("good")
    through = relay(daemon, silent=50_000)
    manifest(
        world,
        good=(f"git://127.0.0.1:{daemon}/good.git", good),
        big=(f"git://127.0.0.1:{through.port}/{name}", commit),
        waiting=(f"git://127.0.0.1:{through.port}/{name}", commit),
    )
    process = world.start("sync", "--no-install", "--jobs", "1")
    deadline = time.monotonic() + 30
    while not world.temporary() or not (world.path("good") / ".git").exists():
        assert time.monotonic() < deadline
        time.sleep(0.02)
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert world.head("good") == good
    assert "big: not done" in err and "waiting: not done" in err
    assert not world.temporary()
    manifest(world, good=(f"git://127.0.0.1:{daemon}/good.git", good))
    assert world.sync().code == 0


class Refusing(BaseHTTPRequestHandler):
    """Asks everybody for a password."""

    def do_GET(self) -> None:
        self.send_response(401)
        self.send_header("WWW-Authenticate", 'Basic realm="x"')
        self.end_headers()

    def log_message(self, *arguments) -> None: ...


@pytest.fixture
def refusing():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Refusing)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_address[1]
    server.shutdown()


def test_credentials_appear_nowhere(world, refusing):
    _, good = world.remote("good")
    secret = "s3cr3t-token"
    url = f"http://user:{secret}@127.0.0.1:{refusing}/x.git?token={secret}"
    manifest(world, bad=(url, "main"), good=(world.remotes["good"].url, good))
    answers = [
        world.sync(),
        world.sync("--json"),
        world.run("list"),
        world.run("list", "--json"),
        world.run("status", "--json"),
        world.run("doctor", "--json"),
        world.run("lock"),
        world.run("pin", "bad", "other"),
    ]
    assert answers[0].code == 1 and "bad: failed" in answers[0].err
    for answer in answers:
        assert secret not in answer.out + answer.err
    assert secret not in (world.root / "workspace.lock").read_text()
    assert "holds credentials" in answers[5].out
    assert world.head("good") == good


def test_no_password_is_asked_for(world, refusing):
    manifest(world, bad=(f"http://127.0.0.1:{refusing}/x.git", "main"))
    answer = world.process("sync", "--no-install", stdin=subprocess.DEVNULL)
    assert answer.code == 1 and "terminal prompts disabled" in answer.err and "credential helper" in answer.err


def test_shallow_and_partial_clones_get_what_the_pin_needs(world, daemon):
    remote, first = world.remote("alpha")
    for number in range(6):
        last = remote.commit({"a.txt": f"{number}\n"})
    subprocess.run(["git", "-C", str(remote.bare), "config", "uploadpack.allowFilter", "true"], check=True)
    url = f"git://127.0.0.1:{daemon}/alpha.git"

    def write(depth_rev: str, filter_rev: str) -> None:
        world.manifest(
            "workspace: 1\nname: t\nrepos:\n"
            f'  shallow: {{url: "{url}", rev: "{depth_rev}", path: shallow, depth: 1}}\n'
            f'  partial: {{url: "{url}", rev: "{filter_rev}", path: partial, filter: "blob:none"}}\n'
        )

    write(last, last)
    assert world.sync().code == 0
    assert world.git("shallow", "rev-list", "--count", "HEAD") == "1"
    assert world.git("partial", "config", "remote.origin.partialclonefilter") == "blob:none"
    write(first, first)
    answer = world.sync()
    assert answer.code == 0, answer.err
    assert world.head("shallow") == first and world.head("partial") == first
    assert (world.path("partial") / "a.txt").read_text() == "alpha\n"
    assert "nothing to do" in world.sync().out


def test_remotes_are_asked_in_parallel(world, daemon, relay):
    """Six remotes that each answer after a while: their connections overlap."""
    through = relay(daemon, pace=0.05)
    urls = {}
    for number in range(6):
        _, commit = world.remote(f"r{number}")
        urls[f"r{number}"] = (f"git://127.0.0.1:{through.port}/r{number}.git", commit)
    manifest(world, **urls)
    active, most = 0, 0
    lock = threading.Lock()
    original = through.pump

    def counting(source, sink, is_answer):
        nonlocal active, most
        with lock:
            active += is_answer
            most = max(most, active)
        original(source, sink, is_answer)
        with lock:
            active -= is_answer

    through.pump = counting
    assert world.sync("--jobs", "6").code == 0
    assert most >= 2


def test_output_is_plain_lines_without_a_terminal(world):
    _, first = world.remote("alpha")
    world.repos(alpha=first)
    answer = world.process("sync", "--no-install")
    assert answer.code == 0
    assert "alpha: cloned" in answer.err
    assert "\x1b" not in answer.out + answer.err


def in_terminal(world, *arguments: str, **settings: str) -> str:
    """What ptows prints to a terminal."""
    import pty

    master, slave = pty.openpty()
    env = {k: v for k, v in os.environ.items() if k != "NO_COLOR"} | {"TERM": "xterm", **settings}
    command_line = [sys.executable, "-m", "ptows", "--workspace", str(world.root), *arguments]
    process = subprocess.Popen(command_line, stdin=slave, stdout=slave, stderr=slave, env=env)
    os.close(slave)
    said = b""
    while True:
        try:
            data = os.read(master, 65536)
        except OSError:
            break
        if not data:
            break
        said += data
    os.close(master)
    process.wait()
    return said.decode("utf-8", "replace")


def test_a_terminal_gets_a_bar_per_entry(world, daemon, relay):
    name, commit = big(world)
    manifest(world, big=(f"git://127.0.0.1:{relay(daemon, pace=0.002).port}/{name}", commit))
    said = in_terminal(world, "sync", "--no-install")
    assert "Receiving objects" in said and "━" in said and "big" in said
    assert world.head("big") == commit


def test_no_color_is_respected(world):
    _, first = world.remote("alpha")
    world.repos(alpha=first)
    world.sync()
    import re

    colours = re.compile(r"\x1b\[(?!0?m)[0-9;]*m")
    assert colours.search(in_terminal(world, "status"))
    assert not colours.search(in_terminal(world, "status", NO_COLOR="1").replace("\x1b[1m", ""))
