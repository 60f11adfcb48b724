"""Compilers and test harness of the task runtime."""

from simpler_runtime.data_types import torch_dtype_to_datatype
from simpler_runtime.platforms import parse_platform
from simpler_runtime.tensors import make_chip_tensor_arg

from simpler_setup.elf_parser import extract_text_section
from simpler_setup.kernel_compiler import KernelCompiler
from simpler_setup.runtime_builder import RuntimeBuilder
from simpler_setup.scene_test import (
    CallableNamespace,
    Scalar,
    SceneTestCase,
    SceneTestLevel,
    TaskArgsBuilder,
    TensorArg,
    scene_level,
    scene_test,
)

__all__ = [
    "CallableNamespace",
    "KernelCompiler",
    "RuntimeBuilder",
    "Scalar",
    "SceneTestCase",
    "SceneTestLevel",
    "TaskArgsBuilder",
    "TensorArg",
    "extract_text_section",
    "make_chip_tensor_arg",
    "parse_platform",
    "scene_level",
    "scene_test",
    "torch_dtype_to_datatype",
]
