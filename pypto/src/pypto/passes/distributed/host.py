"""What the distributed passes know about host functions: windows, collectives and their operands."""

from __future__ import annotations

from pypto.ir.enums import Level, Role
from pypto.ir.expr import Call, Expr, Submit
from pypto.ir.program import Function

ALLREDUCE = "pld.tensor.allreduce"
ALL_TO_ALL_V = "pld.tensor.all_to_all_v"
#: Collective -> names of its window operands in order.
COLLECTIVES: dict[str, tuple[str, ...]] = {
    ALLREDUCE: ("src", "signal"),
    "pld.tensor.barrier": ("signal",),
    "pld.tensor.broadcast": ("target", "signal"),
    "pld.tensor.reduce_scatter": ("target", "signal"),
    "pld.tensor.allgather": ("input", "target", "signal"),
    "pld.tensor.all_to_all": ("input", "target", "signal"),
    ALL_TO_ALL_V: ("input", "target", "signal", "send_counts", "recv_counts"),
}
ALLOC, WINDOW = "pld.tensor.alloc_window_buffer", "pld.tensor.window"


def is_host(function: Function) -> bool:
    """A host orchestrator."""
    return function.level is Level.HOST and function.role is Role.Orchestrator and function.body is not None


def collective(value: Expr | None) -> Call | None:
    """``value`` as a collective call, else None."""
    return value if isinstance(value, Call) and value.op.name in COLLECTIVES else None


def device_of(call: Call | Submit) -> Expr | None:
    """The device a dispatch goes to."""
    found = call.attrs.get("device")
    return call.kwargs.get("device") if found is None else found
