"""Types of the PTO dialect. Equal types are one object, so `is` compares them."""

from __future__ import annotations

from typing import Any, TypeVar

_INTERNED: dict[Any, Any] = {}
_T = TypeVar("_T", bound="Type")

DYNAMIC = -1


class Type:
    """Base of all types; `text` is the canonical spelling."""

    __slots__ = ("text",)
    text: str

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"<{self.text}>"


def _intern(key: tuple, make) -> Any:
    found = _INTERNED.get(key)
    if found is None:
        found = _INTERNED.setdefault(key, make())
    return found


class ScalarType(Type):
    """An element type: `kind` is index, int, float or packed; `bytes` is its storage (FP4 pairs count one byte)."""

    __slots__ = ("bits", "bytes", "cpp", "kind", "signed", "signless")

    def __init__(self, text: str, cpp: str, nbytes: int, kind: str, *, signed: bool = True, signless: bool = True):
        self.text = text
        self.cpp = cpp
        self.bytes = nbytes
        self.bits = 1 if text == "i1" else nbytes * 8
        self.kind = kind
        self.signed = signed
        self.signless = signless

    @property
    def is_float(self) -> bool:
        return self.kind == "float"

    @property
    def is_integer(self) -> bool:
        return self.kind in ("int", "index")

    @property
    def key(self) -> str:
        """Name used in dtype tables: signedness does not matter for signed integers (`si32` is `i32`)."""
        return self.text[1:] if self.text.startswith("si") else self.text.removeprefix("!pto.")


