"""Reading ``kernel_config.py``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from pypto.artifact.layout import MANIFEST


class Manifest(msgspec.Struct):
    """The three dictionaries of a manifest."""

    runtime: dict[str, Any]
    orchestration: dict[str, Any]
    kernels: list[dict[str, Any]]


_NAMES = {"RUNTIME_CONFIG": dict, "ORCHESTRATION": dict, "KERNELS": list}
_RUNTIME_KEYS = {"runtime": str}
_ORCHESTRATION_KEYS = {"source": str, "function_name": str}
_KERNEL_KEYS = {"func_id": int, "name": str, "source": str, "core_type": str}


def read_manifest(root: Path) -> Manifest:
    """Execute the manifest of an artifact.

    Raises:
        FileNotFoundError: the folder has none.
        ValueError: it is not a valid manifest; the text names the entry.
    """
    path = root / MANIFEST
    if not path.is_file():
        raise FileNotFoundError(
            f"{path} not found: the folder holds no runnable artifact. It was compiled for platform 'torch', with "
            "skip_ptoas or with a PTOAS_ROOT that names no assembler, or the program has no Orchestration function to "
            "start at"
        )
    scope: dict[str, Any] = {"__file__": str(path.resolve()), "__name__": "kernel_config"}
    try:
        exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), scope)
    except (Exception, SystemExit) as error:
        raise ValueError(f"{path} is not a valid manifest: {type(error).__name__}: {error}") from error
    _check(path, "the file", scope, _NAMES)
    manifest = Manifest(*(scope[name] for name in _NAMES))
    _check(path, "RUNTIME_CONFIG", manifest.runtime, _RUNTIME_KEYS)
    _check(path, "ORCHESTRATION", manifest.orchestration, _ORCHESTRATION_KEYS)
    for number, kernel in enumerate(manifest.kernels):
        _check(path, f"KERNELS[{number}]", kernel, _KERNEL_KEYS)
    return manifest


def _check(path: Path, place: str, record: Any, keys: dict[str, type]) -> None:
    for key, kind in keys.items():
        value = record.get(key) if isinstance(record, dict) else None
        if not isinstance(value, kind):
            found = "is missing" if value is None else f"is {type(value).__name__}"
            raise ValueError(
                f"{path} is not a valid manifest: in {place}, '{key}' must be {kind.__name__}, but it {found}; "
                "recompile the program"
            )
