"""Operators: one definition per operator (signature, type rule, memory, effects, emission, torch meaning)."""

from __future__ import annotations

from pypto.ops.registry import (
    AttrSpec,
    MemorySpec,
    OpDef,
    OpParam,
    all_ops,
    create_op_call,
    find_op,
    get_op,
    is_op_registered,
)

__all__ = [
    "AttrSpec",
    "MemorySpec",
    "OpDef",
    "OpParam",
    "all_ops",
    "create_op_call",
    "find_op",
    "get_op",
    "is_op_registered",
]
