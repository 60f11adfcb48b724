"""The ``pipeline_membership`` attribute: which clone of which pipelined loop a tile-producing call belongs to.

The attribute is text, ``"<group>:<stage>"`` with one pair per nesting level joined by ``,``; group ids count up over a
function, stages count the clones of one loop from 0.
"""

from __future__ import annotations

from pypto.ir.expr import Call
from pypto.ir.node import replace
from pypto.ir.program import Function
from pypto.ir.visitor import IRMutator

ATTR = "pipeline_membership"
#: First group id of the skewed cross-core pipelines, above every id that loop replication uses.
SKEW_GROUP_BASE = 1 << 20


def memberships(call: Call) -> list[tuple[int, int]]:
    """(group, stage) pairs, outermost loop last."""
    text = call.attrs.get(ATTR) if call.attrs else None
    if not text:
        return []
    return [(int(g), int(s)) for g, s in (pair.split(":") for pair in text.split(","))]


def with_membership(call: Call, group: int, stage: int) -> Call:
    """The call with one more pair."""
    old = call.attrs.get(ATTR)
    pair = f"{group}:{stage}"
    return replace(call, attrs={**call.attrs, ATTR: f"{old},{pair}" if old else pair})


def set_memberships(call: Call, pairs: list[tuple[int, int]]) -> Call:
    """The call with exactly these pairs."""
    attrs = {k: v for k, v in call.attrs.items() if k != ATTR}
    if pairs:
        attrs[ATTR] = ",".join(f"{g}:{s}" for g, s in pairs)
    return replace(call, attrs=attrs)


class _Remover(IRMutator):
    def visit_type(self, kind):
        return kind

    def visit_call(self, call: Call) -> Call:
        return set_memberships(call, []) if ATTR in call.attrs else call


def drop_memberships(function: Function) -> Function:
    """The function without the attribute."""
    return _Remover().visit_function(function)
