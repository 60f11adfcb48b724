"""``python -m pypto.jit``: fill the store of compiled programs ahead of time, and see what it holds."""

from __future__ import annotations

import argparse
import importlib
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pypto.artifact import store
from pypto.artifact.cache import CacheConfig, configure_cache
from pypto.jit.decorator import JITFunction

_SCHEMA = 1
_TORCH_DTYPES = {
    "FP16": "float16", "BF16": "bfloat16", "FP32": "float32", "INT8": "int8", "INT16": "int16", "INT32": "int32",
    "INT64": "int64", "BOOL": "bool",
}  # fmt: skip
_REQUEST = ("kernel", "run_config", "tensors", "scalars")


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns the exit status: 0, or 1 after an ``error:`` line on stderr."""
    parser = argparse.ArgumentParser(prog="python -m pypto.jit", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    warm = commands.add_parser("warm", help="compile the requests of a file and build their binaries")
    warm.add_argument("--module", required=True, help="module that defines the kernels")
    warm.add_argument("--config", required=True, type=Path, help="JSON file with the requests")
    stat = commands.add_parser("stat", help="list what a store holds, as JSON")
    stat.add_argument("--root", required=True, type=Path, help="root of the store")
    given = parser.parse_args(arguments)
    try:
        if given.command == "warm":
            _warm(given.module, given.config)
        else:
            _stat(given.root)
    except (OSError, ValueError, TypeError, ImportError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


def _stat(root: Path) -> None:
    if not root.is_dir():
        raise ValueError(f"{root} is no folder")
    found = store.entries(root)
    compilers: dict[str, dict[str, int]] = {}
    for compiler, _, size in found:
        entry = compilers.setdefault(compiler, {"entries": 0, "bytes": 0})
        entry["entries"] += 1
        entry["bytes"] += size
    summary = {"root": str(root), "entries": len(found), "bytes": sum(size for *_, size in found)}
    print(json.dumps({**summary, "compilers": compilers}, indent=2))


def _warm(module_name: str, path: Path) -> None:
    from pypto.runtime import RunConfig

    file = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(file, dict) or file.get("schema_version") != _SCHEMA:
        raise ValueError(f"{path}: schema_version must be {_SCHEMA}")
    configure_cache(CacheConfig(**{"enabled": True, **file.get("cache", {})}))
    sys.path.insert(0, "")
    module = importlib.import_module(module_name)
    for number, request in enumerate(file.get("requests", ())):
        where = f"{path}: requests[{number}]"
        unknown = sorted(set(request) - set(_REQUEST))
        if unknown:
            raise ValueError(f"{where}: unknown key '{unknown[0]}' (known: {', '.join(_REQUEST)})")
        kernel = getattr(module, request.get("kernel", ""), None)
        if not isinstance(kernel, JITFunction):
            raise ValueError(f"{where}: {module_name} has no @pl.jit function {request.get('kernel')!r}")
        tensors = {name: _tensor(f"{where}: tensor '{name}'", **t) for name, t in request.get("tensors", {}).items()}
        start = time.perf_counter()
        kernel.warmup(**tensors, **request.get("scalars", {}), config=RunConfig(**request.get("run_config", {})))
        print(f"{kernel.__name__}: ready after {time.perf_counter() - start:.2f} s")


def _tensor(where: str, shape: Sequence[int], dtype: str) -> Any:
    import torch

    if dtype not in _TORCH_DTYPES:
        raise ValueError(f"{where}: unknown dtype {dtype!r} (known: {', '.join(_TORCH_DTYPES)})")
    return torch.empty(tuple(shape), dtype=getattr(torch, _TORCH_DTYPES[dtype]))


if __name__ == "__main__":
    sys.exit(main())
