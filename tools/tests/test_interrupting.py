"""Ctrl-C at any moment: what is finished stays, nothing goes on in the background, nothing waits for ever."""

from __future__ import annotations

import os
import random
import signal
import sys
import threading
import time

import pytest
from ptows.runner.sessions import Ended, run_graph
from ptows.sync.workers import in_parallel, stopping


def press(number: int = signal.SIGINT) -> None:
    os.kill(os.getpid(), number)


def test_an_interruption_keeps_the_answers_and_starts_nothing_more():
    started = []

    def action(item: int) -> int:
        started.append(item)
        if item == 1:
            press()
            # The handler runs in the main thread: wait until it did.
            assert stop.wait(20)
        return item * 10

    stop = threading.Event()
    answers, interrupted = in_parallel(range(50), action, 1, stop)
    assert interrupted and answers == {0: 0, 1: 10} and started == [0, 1]


def test_pressing_it_many_times_is_one_interruption():
    """While answers come in, Ctrl-C comes in between any two steps of the thread that collects them."""
    random.seed(3)
    for _ in range(20):
        stop, finished = threading.Event(), []

        def action(item: int, stop=stop, finished=finished) -> int:
            if not stop.is_set():
                finished.append(item)
            return item

        def hammer(stop=stop) -> None:
            time.sleep(random.uniform(0, 0.005))
            for _ in range(5):
                press()

        with stopping(stop):
            thread = threading.Thread(target=hammer)
            thread.start()
            answers, _ = in_parallel(range(100), action, 4, stop)
            thread.join()
        assert set(finished) <= set(answers)


def test_the_old_handlers_are_back_afterwards():
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)]
    in_parallel([1], lambda item: item, 1, threading.Event())
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)] == before


def test_an_ignored_signal_stays_ignored():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        stop = threading.Event()
        with stopping(stop):
            press(signal.SIGHUP)
            assert not stop.wait(0.05)
    finally:
        signal.signal(signal.SIGHUP, before)


def test_sessions_that_run_are_ended_and_the_rest_is_not_started(five):
    from ptows.manifest import load

    packages = load(five.root).packages
    stop = threading.Event()

    def action(entry) -> Ended:
        press()
        assert stop.wait(20)
        return Ended(entry.name, "not done")

    depends = {entry.name: entry.depends for entry in packages}
    results, interrupted = run_graph(packages, depends, action, 1, lambda ended: None, stop)
    assert interrupted and {result.state for result in results} == {"not done"}


def until(condition) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_foreach_ends_its_commands(five, number):
    """The commands run in sessions of their own, so the terminal does not end them."""
    if signal.getsignal(number) is signal.SIG_IGN:
        pytest.skip("the tests run where this signal is ignored (nohup), and what is ignored stays ignored")
    code = "import os, time; open('pid', 'w').write(str(os.getpid())); time.sleep(300)"
    process = five.start("foreach", "--jobs", "1", "--", sys.executable, "-c", code)
    file = five.root / "ptoas_bridge" / "pid"
    until(lambda: file.exists() and file.read_text())
    pid = int(file.read_text())
    process.send_signal(number)
    process.communicate(timeout=60)
    assert process.returncode == 130
    assert not os.path.exists(f"/proc/{pid}")
    assert not (five.root / "pypto" / "pid").exists()


def test_run_ends_the_preparation_of_the_environment(five):
    (five.root / "noxfile.py").write_text(
        "import os, time\nopen('pid', 'w').write(str(os.getpid()))\ntime.sleep(300)\n"
    )
    process = five.start("run", "tests")
    file = five.root / "pid"
    until(lambda: file.exists() and file.read_text())
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 130
    assert not os.path.exists(f"/proc/{file.read_text()}")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_sync_ends_the_installer(five, tmp_path, number):
    python = tmp_path / "env" / "bin" / "python"
    python.parent.mkdir(parents=True)
    file = tmp_path / "pid"
    python.write_text(f"#!/bin/sh\necho $$ > {file}\nexec sleep 300\n")
    python.chmod(0o755)
    process = five.start("sync", env={**os.environ, "VIRTUAL_ENV": str(tmp_path / "env")})
    until(lambda: file.exists() and file.read_text().strip())
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130 and "installing was interrupted" in err
    assert not os.path.exists(f"/proc/{file.read_text().strip()}")
