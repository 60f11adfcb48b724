"""torch tensors as run arguments, without copies."""

from __future__ import annotations

from typing import Any

from simpler_runtime.buffers import Tensor
from simpler_runtime.data_types import torch_dtype_to_datatype
from simpler_runtime.tensors import make_chip_tensor_arg

__all__ = ["make_chip_tensor_arg", "make_tensor_arg", "torch_dtype_to_datatype"]


def make_tensor_arg(worker: Any, tensor: Any) -> Tensor:
    """A run argument of a level-3 program on the memory of a CPU torch tensor."""
    return worker.make_tensor_arg(tensor)
