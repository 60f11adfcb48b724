"""``compiled_meta.json``: the parameters of an artifact, so that it can be called without its IR."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec

from pypto.artifact.layout import SIDECAR, write_atomically
from pypto.backend import BackendType
from pypto.ir import DataType, Function, ParamDirection, TensorType
from pypto.ir.expr import ConstInt, Var

SCHEMA = 1


class ParamInfo(msgspec.Struct, frozen=True):
    """One parameter: shape with -1 for run-time extents, None for a scalar.

    ``symbols`` names the run-time extents that several parameters may share; it is empty when there are none.
    """

    name: str
    direction: ParamDirection
    shape: tuple[int, ...] | None
    dtype: DataType
    symbols: tuple[str | None, ...] = ()

    @property
    def is_tensor(self) -> bool:
        return self.shape is not None


class ArtifactMeta(msgspec.Struct, frozen=True):
    """What the sidecar holds."""

    params: tuple[ParamInfo, ...]
    num_return_types: int
    platform: str
    backend_type: BackendType


def params_of(function: Function) -> tuple[ParamInfo, ...]:
    """Parameters of an entry function; 4-bit floats are carried as pairs, so their last extent is halved."""
    found, owners = [], dict[str, Var]()
    for param, direction in zip(function.params, function.param_directions):
        name = param.name_hint.split("__ssa_v")[0]
        kind = param.type
        if isinstance(kind, TensorType):
            shape = [d.value if isinstance(d, ConstInt) else -1 for d in kind.shape]
            if kind.dtype == DataType.FP4 and shape and shape[-1] > 0:
                shape[-1] //= 2
            symbols = tuple(_symbol(d, owners) if isinstance(d, Var) else None for d in kind.shape)
            if kind.dtype == DataType.FP4:
                symbols = (*symbols[:-1], None)  # pairs: the extent of the carrier is not the one the symbol means
            found.append(ParamInfo(name, direction, tuple(shape), kind.dtype, symbols if any(symbols) else ()))
        else:
            found.append(ParamInfo(name, direction, None, getattr(kind, "dtype", DataType.UINT64)))
    return tuple(found)


def _symbol(extent: Var, owners: dict[str, Var]) -> str | None:
    """The name of a run-time extent; None for one that another variable has taken."""
    return extent.name_hint if owners.setdefault(extent.name_hint, extent) is extent else None


def write_sidecar(root: Path, meta: ArtifactMeta) -> None:
    record = {
        "schema": SCHEMA,
        "params": [
            {
                "name": p.name,
                "direction": p.direction.name,
                "shape": None if p.shape is None else list(p.shape),
                "dtype": p.dtype.to_string(),
                **({"symbols": list(p.symbols)} if p.symbols else {}),
            }
            for p in meta.params
        ],
        "num_return_types": meta.num_return_types,
        "platform": meta.platform,
        "backend_type": meta.backend_type.name,
    }
    write_atomically(root / SIDECAR, json.dumps(record, indent=2))


def read_sidecar(root: Path) -> ArtifactMeta:
    """The sidecar of an artifact.

    Raises:
        FileNotFoundError: there is none.
        ValueError: it is damaged or of another schema; the text advises to recompile.
    """
    path = root / SIDECAR
    if not path.is_file():
        raise FileNotFoundError(f"{path} not found: not a compiled program, or compiled by an older version")
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, UnicodeDecodeError) as error:
        raise _invalid(path, f"not JSON ({error})") from error
    if not isinstance(record, dict):
        raise _invalid(path, "not an object")
    schema = _field(record, path, "schema", int)
    if schema != SCHEMA:
        raise ValueError(f"Incompatible {SIDECAR} schema {schema} (expected {SCHEMA}) in {path}; recompile the program")
    params = tuple(_param(item, path) for item in _field(record, path, "params", list))
    count = _field(record, path, "num_return_types", int)
    platform = _field(record, path, "platform", str)
    backend = _field(record, path, "backend_type", str)
    if backend not in BackendType.__members__:
        raise _invalid(path, f"unknown backend_type '{backend}'")
    return ArtifactMeta(params, count, platform, BackendType[backend])


def _invalid(path: Path, reason: str) -> ValueError:
    return ValueError(f"Invalid {SIDECAR} in {path}: {reason}; recompile the program")


def _field(record: dict, path: Path, key: str, kind: type) -> Any:
    if key not in record:
        raise _invalid(path, f"missing key '{key}'")
    value = record[key]
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise _invalid(path, f"'{key}' must be {kind.__name__}, got {type(value).__name__}")
    return value


def _param(item: Any, path: Path) -> ParamInfo:
    if not isinstance(item, dict):
        raise _invalid(path, "a parameter is not an object")
    name, direction, dtype = (_field(item, path, key, str) for key in ("name", "direction", "dtype"))
    if "shape" not in item:
        raise _invalid(path, f"parameter '{name}' has no 'shape'")
    shape = item["shape"]
    if shape is not None and not (
        isinstance(shape, list) and all(isinstance(d, int) and not isinstance(d, bool) for d in shape)
    ):
        raise _invalid(path, f"the shape of parameter '{name}' must be a list of integers or null")
    if direction not in ParamDirection.__members__:
        raise _invalid(path, f"unknown direction '{direction}'")
    try:
        kind = DataType.from_string(dtype)
    except ValueError as error:
        raise _invalid(path, str(error)) from error
    symbols = item.get("symbols", [])
    if not (isinstance(symbols, list) and all(s is None or isinstance(s, str) for s in symbols)):
        raise _invalid(path, f"the symbols of parameter '{name}' must be a list of names or null")
    return ParamInfo(name, ParamDirection[direction], None if shape is None else tuple(shape), kind, tuple(symbols))
