"""How a function drains outstanding work at its end: the `pto.auto_sync_tail_hint` attribute."""

from __future__ import annotations

from ..dialect.ir import Function

TAIL_HINTS = {
    "barrier-all": "barrier-all", "barrier_all": "barrier-all", "default": "barrier-all",
    "mte3-to-s-event0": "mte3-to-s-event0", "mte3_to_s_event0": "mte3-to-s-event0",
    "setwait-mte3-to-s-event0": "mte3-to-s-event0", "setwait_mte3_to_s_event0": "mte3-to-s-event0",
}  # fmt: skip


def tail_mode(fn: Function) -> str:
    """The tail a function asks for: `barrier-all` unless its hint says otherwise."""
    return TAIL_HINTS[fn.attrs.get("pto.auto_sync_tail_hint", "default")]
