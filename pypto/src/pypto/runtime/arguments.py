"""Arguments of a call: what a parameter accepts and how it reaches the task runtime."""

from __future__ import annotations

import ctypes
import functools
import numbers
import reprlib
from collections.abc import Sequence
from typing import Any

from pypto.artifact.sidecar import ParamInfo
from pypto.ir import DataType, ParamDirection

_CTYPES = {
    DataType.FP16: ctypes.c_float,
    DataType.BF16: ctypes.c_float,
    DataType.FP32: ctypes.c_float,
    DataType.INDEX: ctypes.c_int64,
    DataType.INT64: ctypes.c_int64,
    DataType.INT32: ctypes.c_int32,
    DataType.INT16: ctypes.c_int16,
    DataType.INT8: ctypes.c_int8,
    DataType.UINT64: ctypes.c_uint64,
    DataType.UINT32: ctypes.c_uint32,
    DataType.UINT16: ctypes.c_uint16,
    DataType.UINT8: ctypes.c_uint8,
    DataType.BOOL: ctypes.c_bool,
}


def torch_dtype(dtype: DataType) -> Any:
    """The torch dtype that carries an element type; 4-bit and exotic 8-bit floats travel as bytes."""
    return _torch_dtypes().get(dtype) or _torch_dtypes()[DataType.UINT8]


@functools.cache
def _torch_dtypes() -> dict[DataType, Any]:
    import torch

    return {
        DataType.FP32: torch.float32,
        DataType.FP16: torch.float16,
        DataType.BF16: torch.bfloat16,
        DataType.INT8: torch.int8,
        DataType.INT16: torch.int16,
        DataType.INT32: torch.int32,
        DataType.INT64: torch.int64,
        DataType.INDEX: torch.int64,
        DataType.UINT8: torch.uint8,
        DataType.UINT16: torch.uint16,
        DataType.UINT32: torch.uint32,
        DataType.UINT64: torch.uint64,
        DataType.BOOL: torch.bool,
        DataType.FP8E4M3FN: torch.float8_e4m3fn,
        DataType.FP8E5M2: torch.float8_e5m2,
        DataType.FP8E8M0: torch.float8_e8m0fnu,
    }


def split_arguments(
    params: Sequence[ParamInfo], args: Sequence[Any], has_return: bool, what: str = "CompiledProgram"
) -> tuple[list[Any], bool]:
    """All arguments in parameter order, and whether the outputs were allocated here (return style).

    Raises:
        TypeError: the number of arguments fits neither style.
        ValueError: return style with an output whose shape is only known at run time.
    """
    outputs = [i for i, p in enumerate(params) if p.direction is ParamDirection.Out]
    if len(args) == len(params):
        return list(args), False
    inputs = len(params) - len(outputs)
    if has_return and outputs and len(args) == inputs:
        import torch

        remaining = iter(args)
        full = []
        for index, param in enumerate(params):
            if index not in outputs:
                full.append(next(remaining))
                continue
            if any(d < 0 for d in param.shape or ()):
                raise ValueError(
                    f"output '{param.name}' has a run-time shape, so it cannot be allocated here; pass it in place"
                )
            full.append(torch.zeros(param.shape, dtype=torch_dtype(param.dtype)))
        return full, True
    styles = f"{len(params)} (in-place)" + (f" or {inputs} (return)" if has_return and outputs else "")
    names = [p.name for p in params]
    raise TypeError(f"{what} expects {styles} arguments, got {len(args)}. Parameters: {names}")


def check_argument(param: ParamInfo, position: int, value: Any) -> None:
    """A host argument of a call: :func:`check_tensor` or :func:`scalar_value` by the kind of the parameter."""
    if param.is_tensor:
        check_tensor(param, position, value)
    else:
        scalar_value(param, position, value)


def check_symbols(params: Sequence[ParamInfo], values: Sequence[Any]) -> None:
    """One run-time extent that several tensors share has one value; ``ValueError`` otherwise."""
    known: dict[str, tuple[int, str]] = {}
    for param, value in zip(params, values):
        for symbol, extent in zip(param.symbols, getattr(value, "shape", ())):
            if symbol is None:
                continue
            first, name = known.setdefault(symbol, (extent, param.name))
            if first != extent:
                raise ValueError(
                    f"parameters '{name}' and '{param.name}' share the run-time extent {symbol}, but got {first} and "
                    f"{extent}"
                )


