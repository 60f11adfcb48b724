"""Runs a lowered kernel on several ranks at once: one thread per rank, windows and signals shared between them."""

from __future__ import annotations

import threading
from typing import Any

import torch
from pypto.debug import torch_support as rt
from pypto.debug.torch_codegen import TorchCodegen

from pypto import ir

#: No wait is longer than this; a schedule that stands still fails.
_SECONDS = 20


class Ranks:
    """What one collective run shares: the windows of every rank by parameter name, and the lock for signal cells."""

    def __init__(self, windows: list[dict[str, torch.Tensor]]) -> None:
        self.windows = windows
        self.changed = threading.Condition()


class _Rank:
    """The operators of one rank."""

    def __init__(self, ranks: Ranks, number: int) -> None:
        self._ranks, self.rank, self.nranks = ranks, number, len(ranks.windows)

    def _peer(self, mine: torch.Tensor, peer: int) -> torch.Tensor:
        """The slice of ``mine`` on another rank, viewed alike."""
        for name, window in self._ranks.windows[self.rank].items():
            if window.untyped_storage().data_ptr() == mine.untyped_storage().data_ptr():
                return self._ranks.windows[peer][name].view(mine.shape)
        raise AssertionError("not a window")

    def notify(self, signal: torch.Tensor, peer: int, cell: tuple, value: int) -> None:
        with self._ranks.changed:
            self._peer(signal, peer)[cell] += value
            self._ranks.changed.notify_all()

    def wait(self, signal: torch.Tensor, cell: tuple, value: int) -> None:
        with self._ranks.changed:
            reached = self._ranks.changed.wait_for(lambda: signal[cell].item() >= value, timeout=_SECONDS)
        assert reached, f"rank {self.rank} waits for {value} in cell {cell}, which holds {signal[cell].item()}"

    def remote_load(self, mine: torch.Tensor, peer: int, offsets: tuple, shape: tuple, valid: tuple) -> torch.Tensor:
        return rt.load(self._peer(mine, peer), offsets, shape, valid)


class _Script(TorchCodegen):
    def _op_pld_system_get_comm_ctx(self, call: Any) -> str:
        return "None"

    def _op_pld_system_nranks(self, call: Any) -> str:
        return "rank.nranks"

    def _op_pld_system_rank(self, call: Any) -> str:
        return "rank.rank"

    def _args(self, call: Any) -> str:
        return ", ".join(self.expr(a) for a in call.args)

    def _op_pld_system_notify(self, call: Any) -> str:
        return f"rank.notify({self._args(call)})"

    def _op_pld_system_wait(self, call: Any) -> str:
        return f"rank.wait({self._args(call)})"

    def _op_pld_tile_remote_load(self, call: Any) -> str:
        return f"rank.remote_load({self._args(call)})"


def run_on_ranks(function: ir.Function, windows: list[dict[str, torch.Tensor]]) -> None:
    """Run ``function`` once per rank; its parameters are the windows of that rank, by name and without version.

    Raises:
        AssertionError: a rank fails, or waits longer than the limit.
    """
    source = "from pypto.debug import torch_support as rt\nfrom pypto.ir import *\n" + _Script(function).source()
    ranks, failures = Ranks(windows), []

    def work(number: int) -> None:
        scope: dict[str, Any] = {"rank": _Rank(ranks, number)}
        try:
            exec(compile(source, "<rank>", "exec"), scope)
            scope[function.name](*[windows[number][p.name_hint.split("__")[0]] for p in function.params])
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(n,), daemon=True) for n in range(len(windows))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(2 * _SECONDS)
    assert not any(t.is_alive() for t in threads), "a rank did not finish"
    if failures:
        raise failures[0]
