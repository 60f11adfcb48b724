"""C++ spellings of dialect types, enumeration values and literals."""

from __future__ import annotations

import math
import struct

from ..dialect import types as T
from ..dialect.enums import EnumAttr
from ..errors import UnsupportedFeatureError

_TILE_TYPES = {
    "vec": "Vec", "mat": "Mat", "left": "Left", "right": "Right", "acc": "Acc", "bias": "Bias", "scaling": "Scaling",
}  # fmt: skip
_B_LAYOUT = {"row_major": "BLayout::RowMajor", "col_major": "BLayout::ColMajor"}
_S_LAYOUT = {"none_box": "SLayout::NoneBox", "row_major": "SLayout::RowMajor", "col_major": "SLayout::ColMajor"}
_PAD = ("PadValue::Null", "PadValue::Zero", "PadValue::Max", "PadValue::Min")
_COMPACT = ("CompactMode::Null", "CompactMode::Normal", "CompactMode::RowPlusOne")
_TILE_CACHE: dict[T.TileType, str] = {}


def tile_type(tile: T.TileType) -> str:
    """`Tile<TileType::Vec, float, 32, 32, ...>` with every parameter spelled out."""
    text = _TILE_CACHE.get(tile)
    if text is None:
        location = _TILE_TYPES[tile.loc]
        if tile.loc == "scaling" and tile.fractal == 32:
            location = "ScaleLeft" if tile.slayout == "row_major" else "ScaleRight"
        text = _TILE_CACHE[tile] = (
            f"Tile<TileType::{location}, {tile.dtype.cpp}, {tile.rows}, {tile.cols}, {_B_LAYOUT[tile.blayout]}, "
            f"{tile.v_row}, {tile.v_col}, {_S_LAYOUT[tile.slayout]}, {tile.fractal}, "
            f"{_PAD[tile.pad]}, {_COMPACT[tile.compact]}>"
        )
    return text


def cpp_type(type_: T.Type) -> str:
    """The C++ type of a value that a variable, parameter or result can hold."""
    if isinstance(type_, T.ScalarType):
        return type_.cpp
    if isinstance(type_, T.PtrType):
        return f"{'__ubuf__' if type_.space == 'ub' else '__gm__'} {type_.elem.cpp}*"
    if isinstance(type_, T.TileType):
        return tile_type(type_)
    if isinstance(type_, T.StructType):
        return type_.cpp
    if isinstance(type_, T.EventArrayType):
        return f"PTOAS_EventIdArray<{type_.count}>"
    named = {
        "vector<4xi16>": "pto::MrgSortExecutedNumList",
        "!pto.async_session": "pto::comm::AsyncSession",
        "!pto.async_event": "pto::comm::AsyncEvent",
        "!pto.prefetch_async_context": "pto::PrefetchAsyncContext",
    }.get(type_.text)
    if named is None:
        raise UnsupportedFeatureError(f"needs a C++ variable of type {type_}, which none can hold")
    return named


def unsigned(type_: T.ScalarType) -> str:
    """The unsigned C++ type of the same width."""
    return "bool" if type_.bits == 1 else f"uint{type_.bytes * 8}_t"


def literal(value: int | float | bool, type_: T.ScalarType) -> str:
    """A C++ expression of exactly this constant."""
    if type_.text == "i1":
        return "true" if value else "false"
    if type_.is_float:
        return _float_literal(float(value), type_)
    bits = type_.bits
    value = int(value) & ((1 << bits) - 1)
    if type_.signed and value >= 1 << (bits - 1):
        value -= 1 << bits
    if value == -(1 << 63):
        return "(-9223372036854775807 - 1)"
    if value == -(1 << 31):
        return "(-2147483647 - 1)"
    if value >= 1 << 63:
        return f"{value}u"
    return str(value)


def _float_literal(value: float, type_: T.ScalarType) -> str:
    if math.isnan(value):
        text = '__builtin_nanf("")'
    elif math.isinf(value):
        text = "-__builtin_inff()" if value < 0 else "__builtin_inff()"
    elif type_.text == "f64":
        return repr(value)
    else:
        text = _shortest_float32(value) + "f"
    return text if type_.text == "f32" else f"({type_.cpp}) {text}"


def _shortest_float32(value: float) -> str:
    """The shortest decimal that reads back as the same 32-bit float."""
    try:
        packed = struct.pack("<f", value)
    except OverflowError:
        return repr(value)
    target = struct.unpack("<f", packed)[0]
    for digits in range(6, 10):
        text = f"{target:.{digits}g}"
        if struct.pack("<f", float(text)) == packed:
            break
    return text if any(c in text for c in ".e") else text + ".0"


def camel(word: str) -> str:
    """`normal_relu` -> `NormalRelu`."""
    return "".join(part.capitalize() for part in word.split("_"))


def enum_value(attr: EnumAttr) -> str:
    """The C++ enumerator of an attribute value."""
    kind, value = attr
    if kind == "cmp":
        return f"CmpMode::{value.upper()}"
    if kind == "round_mode":
        return f"RoundMode::CAST_{value}" if value != "CAST_RINT" else "RoundMode::CAST_RINT"
    if kind == "saturation_mode":
        return f"SaturationMode::{value}"
    if kind == "mask_pattern":
        return f"MaskPattern::{value}"
    prefix = {
        "st_phase": "STPhase",
        "acc_phase": "pto::AccPhase",
        "atomic_type": "AtomicType",
        "relu_pre_mode": "ReluPreMode",
        "acc_to_vec_mode": "pto::AccToVecMode",
        "coalesce": "pto::Coalesce",
        "gather_oob": "pto::GatherOOB",
        "scatter_oob": "pto::ScatterOOB",
        "scatter_atomic_op": "pto::ScatterAtomicOp",
        "scatter_conflict": "pto::ScatterConflict",
        "notify_op": "pto::comm::NotifyOp",
        "reduce_op": "pto::comm::ReduceOp",
        "quant_scale_alg": "pto::QuantScaleAlg",
        "mx_group_axis": "pto::MxGroupAxis",
        "sync_core_type": "SyncCoreType",
        "sync_all_mode": "SyncAllMode",
    }.get(kind)
    if kind == "wait_cmp":
        return f"pto::comm::WaitCmp::{value.upper()}"
    if kind == "quant_type":
        return f"pto::QuantType::{value}"
    if prefix is None:
        raise UnsupportedFeatureError(f"uses #pto.{kind}, which has no C++ spelling")
    special = {"aiv_only": "AIVOnly", "aic_only": "AICOnly"}
    return f"{prefix}::{special.get(value, camel(value))}"
