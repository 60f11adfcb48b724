"""Names that must resolve without a user surface: legacy host intrinsics and operators of the test suite."""

from __future__ import annotations

from typing import Any

from pypto.errors import InternalError
from pypto.ir.types import Type
from pypto.ops.kinds import Attr, Handle
from pypto.ops.registry import op
from pypto.ops.rules import NOTHING

_LEGACY: dict[str, Any] = {"family": "dist_legacy", "level": "extended", "python_name": ""}


@op("dist.make_tensor", **_LEGACY)
def make_tensor(rt: Handle, count: Handle) -> Type:
    """Host-level tensor placeholder."""
    return NOTHING


@op("dist.submit_orchestrator", **_LEGACY)
def submit_orchestrator(rt: Handle) -> Type:
    """Submit an orchestrator."""
    return NOTHING


@op("dist.submit_worker", **_LEGACY)
def submit_worker(rt: Handle) -> Type:
    """Submit a worker."""
    return NOTHING


@op("dist.future_get", **_LEGACY)
def future_get(future: Handle) -> Type:
    """Wait for a future."""
    return NOTHING


@op("dist.tree_reduce", **_LEGACY)
def tree_reduce(rt: Handle, leaves: Handle) -> Type:
    """Tree reduction over futures."""
    return NOTHING


_TEST: dict[str, Any] = {"family": "test", "level": "extended", "python_name": ""}


@op("test.op", **_TEST)
def test_op(
    arg1: Handle, arg2: Handle, *, int_attr: Attr[int] = None, string_attr: Attr[str] = None,
    bool_attr: Attr[bool] = None,
) -> Type:  # fmt: skip
    """An operator with one attribute of each kind."""
    return arg1.type


@op("test.tensor_op_no_conv", **_TEST)
def tensor_op_no_conv(x: Handle) -> Type:
    """An operator without a tile conversion."""
    return x.type


@op("test.deduce_raises_type", **_TEST)
def deduce_raises_type(x: Handle) -> Type:
    """An operator whose rule reports a user error."""
    raise TypeError("test.deduce_raises_type always fails")


@op("test.deduce_raises_internal", **_TEST)
def deduce_raises_internal(x: Handle) -> Type:
    """An operator whose rule hits a broken invariant."""
    raise InternalError("test.deduce_raises_internal always fails")
