"""Task runtime: compile, load and run task graphs on CPU workers."""

from simpler_runtime._native import load_in_background
from simpler_runtime.buffers import Access, Buffer, Tensor
from simpler_runtime.build import KernelSource, build_callable
from simpler_runtime.call_config import CallConfig, RuntimeEnv
from simpler_runtime.callables import ArgDirection, ChipCallable, CoreCallable, TensorArgType, arg_direction_name
from simpler_runtime.chip_worker import ChipWorker
from simpler_runtime.comm_domain import ChipDomainContext, CommBufferSpec, CommDomainHandle
from simpler_runtime.data_types import (
    MAX_TENSOR_DIMS,
    DataType,
    get_dtype_name,
    get_element_size,
    torch_dtype_to_datatype,
)
from simpler_runtime.errors import ToolchainError, UnsupportedFeatureError
from simpler_runtime.orchestrator import Orchestrator
from simpler_runtime.platforms import WorkerLevel, parse_platform, span_prefix
from simpler_runtime.run_handle import RunHandle
from simpler_runtime.task_args import ChipStorageTaskArgs, TaskArgs, scalar_to_uint64
from simpler_runtime.tensors import ChipTensor, make_chip_tensor_arg
from simpler_runtime.worker import CallableHandle, Worker

__all__ = [
    "MAX_TENSOR_DIMS",
    "Access",
    "ArgDirection",
    "Buffer",
    "CallConfig",
    "CallableHandle",
    "ChipCallable",
    "ChipDomainContext",
    "ChipStorageTaskArgs",
    "ChipTensor",
    "ChipWorker",
    "CommBufferSpec",
    "CommDomainHandle",
    "CoreCallable",
    "DataType",
    "KernelSource",
    "Orchestrator",
    "RunHandle",
    "RuntimeEnv",
    "TaskArgs",
    "Tensor",
    "TensorArgType",
    "ToolchainError",
    "UnsupportedFeatureError",
    "Worker",
    "WorkerLevel",
    "arg_direction_name",
    "build_callable",
    "get_dtype_name",
    "get_element_size",
    "load_in_background",
    "make_chip_tensor_arg",
    "parse_platform",
    "scalar_to_uint64",
    "span_prefix",
    "torch_dtype_to_datatype",
]
