"""What ``pypto.ir`` answers about operators: lookup, memory spec, effects, and the public call builder."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pypto.ir.enums import ArgEffect, WriteChannel
from pypto.ir.expr import Call, Expr, Op
from pypto.ir.span import Span
from pypto.ops import registry
from pypto.ops.registry import find_op, is_op_registered, op_ref

__all__ = [
    "create_op_call",
    "get_op",
    "get_op_arg_effect",
    "get_op_memory_spec",
    "get_op_write_channel",
    "is_op_registered",
    "op_has_declared_arg_effect",
    "op_has_declared_arg_effects",
]


def get_op(name: str) -> Op:
    """The call target of operator ``name``; ``ValueError`` when there is none."""
    registry.get_op(name)
    return op_ref(name)


def create_op_call(
    name: str, args: Iterable[Expr], kwargs: dict[str, Any] | Span | None = None, span: Span | None = None
) -> Call:
    """:func:`pypto.ops.registry.create_op_call` for users.

    Raises:
        ValueError: additionally for operators that only the compiler may create.
    """
    if registry.get_op(name).internal_only:
        raise ValueError(f"operator '{name}' is internal-only: the compiler creates it, programs cannot")
    return registry.create_op_call(name, args, kwargs, span)


def get_op_memory_spec(name: str) -> dict[str, Any] | None:
    """``{"input_constraints": [[MemorySpace, ...], ...], "output_memory": ...}``, None without a spec or operator."""
    definition = find_op(name)
    if definition is None or definition.memory is None:
        return None
    spec = definition.memory
    return {"input_constraints": [list(spaces) for spaces in spec.inputs], "output_memory": spec.output}


def get_op_arg_effect(name: str, index: int, **kwargs: Any) -> ArgEffect:
    """Effect of a call with these kwargs on operand ``index``; ``ValueError`` for an unknown operator."""
    return registry.get_op(name).arg_effect(index, **kwargs)


def op_has_declared_arg_effects(name: str) -> bool:
    """True when the operator declares what it does to its operands."""
    return registry.get_op(name).declares_effects


def op_has_declared_arg_effect(name: str, index: int) -> bool:
    """True when the operator declares what it does to operand ``index`` (an empty declaration covers all)."""
    effects = registry.get_op(name).effects
    return effects is not None and (not effects or index in effects)


def get_op_write_channel(name: str) -> WriteChannel | None:
    """How the operator writes global memory, None when it does not or no single channel describes it."""
    return registry.get_op(name).write_channel
