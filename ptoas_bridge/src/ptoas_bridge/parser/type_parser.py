"""Spellings of types to type objects (section 2 of the format): one cached lookup per distinct spelling."""

from __future__ import annotations

import re

from ..dialect import types as T

_LOCATIONS = ("vec", "mat", "left", "right", "acc", "bias", "scaling")
_KEY_VALUE_ORDER = ["loc", "dtype", "rows", "cols", "v_row", "v_col", "blayout", "slayout", "fractal", "pad", "compact"]
_OPAQUE = ("pipe", "async_session", "async_event", "prefetch_async_context")
_DIM = re.compile(r"(\?|-?\d+)x")
_COMMENT = re.compile(r"//[^\n]*")


class TypeSyntaxError(Exception):
    """A malformed type; `fragment` is the part of the spelling to point at."""

    def __init__(self, message: str, fragment: str = ""):
        super().__init__(message)
        self.message = message
        self.fragment = fragment


class TypeParser:
    """Parses type spellings for one architecture (the layout of `left` tiles depends on it)."""

    def __init__(self, arch: str):
        self.arch = arch
        self.cache: dict[str, T.Type] = dict(T.SCALARS)

    def parse(self, text: str) -> T.Type:
        """The type that `text` spells; raises TypeSyntaxError."""
        found = self.cache.get(text)
        if found is None:
            found = self.cache[text] = self._parse(_COMMENT.sub("", text).strip())
        return found

    def _parse(self, text: str) -> T.Type:
        if text.startswith("vector"):
            if text.replace(" ", "") == "vector<4xi16>":
                return T.MERGE_COUNTS
            raise TypeSyntaxError(f"unsupported type '{text}'; the only vector type is vector<4xi16>")
        if not text.startswith("!"):
            found = T.SCALARS.get(text)
            if found is None:
                raise TypeSyntaxError(f"unknown type '{text}'")
            return found
        name, _, body = text[1:].partition("<")
        name = name.strip().removeprefix("pto.")
        if not body:
            if name in _OPAQUE:
                return T.opaque(f"!pto.{name}")
            raise TypeSyntaxError(f"unknown type '!pto.{name}'")
        return self.parse_named(name, body[:-1].strip())

    def parse_named(self, name: str, body: str) -> T.Type:
        """The type `!pto.NAME<body>`."""
        method = getattr(self, f"_parse_{name}", None)
        if method is None:
            raise TypeSyntaxError(f"unknown type '!pto.{name}'")
        return method(body)

    def scalar(self, text: str) -> T.ScalarType:
        """An element type."""
        text = text.strip()
        found = T.SCALARS.get(text) or T.SCALARS.get("!pto." + text.removeprefix("!pto."))
        if found is None:
            raise TypeSyntaxError(f"unknown element type '{text}'", text)
        return found

    def _parse_ptr(self, body: str) -> T.Type:
        elem, _, space = body.partition(",")
        space = space.strip() or "gm"
        match = re.fullmatch(r"#pto(?:\.address_space<|<address_space\s+)(\w+)>", space)
        space = match.group(1) if match else space
        if space not in ("gm", "ub"):
            raise TypeSyntaxError(f"unknown pointer space '{space}', expected 'gm' or 'ub'", space)
        return T.ptr(self.scalar(elem), space)

    def _shape(self, body: str) -> tuple[tuple[int, ...], T.ScalarType]:
        dims, at = [], 0
        while match := _DIM.match(body, at):
            dims.append(T.DYNAMIC if match.group(1) == "?" else int(match.group(1)))
            at = match.end()
        return tuple(dims), self.scalar(body[at:])

    def _view_shape(self, body: str) -> tuple[tuple[int, ...], T.ScalarType]:
        dims, elem = self._shape(body.replace(" ", ""))
        if not 1 <= len(dims) <= 5:
            raise TypeSyntaxError(f"a view has 1 to 5 dimensions, got {len(dims)}", body)
        return dims, elem

    def _parse_tensor_view(self, body: str) -> T.Type:
        return T.tensor_view(*self._view_shape(body))

    def _parse_partition_tensor_view(self, body: str) -> T.Type:
        return T.partition_view(*self._view_shape(body))

    def _parse_tile_buf(self, body: str) -> T.TileType:
        fields = [f.strip() for f in split_top(body)]
        if fields[0].startswith("loc"):
            return self._key_value_tile(fields)
        return self._compact_tile(fields)

    def _key_value_tile(self, fields: list[str]) -> T.TileType:
        values: dict[str, str] = {}
        for position, field in enumerate(fields):
            key, equals, value = (part.strip() for part in field.partition("="))
            expected = _KEY_VALUE_ORDER[position] if position < len(_KEY_VALUE_ORDER) else ">"
            if not equals or key != expected:
                raise TypeSyntaxError(f"expected '{expected}' in tile_buf, got '{key}'", field)
            values[key] = value
        for key in _KEY_VALUE_ORDER[:-1]:
            if key not in values:
                raise TypeSyntaxError(f"expected '{key}' in tile_buf")
        return self._tile(
            values["loc"], values["dtype"], values["rows"], values["cols"], values["v_row"], values["v_col"], values
        )

    def _compact_tile(self, fields: list[str]) -> T.TileType:
        if len(fields) < 2:
            raise TypeSyntaxError("expected '<loc, ROWSxCOLSxDTYPE>' in tile_buf")
        shape = fields[1].replace(" ", "").split("x", 2)
        if len(shape) != 3:
            raise TypeSyntaxError(f"expected ROWSxCOLSxDTYPE in tile_buf, got '{fields[1]}'", fields[1])
        values: dict[str, str] = {}
        for field in fields[2:]:
            key, _, value = (part.strip() for part in field.partition("="))
            if key not in ("valid", "blayout", "slayout", "fractal", "pad", "compact"):
                raise TypeSyntaxError(f"unknown key in tile_buf compact syntax: {key}", field)
            if key in values:
                raise TypeSyntaxError(f"duplicate {key} in tile_buf compact syntax", field)
            values[key] = value
        v_row, v_col = shape[0], shape[1]
        if "valid" in values:
            v_row, _, v_col = values["valid"].replace(" ", "").partition("x")
        return self._tile(fields[0], shape[2], shape[0], shape[1], v_row, v_col, values)

    def _tile(self, loc, dtype_text, rows_text, cols_text, v_row_text, v_col_text, values) -> T.TileType:
        if loc not in _LOCATIONS:
            raise TypeSyntaxError(f"unknown loc: {loc}", loc)
        dtype = self.scalar(dtype_text)
        rows, cols = _integer(rows_text, "rows"), _integer(cols_text, "cols")
        if rows <= 0 or cols <= 0:
            raise TypeSyntaxError("tile_buf rows/cols must be positive")
        v_row, v_col = _valid(v_row_text, "v_row"), _valid(v_col_text, "v_col")
        if v_row > rows:
            raise TypeSyntaxError(f"tile_buf valid_row ({v_row}) exceeds row ({rows})", str(v_row_text))
        if v_col > cols:
            raise TypeSyntaxError(f"tile_buf valid_col ({v_col}) exceeds col ({cols})", str(v_col_text))
        blayout = values.get("blayout", "row_major")
        if blayout not in ("row_major", "col_major"):
            raise TypeSyntaxError(f"unknown blayout: {blayout}", blayout)
        slayout = values.get("slayout", "none_box")
        if slayout not in ("none_box", "row_major", "col_major"):
            raise TypeSyntaxError(f"unknown slayout: {slayout}", slayout)
        if loc == "left":
            blayout = "col_major" if self.arch == "a5" else "row_major"
        fractal = _integer(values.get("fractal", "512"), "fractal")
        if fractal not in (32, 512, 1024):
            raise TypeSyntaxError(
                f"unsupported s_fractal_size: {fractal}, must be one of {{32, 512, 1024}}", f"fractal={fractal}"
            )
        pad = _integer(values.get("pad", "0"), "pad")
        if not 0 <= pad <= 3:
            raise TypeSyntaxError(f"unknown pad: {pad}", f"pad={pad}")
        compact = _integer(values.get("compact", "0"), "compact")
        if not 0 <= compact <= 2:
            raise TypeSyntaxError(f"unknown compact: {compact}", f"compact={compact}")
        return T.tile(loc, dtype, rows, cols, v_row, v_col, blayout, slayout, fractal, pad, compact)

    def _parse_multi_tile_buf(self, body: str) -> T.Type:
        fields = [f.strip() for f in split_top(body)]
        key, _, count_text = (part.strip() for part in fields[-1].partition("="))
        if key != "count":
            raise TypeSyntaxError("expected 'count=N' at the end of multi_tile_buf", fields[-1])
        count = _integer(count_text, "count")
        if count < 2:
            raise TypeSyntaxError(f"multi_tile_buf count must be >= 2 (got {count})", fields[-1])
        if count > 16:
            raise TypeSyntaxError(f"multi_tile_buf count must be <= 16 (got {count})", fields[-1])
        if fields[0].startswith("!"):
            slot = self.parse(fields[0])
        else:
            slot = self._parse_tile_buf(", ".join(fields[:-1]))
        if not isinstance(slot, T.TileType):
            raise TypeSyntaxError("multi_tile_buf needs a tile_buf slot type", fields[0])
        return T.multi_tile(slot, count)

    def _parse_local_array(self, body: str) -> T.Type:
        dims, elem = self._shape(body.replace(" ", ""))
        if not dims or any(d <= 0 for d in dims):
            raise TypeSyntaxError("local_array dimensions must be static and positive", body)
        return T.local_array(dims, elem)

    def _parse_struct(self, body: str) -> T.Type:
        fields = tuple(self.parse(f.strip()) for f in split_top(body))
        for field in fields:
            if not isinstance(field, (T.ScalarType, T.StructType)) or field.text in ("index", "i1"):
                raise TypeSyntaxError(f"struct fields are sized scalars or structs, got '{field}'")
        return T.struct(fields)

    def _parse_eventid_array(self, body: str) -> T.Type:
        count = _integer(body, "eventid_array size")
        if count <= 0:
            raise TypeSyntaxError("eventid_array size must be positive", body)
        return T.event_array(count)

    def _parse_tile(self, body: str) -> T.Type:
        raise TypeSyntaxError("!pto.tile is reserved for value semantics; use !pto.tile_buf")


def split_top(body: str) -> list[str]:
    """Split at commas that are not inside `<...>`."""
    if "<" not in body:
        return body.split(",")
    parts, depth, start = [], 0, 0
    for at, char in enumerate(body):
        if char == "<":
            depth += 1
        elif char == ">":
            depth -= 1
        elif char == "," and depth == 0:
            parts.append(body[start:at])
            start = at + 1
    return parts + [body[start:]]


def _integer(text: str, what: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise TypeSyntaxError(f"expected an integer for {what}, got '{text}'", text) from None


def _valid(text: str, what: str) -> int:
    if text == "?":
        return T.DYNAMIC
    value = _integer(text, what)
    if value < -1:
        raise TypeSyntaxError(f"tile_buf {what} must be '?', -1 or non-negative, got {value}", text)
    return value
