"""Element types: the codes shared with the C++ side, and how torch and numpy name them."""

from __future__ import annotations

from enum import IntEnum

MAX_TENSOR_DIMS = 5


class DataType(IntEnum):
    """Element type codes of ``data_type.h`` (BOOL has no public member)."""

    FLOAT32 = 0
    FLOAT16 = 1
    INT32 = 2
    INT16 = 3
    INT8 = 4
    UINT8 = 5
    BFLOAT16 = 6
    INT64 = 7
    UINT64 = 8
    UINT16 = 9
    UINT32 = 10
    FP8E4M3FN = 12
    FP8E8M0 = 13
    FP4E2M1 = 14


_SIZES = (4, 2, 4, 2, 1, 1, 2, 8, 8, 2, 4, 1, 1, 1, 1)
_NAMES = {code.value: code.name for code in DataType} | {11: "BOOL"}

_BY_LIBRARY_NAME = {
    "float32": DataType.FLOAT32,
    "float16": DataType.FLOAT16,
    "bfloat16": DataType.BFLOAT16,
    "int64": DataType.INT64,
    "int32": DataType.INT32,
    "int16": DataType.INT16,
    "int8": DataType.INT8,
    "uint64": DataType.UINT64,
    "uint32": DataType.UINT32,
    "uint16": DataType.UINT16,
    "uint8": DataType.UINT8,
    "bool": DataType.UINT8,
    "float8_e4m3fn": DataType.FP8E4M3FN,
    "float8_e8m0fnu": DataType.FP8E8M0,
    "float4_e2m1fn_x2": DataType.FP4E2M1,
}


def get_element_size(dtype: DataType | int) -> int:
    """Bytes of one element (a pair of values for FP4E2M1); 0 for a code outside the list."""
    code = int(dtype)
    return _SIZES[code] if 0 <= code < len(_SIZES) else 0


def get_dtype_name(dtype: DataType | int) -> str:
    return _NAMES.get(int(dtype), "UNKNOWN")


def torch_dtype_to_datatype(dtype: object) -> DataType:
    """The code of a torch (or numpy) dtype. Raises KeyError naming the dtype when there is none."""
    name = str(dtype).removeprefix("torch.")
    try:
        return _BY_LIBRARY_NAME[name]
    except KeyError:
        raise KeyError(f"no runtime element type for dtype {dtype}; known: {', '.join(_BY_LIBRARY_NAME)}") from None
