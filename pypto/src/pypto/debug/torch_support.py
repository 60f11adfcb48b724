"""What generated torch scripts call: operators on dense tensors with valid regions, launches, counters.

A tile or tensor is a torch tensor of its physical shape; cells outside the valid region hold anything. Global
tensors are written in place, so that views and aliases behave like memory.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import torch

from pypto.ir import AtomicType, DataType
from pypto.ops.fillpad import fill
from pypto.ops.registry import get_op
from pypto.ops.torch_values import torch_dtype

_launch = {"block": 0, "blocks": 1, "lane": 0}

#: Families whose operands are cut to their valid regions before the dense operator sees them.
_REGION_FAMILIES = ("reduction", "arg_reduction", "matmul", "gemv")


def blocks(count: int) -> Iterator[int]:
    """The blocks of one launch, one after the other."""
    outer = dict(_launch)
    for block in range(int(count)):
        _launch.update(block=block, blocks=int(count))
        yield block
    _launch.update(outer)


def lanes() -> Iterator[int]:
    """Both vector lanes of a split region."""
    outer = dict(_launch)
    for lane in (0, 1):
        _launch["lane"] = lane
        yield lane
    _launch.update(outer)


def block_idx() -> int:
    return _launch["block"]


def block_num() -> int:
    return _launch["blocks"]


def lane_idx() -> int:
    return _launch["lane"]


def region(value: Any, extents: Sequence[int]) -> Any:
    """The valid cells of a value."""
    return value[tuple(slice(0, int(e)) for e in extents)]


def physical(value: Any, shape: Sequence[int]) -> Any:
    """A value in a larger buffer; the other cells hold zero."""
    if tuple(value.shape) == tuple(shape):
        return value
    out = torch.zeros(tuple(shape), dtype=value.dtype)
    out[tuple(slice(0, n) for n in value.shape)] = value
    return out


def op(name: str, *args: Any, _regions: tuple | None = None, _shape: tuple | None = None, **attrs: Any) -> Any:
    """An operator by its torch meaning.

    Args:
        _regions: valid extents per operand (None = all cells), given only when some are partial.
        _shape: physical shape of the result, given with ``_regions``.

    Raises:
        ValueError: the operator has no torch meaning.
    """
    definition = get_op(name)
    if definition.torch is None:
        raise ValueError(f"operator {name} has no torch meaning")
    if _regions is not None and (definition.family in _REGION_FAMILIES or name.endswith(".concat")):
        args = tuple(a if r is None else region(a, r) for a, r in zip(args, _regions))
        if definition.family == "matmul" and len(args) >= 2:
            args = _contracted(args)
    if _regions is not None and definition.family == "partial":
        result = _merged(definition.torch, args, _regions)
    else:
        result = definition.torch(*args, **attrs)
    if _shape is not None and isinstance(result, torch.Tensor):
        result = physical(result, _shape)
    return result


def _merged(combine: Any, values: tuple, regions: tuple) -> Any:
    """Two values combined where both are valid; where one is, that one."""
    inside = []
    for value, extents in zip(values, regions):
        mask = torch.zeros(value.shape, dtype=torch.bool)
        mask[tuple(slice(0, int(e)) for e in (value.shape if extents is None else extents))] = True
        inside.append(mask)
    left, right = values
    return torch.where(inside[0] & inside[1], combine(left, right), torch.where(inside[0], left, right))


def _contracted(args: tuple) -> tuple:
    """Right operand cut to the contraction extent of the left one."""
    position = len(args) - 1 if args[-1] is not None and args[-1].dim() >= 2 else 1
    left, right = args[position - 1], args[position]
    if right.dim() >= 2 and left.shape[-1] < right.shape[-2]:
        args = (*args[:position], right[..., : left.shape[-1], :], *args[position + 1 :])
    return args


def _window(offsets: Sequence[int], extents: Sequence[int]) -> tuple:
    return tuple(slice(int(o), int(o) + int(e)) for o, e in zip(offsets, extents))


def load(tensor: Any, offsets: Sequence[int], shape: Sequence[int], valid: Sequence[int]) -> Any:
    """A window of a global tensor as a tile; what lies outside the tensor or the valid region is zero."""
    out = torch.zeros(tuple(int(s) for s in shape), dtype=tensor.dtype)
    seen = tensor[_window(offsets, valid)]
    out[tuple(slice(0, n) for n in seen.shape)] = seen
    return out


def store(tile: Any, offsets: Sequence[int], output: Any, window: Sequence[int] | None, valid: Any, atomic: int) -> Any:
    """Write the valid cells of a tile into a global tensor, in place; ``window`` has the tensor's rank."""
    source = tile if valid is None else region(tile, valid)
    if window is None:
        extents = [1] * (output.dim() - source.dim()) + list(source.shape)
        extents = extents[max(0, len(extents) - output.dim()) :]
    else:
        extents = [int(w) for w in window]
        if valid is not None:
            extents[-1] = source.shape[-1]
            if len(extents) >= 2 and all(w == 1 for w in extents[:-2]):
                extents[-2] = source.shape[-2]
    return put(output, offsets, source.reshape(extents), atomic)


