"""Inputs and expected outputs of a test case: specifications, files, comparison."""

from __future__ import annotations

import ctypes
import runpy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_CTYPES = {
    "int64": ctypes.c_int64,
    "int32": ctypes.c_int32,
    "uint64": ctypes.c_uint64,
    "uint32": ctypes.c_uint32,
    "float": ctypes.c_float,
    "double": ctypes.c_double,
}
_INLINE_LIMIT = 100


@dataclass
class TensorSpec:
    """One tensor of a test case.

    ``init_value``: None (zeros), a number, a tensor (cast to ``dtype``), one of ``torch.randn/rand/zeros/ones``, or
    any other callable without arguments.
    """

    name: str
    shape: Sequence[int]
    dtype: Any
    init_value: Any = None
    is_output: bool = False

    def create_tensor(self) -> Any:
        """The tensor; ``TypeError`` for another kind of ``init_value``."""
        import torch

        value = self.init_value
        if value is None:
            return torch.zeros(tuple(self.shape), dtype=self.dtype)
        if isinstance(value, torch.Tensor):
            return value.to(self.dtype)
        if isinstance(value, (int, float)):
            return torch.full(tuple(self.shape), value, dtype=self.dtype)
        if value in (torch.randn, torch.rand, torch.zeros, torch.ones):
            wide = self.dtype if self.dtype.is_floating_point else torch.float32
            return value(tuple(self.shape), dtype=wide).to(self.dtype)
        if callable(value):
            return torch.as_tensor(value()).to(self.dtype)
        raise TypeError(
            f"init_value of tensor '{self.name}' must be None, a number, a tensor or a callable, "
            f"got {type(value).__name__}"
        )


@dataclass
class ScalarSpec:
    """One scalar of a test case; ``ctype`` is int64, int32, uint64, uint32, float or double."""

    name: str
    value: int | float
    ctype: str = "int64"

    def __post_init__(self) -> None:
        if self.ctype not in _CTYPES:
            raise ValueError(f"ctype of scalar '{self.name}' must be one of {sorted(_CTYPES)}, got '{self.ctype}'")

    def create_value(self) -> Any:
        """The ctypes value."""
        return _CTYPES[self.ctype](self.value)


def write_golden(
    tensor_specs: Sequence[TensorSpec],
    golden_fn: Callable[..., Any],
    output_path: str | Path,
    rtol: float = 1e-5,
    atol: float = 1e-5,
    scalar_specs: Sequence[ScalarSpec] | None = None,
    data_dir: str | Path | None = None,
) -> Path:
    """Write ``data/in/*.pt``, ``data/out/*.pt`` and ``golden.py`` beside ``output_path``; returns the module's path.

    ``golden_fn(tensors, params)`` fills the outputs in place. Data of ``data_dir`` is reused when all files exist.
    """
    import torch

    target = Path(output_path)
    if target.suffix != ".py":
        target = target / "golden.py"
    root = Path(data_dir) if data_dir is not None else target.parent / "data"
    inputs, outputs = root / "in", root / "out"
    written = [s for s in tensor_specs if s.is_output]
    files = [inputs / f"{s.name}.pt" for s in tensor_specs] + [outputs / f"{s.name}.pt" for s in written]
    if data_dir is None or not all(f.exists() for f in files):
        inputs.mkdir(parents=True, exist_ok=True)
        outputs.mkdir(parents=True, exist_ok=True)
        tensors = {s.name: s.create_tensor() for s in tensor_specs}
        for name, tensor in tensors.items():
            torch.save(tensor, inputs / f"{name}.pt")
        golden_fn(tensors, {s.name: s.value for s in scalar_specs or ()})
        for spec in written:
            torch.save(tensors[spec.name], outputs / f"{spec.name}.pt")
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(_golden_module(tensor_specs, scalar_specs or (), root, rtol, atol), encoding="utf-8")
    return target


def _golden_module(
    tensors: Sequence[TensorSpec], scalars: Sequence[ScalarSpec], root: Path, rtol: float, atol: float
) -> str:
    outputs = [s.name for s in tensors if s.is_output]
    values = [f'        ("{s.name}", ctypes.{_CTYPES[s.ctype].__name__}({s.value!r})),' for s in scalars]
    loads = [f'        ("{s.name}", torch.load(DATA / "in" / "{s.name}.pt")),' for s in tensors]
    lines = [
        '"""Inputs and expected outputs of one test case."""',
        "",
        *(["import ctypes"] if values else []),
        "from pathlib import Path",
        "",
        "import torch",
        "",
        f"DATA = Path({str(root.resolve())!r})",
        f"__outputs__ = {outputs!r}",
        f"RTOL = {rtol!r}",
        f"ATOL = {atol!r}",
        "",
        "",
        "def generate_inputs(params):",
        "    return [",
        *loads,
        *values,
        "    ]",
        "",
        "",
        "def compute_golden(tensors, params):",
        "    for name in __outputs__:",
        '        tensors[name][:] = torch.load(DATA / "out" / f"{name}.pt")',
        "",
    ]
    return "\n".join(lines)


def load_golden(path: str | Path) -> dict[str, Any]:
    """The names of a golden module; ``FileNotFoundError`` without one."""
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"{path} not found: the artifact has no expected outputs")
    return runpy.run_path(str(path))


def compare(name: str, actual: Any, expected: Any, rtol: float, atol: float) -> None:
    """``torch.testing.assert_close`` with the output's name in the message."""
    import torch

    torch.testing.assert_close(actual, expected, rtol=rtol, atol=atol, msg=lambda text: f"output '{name}': {text}")


def inline_source(value: Any) -> str:
    """A tensor as Python source: constants and identity matrices by constructor, small ones as literals.

    Raises:
        ValueError: more than 100 elements of arbitrary data.
    """
    import torch

    shape = tuple(value.shape)
    if value.numel() and bool((value == value.reshape(-1)[0]).all()):
        return f"torch.full({shape}, {value.reshape(-1)[0].item()!r}, dtype={value.dtype})"
    if value.dim() == 2 and shape[0] == shape[1] and bool((value == torch.eye(shape[0], dtype=value.dtype)).all()):
        return f"torch.eye({shape[0]}, dtype={value.dtype})"
    if value.numel() > _INLINE_LIMIT:
        raise ValueError(f"a tensor of {value.numel()} elements is too large to write inline (limit {_INLINE_LIMIT})")
    return f"torch.tensor({value.tolist()!r}, dtype={value.dtype})"
