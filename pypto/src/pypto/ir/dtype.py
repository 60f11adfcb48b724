"""Element types."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import msgspec

_SIGNED, _UNSIGNED, _FLOAT, _BOOL, _TASK = "signed", "unsigned", "float", "bool", "task"


class DataType(msgspec.Struct, frozen=True, eq=False, gc=False):
    """One element type, a value object compared by its code.

    4-bit types pack two logical elements per byte; ``get_byte()`` answers 1 for them, so storage sizes must be
    computed from ``get_bit()``.
    """

    if TYPE_CHECKING:
        BOOL: ClassVar[DataType]
        INT4: ClassVar[DataType]
        INT8: ClassVar[DataType]
        INT16: ClassVar[DataType]
        INT32: ClassVar[DataType]
        INT64: ClassVar[DataType]
        INDEX: ClassVar[DataType]
        UINT4: ClassVar[DataType]
        UINT8: ClassVar[DataType]
        UINT16: ClassVar[DataType]
        UINT32: ClassVar[DataType]
        UINT64: ClassVar[DataType]
        FP4: ClassVar[DataType]
        FP8E4M3FN: ClassVar[DataType]
        FP8E5M2: ClassVar[DataType]
        FP16: ClassVar[DataType]
        FP32: ClassVar[DataType]
        FP8E8M0: ClassVar[DataType]
        BF16: ClassVar[DataType]
        HF4: ClassVar[DataType]
        HF8: ClassVar[DataType]
        TASK_ID: ClassVar[DataType]
        DEFAULT_CONST_INT: ClassVar[DataType]
        DEFAULT_CONST_FLOAT: ClassVar[DataType]

    _code: int
    _name: str
    _bits: int
    _kind: str
    _c_type: str = "unknown"

    def get_bit(self) -> int:
        return self._bits

    def get_byte(self) -> int:
        return (self._bits + 7) // 8

    def to_string(self) -> str:
        return self._name

    __str__ = to_string
    __repr__ = to_string

    def to_c_type_string(self) -> str:
        """C type used in generated code, ``"unknown"`` for element types without one."""
        return self._c_type

    def is_float(self) -> bool:
        return self._kind == _FLOAT

    def is_signed_int(self) -> bool:
        return self._kind == _SIGNED

    def is_unsigned_int(self) -> bool:
        return self._kind == _UNSIGNED

    def is_int(self) -> bool:
        return self._kind in (_SIGNED, _UNSIGNED)

    def code(self) -> int:
        return self._code

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DataType) and self._code == other._code

    def __hash__(self) -> int:
        return hash(("DataType", self._code))

    @staticmethod
    def from_code(code: int) -> DataType:
        """The element type with this integer code; ``ValueError`` when there is none."""
        try:
            return _BY_CODE[code]
        except KeyError:
            raise ValueError(f"unknown element type code {code:#x}") from None

    @staticmethod
    def from_string(name: str) -> DataType:
        """The element type whose ``to_string()`` is ``name``; ``ValueError`` when there is none."""
        try:
            return _BY_NAME[name]
        except KeyError:
            raise ValueError(f"unknown element type '{name}'") from None


# constant name, code, printed name, bits, kind, C type
_TABLE = [
    ("BOOL", 0x00, "bool", 1, _BOOL, "bool"),
    ("INT4", 0x10, "int4", 4, _SIGNED, "unknown"),
    ("INT8", 0x11, "int8", 8, _SIGNED, "int8_t"),
    ("INT16", 0x12, "int16", 16, _SIGNED, "int16_t"),
    ("INT32", 0x13, "int32", 32, _SIGNED, "int32_t"),
    ("INT64", 0x14, "int64", 64, _SIGNED, "int64_t"),
    ("INDEX", 0x15, "index", 64, _SIGNED, "int64_t"),
    ("UINT4", 0x20, "uint4", 4, _UNSIGNED, "unknown"),
    ("UINT8", 0x21, "uint8", 8, _UNSIGNED, "uint8_t"),
    ("UINT16", 0x22, "uint16", 16, _UNSIGNED, "uint16_t"),
    ("UINT32", 0x23, "uint32", 32, _UNSIGNED, "uint32_t"),
    ("UINT64", 0x24, "uint64", 64, _UNSIGNED, "uint64_t"),
    ("FP4", 0x30, "fp4", 4, _FLOAT, "float4_e2m1x2_t"),
    ("FP8E4M3FN", 0x31, "fp8e4m3fn", 8, _FLOAT, "float8_e4m3_t"),
    ("FP8E5M2", 0x32, "fp8e5m2", 8, _FLOAT, "float8_e5m2_t"),
    ("FP16", 0x33, "fp16", 16, _FLOAT, "half"),
    ("FP32", 0x34, "fp32", 32, _FLOAT, "float"),
    ("FP8E8M0", 0x36, "fp8e8m0", 8, _FLOAT, "float8_e8m0_t"),
    ("BF16", 0x40, "bfloat16", 16, _FLOAT, "bfloat16_t"),
    ("HF4", 0x41, "hf4", 4, _FLOAT, "unknown"),
    ("HF8", 0x42, "hf8", 8, _FLOAT, "unknown"),
    ("TASK_ID", 0x50, "task_id", 64, _TASK, "unknown"),
]

#: Constant name -> element type, in code order.
DTYPES: dict[str, DataType] = {}
for _const, *_fields in _TABLE:
    DTYPES[_const] = DataType(*_fields)
    setattr(DataType, _const, DTYPES[_const])
_BY_CODE = {dtype.code(): dtype for dtype in DTYPES.values()}
_BY_CODE[0x35] = DataType(0x35, "fp64", 64, _FLOAT, "double")  # reserved: readable, without a constant
_BY_NAME = {dtype.to_string(): dtype for dtype in _BY_CODE.values()}
#: Element type -> constant name, as printed after ``pl.``.
DTYPE_CONSTANT = {dtype: const for const, dtype in DTYPES.items()}
DataType.DEFAULT_CONST_INT = DataType.INT64
DataType.DEFAULT_CONST_FLOAT = DataType.FP32
