"""The result of a submitted run."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable

_INTERRUPT_PERIOD_S = 0.1
_INTERRUPT_PATIENCE_S = 3.0


class RunHandle:
    """Finished or not, and how it ended. Dropping a handle does not cancel the run; Ctrl-C while waiting does."""

    def __init__(self, interrupt: Callable[[RunHandle], None]) -> None:
        self._finished = threading.Event()
        self._error: BaseException | None = None
        self._interrupt = interrupt
        self._cancelled = False

    @property
    def done(self) -> bool:
        return self._finished.is_set()

    def wait(self, timeout: float | None = None) -> None:
        """Blocks until the run has ended; raises its error every time. TimeoutError when it takes longer.

        What a signal handler raises meanwhile, such as KeyboardInterrupt, fails the run and is raised.
        """
        if timeout is not None and (timeout < 0 or not math.isfinite(timeout)):
            raise ValueError(f"timeout must be a finite number of seconds >= 0, got {timeout}")
        if not self.settle(timeout):
            raise TimeoutError(f"the run did not end within {timeout} s")
        if self._error is not None:
            raise self._error

    def result(self, timeout: float | None = None) -> None:
        self.wait(timeout)

    @property
    def cancelled(self) -> bool:
        """Somebody who waited for it was interrupted: what has not started shall not start."""
        return self._cancelled

    def cancel(self) -> None:
        """Fails the run and waits a moment for its end; a Python function that does not return cannot be ended."""
        self._cancelled = True
        for _ in range(round(_INTERRUPT_PATIENCE_S / _INTERRUPT_PERIOD_S)):
            # Again and again: the next part of the run may have started in between.
            self._interrupt(self)
            if self._finished.wait(_INTERRUPT_PERIOD_S):
                return

    def settle(self, timeout: float | None = None) -> bool:
        """Like :meth:`wait`, but says whether the run has ended, and not how."""
        try:
            return self._finished.wait(timeout)
        except BaseException:
            self.cancel()
            raise

    def _finish(self, error: BaseException | None) -> None:
        self._error = error
        self._finished.set()


def interrupted_error() -> RuntimeError:
    """The error of what did not start any more."""
    return RuntimeError("the run was interrupted before this part of it started")
