"""Reference values on dense torch tensors. torch is imported when a function runs, never at import."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pypto.ir.dtype import DataType

if TYPE_CHECKING:
    import torch

_TORCH_NAMES = {
    DataType.BOOL: "bool",
    DataType.INT8: "int8",
    DataType.INT16: "int16",
    DataType.INT32: "int32",
    DataType.INT64: "int64",
    DataType.INDEX: "int64",
    DataType.UINT8: "uint8",
    DataType.UINT16: "uint16",
    DataType.UINT32: "uint32",
    DataType.UINT64: "uint64",
    DataType.FP16: "float16",
    DataType.BF16: "bfloat16",
    DataType.FP32: "float32",
    DataType.FP8E4M3FN: "float8_e4m3fn",
    DataType.FP8E5M2: "float8_e5m2",
    DataType.FP8E8M0: "float8_e8m0fnu",
}

#: Comparison functions in ``cmp_type`` order.
COMPARE: tuple[Callable[[Any, Any], Any], ...] = (
    operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge,
)  # fmt: skip


def torch_dtype(dtype: DataType) -> torch.dtype:
    """The torch element type.

    Raises:
        NotImplementedError: torch has none.
    """
    import torch

    name = _TORCH_NAMES.get(dtype)
    if name is None or not hasattr(torch, name):
        raise NotImplementedError(f"torch has no element type for {dtype}")
    return getattr(torch, name)


def rounded(function: Callable[..., Any]) -> Callable[..., Any]:
    """``function`` evaluated in FP32 for half types and rounded back (operands of one type)."""

    def evaluate(*operands: Any) -> Any:
        import torch

        first = operands[0]
        if first.dtype not in (torch.float16, torch.bfloat16):
            return function(*operands)
        wide = [o.float() if isinstance(o, torch.Tensor) else o for o in operands]
        return function(*wide).to(first.dtype)

    return evaluate


def call(name: str, **fixed: Any) -> Callable[..., Any]:
    """``torch.<name>(*operands, **fixed)``."""

    def evaluate(*operands: Any) -> Any:
        import torch

        return getattr(torch, name)(*operands, **fixed)

    return evaluate


def scalar_like(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """``function(lhs, scalar)``: half types through FP32, a fractional scalar truncated next to integers."""

    def evaluate(lhs: Any, rhs: Any) -> Any:
        import torch

        if not lhs.dtype.is_floating_point:
            value = torch.as_tensor(int(rhs), dtype=lhs.dtype)
            return function(lhs, value).to(lhs.dtype)
        if lhs.dtype in (torch.float16, torch.bfloat16):
            value = torch.as_tensor(float(rhs), dtype=lhs.dtype).float()
            return function(lhs.float(), value).to(lhs.dtype)
        return function(lhs, torch.as_tensor(float(rhs), dtype=lhs.dtype))

    return evaluate


def divide(lhs: Any, rhs: Any, **_: Any) -> Any:
    """IEEE quotient of floats, truncating quotient of integers."""
    import torch

    if lhs.dtype.is_floating_point:
        return lhs / rhs
    return torch.div(lhs, rhs, rounding_mode="trunc")


def cast(value: Any, target_type: DataType, mode: int) -> Any:
    """Conversion with a rounding mode: saturating for float to integer, wrapping between integers."""
    import torch

    dtype = torch_dtype(target_type)
    if not value.dtype.is_floating_point or dtype.is_floating_point:
        return value.to(dtype)
    wide = round_to(value.double(), mode)
    limits = torch.iinfo(dtype)
    top = float(limits.max)
    clean = torch.nan_to_num(wide, nan=0.0, posinf=top, neginf=float(limits.min)).clamp(float(limits.min), top)
    exact = torch.where(clean >= top, torch.tensor(limits.max), clean.clamp(max=2.0**62).to(torch.int64))
    return exact.to(dtype)


def round_to(value: Any, mode: int) -> Any:
    """Floats rounded to whole numbers; modes none 0, rint 1, round 2, floor 3, ceil 4, trunc 5, odd 6."""
    import torch

    if mode == 1:
        return torch.round(value)
    if mode == 2:
        return torch.sign(value) * torch.floor(value.abs() + 0.5)
    if mode == 3:
        return torch.floor(value)
    if mode == 4:
        return torch.ceil(value)
    whole = torch.trunc(value)
    if mode == 6:
        inexact_even = (whole != value) & (torch.remainder(whole, 2) == 0)
        return torch.where(inexact_even, whole + torch.sign(value), whole)
    return whole


def pack_bits(mask: Any) -> Any:
    """A boolean ``[R, C]`` as bytes ``[R, C / 8 rounded up to 32]``: column c is bit ``c % 8`` of byte ``c // 8``."""
    import torch

    rows, cols = mask.shape
    width = (cols + 255) // 256 * 32
    bits = torch.zeros(rows, width * 8, dtype=torch.int32)
    bits[:, :cols] = mask
    weights = 2 ** torch.arange(8, dtype=torch.int32)
    return (bits.view(rows, width, 8) * weights).sum(-1).to(torch.uint8)


def unpack_bits(carrier: Any, cols: int) -> Any:
    """The first ``cols`` bits of each row of a packed mask, as booleans."""
    import torch

    octets = carrier.contiguous().view(torch.uint8).to(torch.int32)
    bits = (octets.unsqueeze(-1) >> torch.arange(8, dtype=torch.int32)) & 1
    return bits.reshape(carrier.shape[0], -1)[:, :cols].bool()


def pad_number(policy: Any, dtype: Any) -> float | int:
    """The number a PadValue stands for in a torch element type."""
    import torch

    if policy.name == "zero":
        return 0
    if dtype.is_floating_point:
        return float("inf") if policy.name == "max" else float("-inf")
    limits = torch.iinfo(dtype)
    return limits.max if policy.name == "max" else limits.min
