"""torch tensors as run arguments, without copies."""

from simpler_runtime.data_types import torch_dtype_to_datatype
from simpler_runtime.tensors import make_chip_tensor_arg

__all__ = ["make_chip_tensor_arg", "torch_dtype_to_datatype"]
