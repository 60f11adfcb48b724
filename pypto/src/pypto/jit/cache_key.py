"""When two calls may share one artifact."""

from __future__ import annotations

import functools
import hashlib
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from pypto.jit.tensor_meta import TensorMeta

if TYPE_CHECKING:
    from pypto.jit.decorator import JITFunction

#: Fields of a RunConfig that change what is compiled or where it is written.
CONFIG_FIELDS = (
    "platform", "strategy", "distributed_config", "analyze_auto_scopes_for_deps", "dump_ptoas_passes",
    "memory_planner", "enable_pypto_l0c_double_buffer", "runtime", "save_kernels_dir", "dump_passes",
    "compile_profiling",
)  # fmt: skip


def text_hash(functions: Iterable[JITFunction]) -> str:
    """Hash of the Python text of functions."""
    return hashlib.sha256("\0".join(f.text for f in functions).encode()).hexdigest()


def external_hash(functions: Iterable[JITFunction]) -> str:
    """Hash of the C++ files and options of external kernels, as they are now."""
    digest = hashlib.sha256()
    for sources in (f.extern for f in functions if f.extern is not None):
        digest.update(sources.options().encode())
        for path in sources.files():
            digest.update(path.read_bytes())
    return digest.hexdigest()


def cache_key(entry: JITFunction, tensors: dict[str, TensorMeta], constants: dict[str, Any], config: Any) -> tuple:
    """The key of a call: source, tensors (symbolic dimensions as None), scalars, configuration."""
    scalars = tuple((name, type(value).__name__, _hashable(value)) for name, value in constants.items())
    return entry.source_hash, tuple(tensors.items()), scalars, _captured(entry), config_key(config), _context_key()


def config_key(config: Any) -> tuple | None:
    """The compile-relevant part of a configuration; None for the default one, given or not."""
    if config is None:
        return None
    fields = _config_fields(config)
    return None if fields == _default_fields() else fields


def _config_fields(config: Any) -> tuple:
    return tuple(_hashable(getattr(config, name, None)) for name in CONFIG_FIELDS)


@functools.cache
def _default_fields() -> tuple:
    from pypto.runtime import RunConfig

    return _config_fields(RunConfig())


def _captured(entry: JITFunction) -> tuple:
    """Numbers and strings that the bodies take from around their definitions."""
    return tuple(pair for function in (entry, *entry.dependencies) for pair in function.captured_constants())


def _context_key() -> tuple:
    """What an active PassContext decides about the result."""
    # Without the passes loaded, or while another thread loads them, no context of this thread can be active; importing
    # them here would slow the first look-up.
    contexts = getattr(sys.modules.get("pypto.passes"), "PassContext", None)
    context = contexts.current() if contexts else None
    if context is None:
        return ()
    return (
        context.get_memory_planner(),
        context.get_enable_pypto_l0c_double_buffer(),
        context.get_runtime(),
        context.get_enable_buffer_ir(),
    )


def _hashable(value: Any) -> Any:
    try:
        hash(value)
    except TypeError:
        return repr(value)
    return value
