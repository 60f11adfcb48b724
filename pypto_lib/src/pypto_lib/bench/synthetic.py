"""Source text of a program with many different kernels, for the growth of compile time."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

_HEAD = """import pypto.language as pl


@pl.program
class Synthetic:
"""
_KERNEL = """
    @pl.function(type=pl.FunctionType.InCore)
    def kernel_{n}(
        self, x: pl.Tensor[[64, 128], pl.FP32], y: pl.Out[pl.Tensor[[64, 128], pl.FP32]]
    ) -> pl.Tensor[[64, 128], pl.FP32]:
        for r in pl.range(0, 64, {step}):
            t = pl.load(x, [r, 0], [{step}, 128])
            u = pl.exp(pl.mul(t, {factor}))
            scratch = pl.create_tile([{step}, 128], dtype=pl.FP32, target_memory=pl.MemorySpace.Vec)
            w = pl.row_expand_mul(pl.add(u, t), pl.row_max(u, scratch))
            y = pl.store(pl.sub(w, {n}.0), [r, 0], y)
        return y
"""
_ENTRY = """
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self, x: pl.Tensor[[64, 128], pl.FP32], y: pl.Out[pl.Tensor[[64, 128], pl.FP32]]
    ) -> pl.Tensor[[64, 128], pl.FP32]:
"""
_CALL = """        t{n} = pl.create_tensor([64, 128], dtype=pl.FP32)
        t{n} = self.kernel_{n}({source}, t{n})
"""


def source(kernels: int) -> str:
    """A chain of ``kernels`` kernels with 7 operations each; no two are equal."""
    text = _HEAD + "".join(_KERNEL.format(n=n, step=(8, 16, 32)[n % 3], factor=1 / (n + 2)) for n in range(kernels))
    text += _ENTRY
    for n in range(kernels - 1):
        text += _CALL.format(n=n, source=f"t{n - 1}" if n else "x")
    last = kernels - 1
    return text + f"        y = self.kernel_{last}({f't{last - 1}' if last else 'x'}, y)\n        return y\n"


def load(kernels: int, folder: Path) -> Any:
    """The program, defined by a file in ``folder``: its parse is part of importing it."""
    path = folder / f"synthetic_{kernels}.py"
    path.write_text(source(kernels), encoding="utf-8")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.Synthetic
