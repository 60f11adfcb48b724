"""When two calls may share one artifact."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from pypto.jit.tensor_meta import TensorMeta

if TYPE_CHECKING:
    from pypto.jit.decorator import JITFunction

#: Fields of a RunConfig that change what is compiled.
CONFIG_FIELDS = (
    "platform", "strategy", "distributed_config", "analyze_auto_scopes_for_deps", "dump_ptoas_passes",
    "memory_planner", "enable_pypto_l0c_double_buffer", "runtime",
)  # fmt: skip


def source_hash(entry: JITFunction) -> str:
    """Hash of the text of the entry and of everything it reaches, external sources included."""
    digest = hashlib.sha256()
    for function in (entry, *entry.get_deps()):
        digest.update(function.text.encode())
        for path in function.external_files():
            digest.update(path.read_bytes())
    return digest.hexdigest()


def cache_key(entry: JITFunction, tensors: dict[str, TensorMeta], constants: dict[str, Any], config: Any) -> tuple:
    """The key of a call: source, tensors (symbolic dimensions as None), scalars, configuration."""
    dims = entry.dynamic_dims
    shapes = tuple(
        (
            name,
            tuple(None if (name, axis) in dims else d for axis, d in enumerate(meta.shape)),
            meta.dtype,
            meta.layout,
        )
        for name, meta in tensors.items()
    )
    scalars = tuple((name, type(value).__name__, _hashable(value)) for name, value in constants.items())
    return entry.source_hash, shapes, scalars, config_key(config)


def config_key(config: Any) -> tuple:
    """The compile-relevant part of a configuration; None stands for the default one."""
    if config is None:
        return ()
    return tuple(_hashable(getattr(config, name, None)) for name in CONFIG_FIELDS)


def _hashable(value: Any) -> Any:
    try:
        hash(value)
    except TypeError:
        return repr(value)
    return value
