"""Running one action per entry in parallel, stopping on Ctrl-C without losing what is finished."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from typing import TypeVar

Item = TypeVar("Item")
Answer = TypeVar("Answer")

#: Ctrl-C, a request to end, and a terminal that went away: none may leave a git running.
_SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP")


def default_jobs() -> int:
    """Transfers wait for remotes more than for processors: twice the cores, at least four."""
    return min(16, max(4, 2 * (os.cpu_count() or 1)))


@contextlib.contextmanager
def stopping(stop: threading.Event) -> Iterator[None]:
    """While inside, Ctrl-C and requests to end set ``stop`` and raise nothing.

    An exception could come between any two steps of the threading library, and leave a lock of it held for ever.
    Signals that the caller ignores stay ignored (``nohup``, a job in the background of a script).
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    numbers = [getattr(signal, name) for name in _SIGNALS if hasattr(signal, name)]
    before = {number: signal.getsignal(number) for number in numbers}
    for number, handler in before.items():
        if handler not in (signal.SIG_IGN, None):
            signal.signal(number, lambda *_: stop.set())
    try:
        yield
    finally:
        for number, handler in before.items():
            if handler not in (signal.SIG_IGN, None):
                signal.signal(number, handler)


def in_parallel(
    items: Sequence[Item],
    action: Callable[[Item], Answer],
    jobs: int,
    stop: threading.Event,
    done: Callable[[Item, Answer], None] = lambda item, answer: None,
) -> tuple[dict[int, Answer], bool]:
    """Answers by index of the item, and whether the user interrupted.

    After an interruption no further item is started, running ones see ``stop`` set, and finished answers are kept.
    ``done`` is called in this thread, as answers come in.
    """
    answers: dict[int, Answer] = {}

    def work(index: int) -> int:
        if not stop.is_set():
            answers[index] = action(items[index])
        return index

    with stopping(stop), ThreadPoolExecutor(max_workers=max(1, min(jobs, len(items) or 1))) as pool:
        running = {pool.submit(work, index) for index in range(len(items))}
        while running:
            # Bounded, so that signals are handled although nothing ends.
            finished, running = wait(running, timeout=0.2, return_when=FIRST_COMPLETED)
            for index in sorted(future.result() for future in finished):
                if index in answers:
                    done(items[index], answers[index])
    return answers, stop.is_set()
