"""One simulated chip behind a level-2 Worker: direct runs, background runs, admission."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable

from simpler_runtime.device import Device
from simpler_runtime.run_handle import RunHandle, interrupted_error

MAX_ADMITTED_RUNS = 2


class Chip:
    """A device and, once somebody submits, the thread that serves its background runs."""

    def __init__(self, platform: str, runtime: str) -> None:
        self.device = Device(platform, runtime)
        self._idle = threading.Condition()
        self._in_flight = 0
        self._pending: queue.SimpleQueue = queue.SimpleQueue()
        self._dispatcher: threading.Thread | None = None
        self._serving: RunHandle | None = None

    def run(self, work: Callable[[], None]) -> None:
        """On the calling thread when the chip is free, else after the admitted runs."""
        with self._idle:
            direct = self._in_flight == 0
            if direct:
                self._in_flight += 1
        if not direct:
            self.submit(work).wait()
            return
        try:
            work()
        finally:
            self._release()

    def submit(self, work: Callable[[], None]) -> RunHandle:
        """Returns at once; blocks while two runs are admitted."""
        handle = RunHandle(self._interrupt)
        with self._idle:
            while self._in_flight >= MAX_ADMITTED_RUNS:
                self._idle.wait()
            self._in_flight += 1
            if self._dispatcher is None:
                self._dispatcher = threading.Thread(target=self._serve, name="simpler-dispatch", daemon=True)
                self._dispatcher.start()
        self._pending.put((work, handle))
        return handle

    def on_own_thread(self) -> bool:
        return threading.current_thread() is self._dispatcher

    def close(self) -> None:
        """Waits for admitted runs and stops the threads."""
        with self._idle:
            while self._in_flight:
                self._idle.wait()
        if self._dispatcher is not None:
            self._pending.put(None)
            self._dispatcher.join()
        self.device.close()

    def _serve(self) -> None:
        while (item := self._pending.get()) is not None:
            work, handle = item
            error: BaseException | None = None
            self._serving = handle
            try:
                if handle.cancelled:
                    raise interrupted_error()
                work()
            except BaseException as caught:
                error = caught
            self._serving = None
            self._release()
            handle._finish(error)

    def _interrupt(self, handle: RunHandle) -> None:
        if self._serving is handle:
            self.device.interrupt()

    def _release(self) -> None:
        with self._idle:
            self._in_flight -= 1
            self._idle.notify_all()
