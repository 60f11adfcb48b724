"""How a sample call of an operator is drawn and made: operands of a drawn size and element type, and what to expect.

``SAMPLES[name](Draw(...))`` gives a :class:`Sample`; its reference is written with numpy and knows nothing of the
definition it checks. The samples stand in ``samples_compute`` and ``samples_data``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from pypto.ir import DataType, MemorySpace, TensorType, TileType, Var
from pypto.ops import get_op
from pypto.ops.functions import emit

from pypto import ir

FP32, FP16, BF16 = DataType.FP32, DataType.FP16, DataType.BF16
INT8, INT16, INT32, UINT8, UINT16, UINT32 = (
    DataType.INT8, DataType.INT16, DataType.INT32, DataType.UINT8, DataType.UINT16, DataType.UINT32,
)  # fmt: skip
TORCH = {
    FP32: torch.float32, FP16: torch.float16, BF16: torch.bfloat16, INT8: torch.int8, INT16: torch.int16,
    INT32: torch.int32, UINT8: torch.uint8, UINT16: torch.uint16, UINT32: torch.uint32,
    DataType.FP8E4M3FN: torch.float8_e4m3fn, DataType.FP8E8M0: torch.float8_e8m0fnu,
}  # fmt: skip
DTYPE_OF = {v: k for k, v in TORCH.items()} | {torch.int64: DataType.INT64, torch.bool: DataType.BOOL}
BASIC, FLOATS, HALVES = (FP32, FP16, INT16, INT32), (FP32, FP16), (FP32, FP16, BF16)
BITS = (INT16, INT32, UINT16)


@dataclass(frozen=True)
class Number:
    """A scalar operand with its own element type."""

    number: int | float
    dtype: DataType


@dataclass
class Sample:
    """Operands in IR order (None: left out), attributes, and the expected value of a numpy expression."""

    name: str
    operands: list[Any]
    attrs: dict[str, Any] = field(default_factory=dict)
    expected: Any = None
    valid: tuple[tuple[int, ...] | None, ...] = ()

    def call(self) -> ir.Call:
        """The IR call with its deduced type."""
        definition = get_op(self.name)
        params = definition.params
        operands = []
        for index, value in enumerate(self.operands):
            param = params[min(index, len(params) - 1)]
            if value is None:
                continue
            if isinstance(value, Number):
                constant = ir.ConstFloat if value.dtype.is_float() else ir.ConstInt
                operands.append(constant(value.number, value.dtype))
            elif isinstance(value, torch.Tensor):
                space = MemorySpace.Vec
                if definition.memory is not None and index < len(definition.memory.inputs):
                    space = (definition.memory.inputs[index] or (space,))[0]
                operands.append(self._variable(param.kind, index, value, space))
            else:
                operands.append(value)
        return emit(definition, operands, self.attrs, ir.Span.unknown())

    def _variable(self, kind: str, index: int, value: torch.Tensor, space: MemorySpace) -> Var:
        dtype = DTYPE_OF[value.dtype]
        valid = self.valid[index] if index < len(self.valid) else None
        if kind.startswith("tile") and not self.name.startswith("tensor."):
            view = None
            if valid is not None:
                base = TileType(list(value.shape), dtype, None, None, space).get_effective_tile_view()
                view = ir.TileView(
                    valid_shape=list(valid), blayout=base.blayout, slayout=base.slayout, fractal=base.fractal
                )
            return Var(f"t{index}", TileType(list(value.shape), dtype, None, view, space))
        return Var(f"x{index}", TensorType(list(value.shape), dtype))

    def value(self) -> Any:
        """What the definition computes."""
        operands = [o.number if isinstance(o, Number) else o for o in self.operands]
        return get_op(self.name).torch(*operands, **self.attrs)


class Draw:
    """Sizes, an element type among those an operator takes, and reproducible cells."""

    def __init__(self, rows: int = 4, cols: int = 16, choice: int = 0, seed: int = 0):
        self.rows, self.cols, self.choice = rows, cols, choice
        self.random = np.random.default_rng(seed)

    def dtype(self, allowed: tuple[DataType, ...]) -> DataType:
        return allowed[self.choice % len(allowed)]

    def cells(self, dtype: DataType, *shape: int, low: float = -8, high: float = 8, zero: bool = True) -> torch.Tensor:
        """Eighths for floats, whole numbers for integers, in ``[low, high]``."""
        shape = shape or (self.rows, self.cols)
        if dtype.is_float():
            numbers = self.random.integers(math.ceil(low * 8), int(high * 8) + 1, shape) / 8
            numbers = numbers if zero else np.where(numbers == 0, 0.5, numbers)
            return torch.from_numpy(np.asarray(numbers, dtype=np.float32)).to(TORCH[dtype])
        low = 0 if dtype.is_unsigned_int() else int(low)
        numbers = self.random.integers(low, int(high) + 1, shape)
        numbers = numbers if zero else np.where(numbers == 0, 1, numbers)
        return torch.from_numpy(numbers).to(TORCH[dtype])

    def scalar(self, dtype: DataType) -> float | int:
        return 2.5 if dtype.is_float() else 3


def array(value: Any) -> Any:
    """A torch tensor as numpy: floats in double precision, integers in their own width."""
    if not isinstance(value, torch.Tensor):
        return value
    return value.double().numpy() if value.dtype.is_floating_point else value.numpy()


#: Operator -> builder of a sample.
SAMPLES: dict[str, Callable[..., Sample]] = {}


def sample(*names: str) -> Callable[[Callable[[str, Draw], tuple]], Any]:
    """Register ``build(name, draw) -> (operands, attrs, expected[, valid])`` for operators."""

    def register(build: Callable[[str, Draw], tuple]) -> Any:
        for name in names:

            def make(draw: Draw | None = None, name: str = name) -> Sample:
                return Sample(name, *build(name, draw or Draw()))

            SAMPLES[name] = make
        return build

    return register


def levels(*leaves: str) -> list[str]:
    return [f"{level}.{leaf}" for leaf in leaves for level in ("tile", "tensor")]


def leaf_of(name: str) -> str:
    return name.partition(".")[2]


#: Relative and absolute distance that an element type allows, a few units in the last place.
TOLERANCE = {torch.float32: 4e-6, torch.float16: 2e-3, torch.bfloat16: 1.6e-2}


def as_numbers(value: torch.Tensor) -> np.ndarray:
    return np.asarray(array(value))
