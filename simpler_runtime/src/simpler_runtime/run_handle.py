"""The result of a submitted run."""

from __future__ import annotations

import math
import threading


class RunHandle:
    """Finished or not, and how it ended. Dropping a handle does not cancel the run."""

    def __init__(self) -> None:
        self._finished = threading.Event()
        self._error: BaseException | None = None

    @property
    def done(self) -> bool:
        return self._finished.is_set()

    def wait(self, timeout: float | None = None) -> None:
        """Blocks until the run has ended; raises its error every time. TimeoutError when it takes longer."""
        if timeout is not None and (timeout < 0 or not math.isfinite(timeout)):
            raise ValueError(f"timeout must be a finite number of seconds >= 0, got {timeout}")
        if not self._finished.wait(timeout):
            raise TimeoutError(f"the run did not end within {timeout} s")
        if self._error is not None:
            raise self._error

    def result(self, timeout: float | None = None) -> None:
        self.wait(timeout)

    def _finish(self, error: BaseException | None) -> None:
        self._error = error
        self._finished.set()