def put(target: Any, offsets: Sequence[int], source: Any, atomic: int = 0) -> Any:
    """Write ``source`` at ``offsets`` of ``target`` in place, or add it; returns the target."""
    while source.dim() < target.dim():
        source = source.unsqueeze(0)
    where = _window(offsets, source.shape)
    if int(atomic) == int(AtomicType.Add):
        target[where] += source.to(target.dtype)
    else:
        target[where] = source.to(target.dtype)
    return target


def assemble(target: Any, source: Any, offsets: Sequence[int]) -> Any:
    """A copy of a tile with ``source`` written at ``offsets``."""
    return put(target.clone(), offsets, source)


def window(value: Any, shape: Sequence[int], offsets: Sequence[int], drop: Sequence[int] = ()) -> Any:
    """A window of a tensor or tile: a view when it lies inside, else a copy padded with zeros."""
    seen = value[_window(offsets, shape)]
    if tuple(seen.shape) != tuple(int(s) for s in shape):
        seen = physical(seen, [int(s) for s in shape])
    for axis in sorted((int(a) % seen.dim() for a in drop), reverse=True):
        seen = seen.squeeze(axis)
    return seen


def fillpad(value: Any, valid: Sequence[int] | None, pad_value: Any, shape: Sequence[int] | None = None) -> Any:
    """The value with every cell outside the valid region set to the pad number, in a larger buffer if asked."""
    valid = tuple(value.shape) if valid is None else valid
    wide = value if shape is None else physical(value, [int(s) for s in shape])
    return fill(wide, valid, pad_value)


def zeros(shape: Sequence[int], dtype: DataType) -> Any:
    return torch.zeros(tuple(int(s) for s in shape), dtype=torch_dtype(dtype))


def reinterpret(value: Any, dtype: DataType, shape: Sequence[int]) -> Any:
    """The same bytes as another element type."""
    return value.contiguous().view(torch_dtype(dtype)).reshape(tuple(int(s) for s in shape))


def read(value: Any, indices: Sequence[int]) -> Any:
    """One element as a Python number."""
    if value.dim() > len(indices):
        value = value.reshape(-1) if len(indices) == 1 else value
    return value[tuple(int(i) for i in indices)].item()


def write(value: Any, indices: Sequence[int], number: Any) -> Any:
    """Set one element in place."""
    target = value.view(-1) if value.dim() > len(indices) == 1 else value
    target[tuple(int(i) for i in indices)] = number
    return value


def updated(array: list, index: int, value: Any) -> list:
    """A copy of a stack array with one element changed."""
    copy = list(array)
    copy[int(index)] = value
    return copy


def shard(value: Any, split: int) -> Any:
    """The half of the current lane: rows for split 1, columns for split 2."""
    if not split:
        return value
    axis = 0 if int(split) == 1 else 1
    half = value.shape[axis] // 2
    return value.narrow(axis, _launch["lane"] * half, half).clone()


@contextlib.contextmanager
def fresh_launch() -> Iterator[None]:
    """Launch state of a new program."""
    outer = dict(_launch)
    _launch.update(block=0, blocks=1, lane=0)
    try:
        yield
    finally:
        _launch.update(outer)


def check(value: Any, shape: Sequence[int], dtype: DataType, name: str) -> None:
    """Compare a value with the declared type; ``AssertionError`` names the variable."""
    extents = tuple(value.shape)
    fits = len(extents) == len(shape) and all(d < 0 or e == d for e, d in zip(extents, shape))
    if not fits or value.dtype != torch_dtype(dtype):
        raise AssertionError(f"{name}: expected {list(shape)} {dtype}, got {list(extents)} {value.dtype}")