def _scalars() -> dict[str, ScalarType]:
    table = [ScalarType("index", "int64_t", 8, "index"), ScalarType("i1", "bool", 1, "int", signed=False)]
    for bits in (8, 16, 32, 64):
        table.append(ScalarType(f"i{bits}", f"int{bits}_t", bits // 8, "int"))
        table.append(ScalarType(f"si{bits}", f"int{bits}_t", bits // 8, "int", signless=False))
        table.append(ScalarType(f"ui{bits}", f"uint{bits}_t", bits // 8, "int", signed=False, signless=False))
    for text, cpp, size in (("f16", "half", 2), ("bf16", "bfloat16_t", 2), ("f32", "float", 4), ("f64", "double", 8)):
        table.append(ScalarType(text, cpp, size, "float"))
    table.append(ScalarType("f8E4M3FN", "float8_e4m3_t", 1, "float"))
    table.append(ScalarType("f8E5M2", "float8_e5m2_t", 1, "float"))
    for name, cpp, size in (
        ("hif8", "hifloat8_t", 1),
        ("f8E8M0", "float8_e8m0_t", 1),
        ("f4E1M2x2", "float4_e1m2x2_t", 1),
        ("f4E2M1x2", "float4_e2m1x2_t", 1),
        ("hif8x2", "hifloat8x2_t", 2),
        ("bf16x2", "bfloat16x2_t", 4),
    ):
        table.append(ScalarType(f"!pto.{name}", cpp, size, "packed"))
    return {t.text: t for t in table}


SCALARS: dict[str, ScalarType] = _scalars()
INDEX = SCALARS["index"]
I1 = SCALARS["i1"]
I32 = SCALARS["i32"]
I64 = SCALARS["i64"]
F32 = SCALARS["f32"]


class PtrType(Type):
    """`!pto.ptr<elem, space>`: a pointer to global memory (`gm`) or to the unified buffer (`ub`)."""

    __slots__ = ("elem", "space")

    def __init__(self, elem: ScalarType, space: str):
        self.elem = elem
        self.space = space
        self.text = f"!pto.ptr<{elem}, {space}>"


def ptr(elem: ScalarType, space: str = "gm") -> PtrType:
    return _intern(("ptr", elem, space), lambda: PtrType(elem, space))


def shape_text(dims: tuple[int, ...], elem: ScalarType) -> str:
    return "x".join(["?" if d == DYNAMIC else str(d) for d in dims] + [elem.text])


class ViewType(Type):
    """A global-memory view; `dims` holds extents, DYNAMIC (-1) where the text says `?`."""

    __slots__ = ("dims", "elem")
    keyword = ""

    def __init__(self, dims: tuple[int, ...], elem: ScalarType):
        self.dims = dims
        self.elem = elem
        self.text = f"!pto.{self.keyword}<{shape_text(dims, elem)}>"


class TensorViewType(ViewType):
    """`!pto.tensor_view<...>`: a whole tensor with shape and strides."""

    __slots__ = ()
    keyword = "tensor_view"


class PartitionViewType(ViewType):
    """`!pto.partition_tensor_view<...>`: a window of a tensor view."""

    __slots__ = ()
    keyword = "partition_tensor_view"


def tensor_view(dims: tuple[int, ...], elem: ScalarType) -> TensorViewType:
    return _intern(("tv", dims, elem), lambda: TensorViewType(dims, elem))


def partition_view(dims: tuple[int, ...], elem: ScalarType) -> PartitionViewType:
    return _intern(("pv", dims, elem), lambda: PartitionViewType(dims, elem))


class TileType(Type):
    """`!pto.tile_buf<...>`: an on-chip tile; valid extents are DYNAMIC (-1) when only known at run time."""

    __slots__ = (
        "blayout", "bytes", "cols", "compact", "dtype", "fractal", "loc", "pad", "rows", "slayout", "v_col", "v_row",
    )  # fmt: skip

    def __init__(self, loc, dtype, rows, cols, v_row, v_col, blayout, slayout, fractal, pad, compact):
        self.loc: str = loc
        self.dtype: ScalarType = dtype
        self.rows: int = rows
        self.cols: int = cols
        self.v_row: int = v_row
        self.v_col: int = v_col
        self.blayout: str = blayout
        self.slayout: str = slayout
        self.fractal: int = fractal
        self.pad: int = pad
        self.compact: int = compact
        self.bytes: int = rows * cols * dtype.bytes
        self.text = _tile_text(self)

    @property
    def boxed(self) -> bool:
        return self.slayout != "none_box"

    @property
    def inner_box(self) -> tuple[int, int]:
        """Rows and columns of one fractal (1, 1 for plain tiles)."""
        if not self.boxed:
            return 1, 1
        lane = max(32 // self.dtype.bytes, 1)
        box = {512: (16, lane), 1024: (16, 16), 32: (16, 2)}[self.fractal]
        return box if self.slayout == "row_major" else (box[1], box[0])

    @property
    def dynamic(self) -> bool:
        return self.v_row == DYNAMIC or self.v_col == DYNAMIC

    def fields(self) -> tuple:
        return (
            self.loc, self.dtype, self.rows, self.cols, self.v_row, self.v_col,
            self.blayout, self.slayout, self.fractal, self.pad, self.compact,
        )  # fmt: skip

    def with_(self, **changes) -> TileType:
        """The same type with some fields replaced."""
        names = (
            "loc", "dtype", "rows", "cols", "v_row", "v_col", "blayout", "slayout", "fractal", "pad", "compact",
        )  # fmt: skip
        return tile(*(changes.get(name, value) for name, value in zip(names, self.fields())))


def tile(
    loc: str,
    dtype: ScalarType,
    rows: int,
    cols: int,
    v_row: int | None = None,
    v_col: int | None = None,
    blayout: str = "row_major",
    slayout: str = "none_box",
    fractal: int = 512,
    pad: int = 0,
    compact: int = 0,
) -> TileType:
    """The tile type with these fields; valid extents default to the physical ones."""
    v_row = rows if v_row is None else v_row
    v_col = cols if v_col is None else v_col
    key = (loc, dtype, rows, cols, v_row, v_col, blayout, slayout, fractal, pad, compact)
    return _intern(("tile", *key), lambda: TileType(*key))


def _tile_text(t: TileType) -> str:
    """Compact spelling: trailing keys only where they differ from the defaults."""
    parts = [t.loc, f"{t.rows}x{t.cols}x{t.dtype}"]
    if (t.v_row, t.v_col) != (t.rows, t.cols):
        parts.append("valid=" + "x".join("?" if v == DYNAMIC else str(v) for v in (t.v_row, t.v_col)))
    for key, value, default in (
        ("blayout", t.blayout, "row_major"),
        ("slayout", t.slayout, "none_box"),
        ("fractal", t.fractal, 512),
        ("pad", t.pad, 0),
        ("compact", t.compact, 0),
    ):
        if value != default:
            parts.append(f"{key}={value}")
    return f"!pto.tile_buf<{', '.join(parts)}>"


class MultiTileType(Type):
    """`!pto.multi_tile_buf<TB, count=N>`: N slots of one tile type."""

    __slots__ = ("count", "slot")

    def __init__(self, slot: TileType, count: int):
        self.slot = slot
        self.count = count
        self.text = f"!pto.multi_tile_buf<{slot}, count={count}>"


def multi_tile(slot: TileType, count: int) -> MultiTileType:
    return _intern(("multi", slot, count), lambda: MultiTileType(slot, count))


class LocalArrayType(Type):
    """`!pto.local_array<D1x...xT>`: a C++ stack array."""

    __slots__ = ("dims", "elem")

    def __init__(self, dims: tuple[int, ...], elem: ScalarType):
        self.dims = dims
        self.elem = elem
        self.text = f"!pto.local_array<{shape_text(dims, elem)}>"


def local_array(dims: tuple[int, ...], elem: ScalarType) -> LocalArrayType:
    return _intern(("array", dims, elem), lambda: LocalArrayType(dims, elem))


class StructType(Type):
    """`!pto.struct<T0, ..., Tn>`: a C++ stack struct; fields are scalars or structs."""

    __slots__ = ("fields",)

    def __init__(self, fields: tuple[Type, ...]):
        self.fields = fields
        self.text = f"!pto.struct<{', '.join(f.text for f in fields)}>"

    @property
    def cpp(self) -> str:
        return "PtoStruct_" + "_".join(f.cpp if isinstance(f, (ScalarType, StructType)) else "" for f in self.fields)


def struct(fields: tuple[Type, ...]) -> StructType:
    return _intern(("struct", fields), lambda: StructType(fields))


class EventArrayType(Type):
    """`!pto.eventid_array<N>`: an array of hardware event ids."""

    __slots__ = ("count",)

    def __init__(self, count: int):
        self.count = count
        self.text = f"!pto.eventid_array<{count}>"


def event_array(count: int) -> EventArrayType:
    return _intern(("events", count), lambda: EventArrayType(count))


class OpaqueType(Type):
    """A handle without structure: pipes, asynchronous sessions and events, vectors of merge counts."""

    __slots__ = ()

    def __init__(self, text: str):
        self.text = text


def opaque(text: str) -> OpaqueType:
    return _intern(("opaque", text), lambda: OpaqueType(text))


MERGE_COUNTS = opaque("vector<4xi16>")
