"""The tile language: ``import pypto.language as pl``."""

from __future__ import annotations

import importlib
from typing import Any

from pypto.ir.dtype import DTYPES, DataType
from pypto.ir.enums import (
    AtomicType,
    CachePolicy,
    CompactMode,
    ForKind,
    FunctionType,
    Level,
    MemorySpace,
    PadValue,
    PipeType,
    Role,
    SplitMode,
    TensorLayout,
    TileLayout,
)
from pypto.ir.memref import MemRef
from pypto.ir.types import MemRefType, PtrType, TensorView, TileView
from pypto.language import op, optimizations, parser
from pypto.language.arg_direction import adir
from pypto.language.constructs import (
    ScopeMode,
    at,
    cluster,
    cond,
    const,
    dump_tag,
    func_attr,
    manual_scope,
    no_dep,
    parallel,
    pipeline,
    range,
    scope,
    split_aiv,
    spmd,
    spmd_submit,
    static_assert,
    static_print,
    submit,
    unroll,
    while_,
    yield_,
)
from pypto.language.op import array_ops as array
from pypto.language.op import prefetch_ops as prefetch
from pypto.language.op import system_ops as system
from pypto.language.op import tensor_ops as tensor
from pypto.language.op import tile_ops as tile
from pypto.language.optimizations import cross_core_slot, split
from pypto.language.parser.decorator import function, inline, program
from pypto.language.parser.diagnostics import install_excepthook
from pypto.language.parser.inline_templates import InlineFunction
from pypto.language.parser.text_parser import loads, loads_program, parse, parse_program
from pypto.language.typing import (
    RUNTIME,
    Array,
    AsyncEvent,
    AsyncSession,
    DistributedTensor,
    DynVar,
    InOut,
    IntLike,
    Out,
    PrefetchAsyncContext,
    Scalar,
    TaskId,
    Tensor,
    Tile,
    Tuple,
    dynamic,
)

Mem = MemorySpace
Ptr = PtrType
ND, DN, NZ = TensorLayout.ND, TensorLayout.DN, TensorLayout.NZ
MX_A_ZZ, MX_B_NN = TensorLayout.MX_A_ZZ, TensorLayout.MX_B_NN
AUTO = -1

_PUBLIC_TYPE_NAMES = (
    "Tensor", "DistributedTensor", "Tile", "Scalar", "Array", "Tuple", "Out", "InOut", "MemRef", "TensorView",
    "TileView", *DTYPES, *TensorLayout.__members__,
)  # fmt: skip
_operators = {name: getattr(op, name) for name in op.__all__}
globals().update(DTYPES)
globals().update(_operators)
install_excepthook()


def __getattr__(name: str) -> Any:
    """``pl.jit`` and its classes are loaded on first use."""
    if name in ("jit", "JITFunction"):
        return getattr(importlib.import_module("pypto.jit"), name)
    raise AttributeError(f"module 'pypto.language' has no attribute '{name}'")


_HIDDEN = {"annotations", "importlib", "Any", "DTYPES", "install_excepthook"}
__all__ = sorted(  # noqa: PLE0605
    {name for name in globals() if not name.startswith("_")} - _HIDDEN | {"jit", "JITFunction"}
)
