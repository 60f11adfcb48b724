"""Questions about operators that several passes ask: views, in-place results, forbidden sharing, pipes."""

from __future__ import annotations

from pypto.ir.enums import ArgEffect, MemorySpace
from pypto.ir.expr import Call, Expr, GlobalVar
from pypto.ir.types import TileType
from pypto.ops.registry import find_op

#: Operators whose result is a window on (or another reading of) operand 0: no data moves.
TILE_VIEWS = frozenset(
    ("tile.slice", "tile.reshape", "tile.reinterpret_view", "tile.transpose_view", "tile.set_validshape")
)
TENSOR_VIEWS = frozenset(
    ("tensor.slice", "tensor.reshape", "tensor.view", "tensor.reinterpret_view", "tensor.set_validshape")
)
VIEWS = TILE_VIEWS | TENSOR_VIEWS

#: Operators that write into operand 0 and return it, although the result has a type of its own.
_UPDATES_FIRST = frozenset(("tile.assemble", "tile.write", "tensor.write"))

POPS = frozenset(("tile.tpop_from_aic", "tile.tpop_from_aiv"))
PUSHES = frozenset(("tile.tpush_to_aic", "tile.tpush_to_aiv"))
FREES = frozenset(("system.tfree_to_aic", "system.tfree_to_aiv"))
INIT_PIPES = frozenset(("system.aic_initialize_pipe", "system.aiv_initialize_pipe"))

CUBE_SPACES = frozenset(
    (
        MemorySpace.Mat,
        MemorySpace.Left,
        MemorySpace.Right,
        MemorySpace.Acc,
        MemorySpace.Bias,
        MemorySpace.LeftScale,
        MemorySpace.RightScale,
    )
)
#: Products that start or continue an accumulation in Acc.
MATMULS = frozenset(
    f"tile.{name}"
    for name in (
        "matmul",
        "matmul_acc",
        "matmul_bias",
        "matmul_mx",
        "matmul_mx_acc",
        "matmul_mx_bias",
        "gemv",
        "gemv_acc",
        "gemv_bias",
        "batch_matmul",
        "batch_matmul_acc",
    )
)


def is_user_call(call: Expr) -> bool:
    """The call or submit targets a function of the program."""
    return isinstance(call.op, GlobalVar)


def in_place_arg(call: Call) -> int | None:
    """Index of the operand whose storage the result *is* (store target, accumulator, assemble target), else None."""
    if isinstance(call.op, GlobalVar):
        return None
    if call.op.name in _UPDATES_FIRST:
        return 0
    definition = find_op(call.op.name)
    return definition.result_is_arg if definition is not None else None


def same_object_arg(call: Call) -> int | None:
    """Like :func:`in_place_arg`, but only where the result is the whole operand and not a view of it."""
    return None if call.op.name in VIEWS else in_place_arg(call)


def arg_effect(call: Call, index: int) -> ArgEffect:
    """What an operator does with an operand; Read for unknown operators."""
    definition = find_op(call.op.name)
    return ArgEffect.Read if definition is None else definition.arg_effect(index, **call.kwargs)


def may_share(call: Call, index: int, *, relaxed_prelu: bool = False) -> bool:
    """The result of ``call`` may be written over operand ``index`` while the operator runs.

    Args:
        relaxed_prelu: the active backend lets ``prelu`` write over its scratch operand.
    """
    name = call.op.name
    if name == "tile.prelu":
        return relaxed_prelu and index == 2
    if name == "tile.assemble":
        return index == 0
    if name == "tile.cast":
        source = call.args[index].type
        result = call.type
        return not (
            isinstance(source, TileType)
            and isinstance(result, TileType)
            and result.dtype.get_bit() > source.dtype.get_bit()
        )
    definition = find_op(name)
    if definition is None:
        return True
    if not definition.inplace_safe:
        return definition.result_is_arg == index
    return index not in definition.no_alias_args