def check_tensor(param: ParamInfo, position: int, value: Any) -> None:
    """A host tensor for a tensor parameter.

    Raises:
        TypeError: no tensor, or a tensor of another dtype.
        ValueError: wrong rank or extent, not contiguous, or not in CPU memory.
    """
    import torch

    if not isinstance(value, torch.Tensor):
        raise TypeError(
            f"parameter '{param.name}' (position {position}) expects a torch.Tensor, got {type(value).__name__}"
        )
    if value.device.type != "cpu":
        raise ValueError(
            f"Tensor at position {position} ('{param.name}') is on device '{value.device}'; move it to the CPU first"
        )
    if value.layout is not torch.strided:
        raise ValueError(
            f"Tensor at position {position} ('{param.name}') has layout {value.layout}; make it dense with .to_dense()"
        )
    if value.is_neg() or value.is_conj():
        raise ValueError(
            f"Tensor at position {position} ('{param.name}') is a lazy negation or conjugate, whose memory holds other "
            "values; call .resolve_neg() or .resolve_conj() first"
        )
    if not value.is_contiguous():
        raise ValueError(
            f"Tensor at position {position} is not contiguous. Call .contiguous() before packing into orch_args."
        )
    wanted = torch_dtype(param.dtype)
    if value.dtype != wanted and not _same_bytes(value.dtype, param.dtype):
        raise TypeError(
            f"parameter '{param.name}' (position {position}) expects dtype {wanted}, got {value.dtype}; "
            f"convert it with .to({wanted})"
        )
    shape = tuple(value.shape)
    if param.shape is not None and shape != param.shape and not _fits(shape, param.shape):
        wanted_text = ", ".join("?" if d < 0 else str(d) for d in param.shape)
        raise ValueError(
            f"parameter '{param.name}' (position {position}) expects shape [{wanted_text}], got {list(shape)}"
        )


def _fits(shape: tuple[int, ...], declared: tuple[int, ...]) -> bool:
    return len(shape) == len(declared) and all(d < 0 or s == d for s, d in zip(shape, declared))


def _same_bytes(given: Any, declared: DataType) -> bool:
    """Carriers that hold the bytes of an element type torch does not have, or the other signedness of one width."""
    import torch

    if declared in (DataType.FP4, DataType.HF4, DataType.HF8, DataType.FP8E8M0, DataType.INT4, DataType.UINT4):
        return given in (torch.uint8, torch.int8)
    if declared.is_int():
        return not given.is_floating_point and given.itemsize == declared.get_byte() and given != torch.bool
    if declared in (DataType.FP8E4M3FN, DataType.FP8E5M2):
        return given in (torch.uint8, torch.int8)
    return False


def scalar_value(param: ParamInfo, position: int, value: Any) -> Any:
    """A ctypes value for a scalar parameter.

    Raises:
        TypeError: a tensor, a ctypes value of another class, or anything that is no number.
    """
    kind = _CTYPES.get(param.dtype)
    if kind is None:
        raise TypeError(f"scalar parameter '{param.name}' has element type {param.dtype}, which cannot be passed")
    if isinstance(value, ctypes._SimpleCData):
        if not isinstance(value, kind):
            raise TypeError(
                f"scalar parameter '{param.name}' (position {position}) expects {kind.__name__}, "
                f"got {type(value).__name__}"
            )
        return value
    where = f"scalar parameter '{param.name}' (position {position})"
    if isinstance(value, numbers.Integral):
        number = int(value)
        try:
            carried = kind(number)
        except OverflowError:
            carried = None
        if carried is None or (kind not in (ctypes.c_float, ctypes.c_double) and carried.value != number):
            raise ValueError(f"{where} is {param.dtype}, which cannot hold {reprlib.repr(number)}")
        return carried
    if isinstance(value, numbers.Real):
        if kind not in (ctypes.c_float, ctypes.c_double):
            raise TypeError(f"{where} expects an integer, got {value}")
        return kind(float(value))
    raise TypeError(f"{where} expects a number of type {param.dtype}, got {type(value).__name__}")
