"""Running one action per entry in parallel, stopping on Ctrl-C without losing what is finished."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from typing import TypeVar

Item = TypeVar("Item")
Answer = TypeVar("Answer")


def default_jobs() -> int:
    """Transfers wait for remotes more than for processors: twice the cores, at least four."""
    return min(16, max(4, 2 * (os.cpu_count() or 1)))


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
    interrupted = False
    with ThreadPoolExecutor(max_workers=max(1, min(jobs, len(items) or 1))) as pool:
        pending = {pool.submit(action, item): index for index, item in enumerate(items)}
        while pending:
            try:
                # Bounded, so that Ctrl-C is noticed on every platform.
                finished, _ = wait(pending, timeout=0.5, return_when=FIRST_COMPLETED)
                for future in finished:
                    index = pending.pop(future)
                    answers[index] = future.result()
                    done(items[index], answers[index])
            except KeyboardInterrupt:
                interrupted = True
                stop.set()
                for future in [future for future in pending if future.cancel()]:
                    pending.pop(future)
    return answers, interrupted
