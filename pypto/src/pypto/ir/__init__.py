"""The intermediate representation: nodes, types, comparison, printing, traversal."""

from __future__ import annotations

import importlib
from typing import Any

from pypto.ir.dtype import DTYPES, DataType
from pypto.ir.enums import (
    ArgDirection,
    ArgEffect,
    AtomicType,
    CachePolicy,
    CompactMode,
    CoreType,
    ForKind,
    FunctionType,
    InlineLanguage,
    Level,
    MemorySpace,
    NotifyOp,
    OptimizationStrategy,
    PadValue,
    ParamDirection,
    PipeType,
    ReduceOp,
    Role,
    ScopeKind,
    SplitMode,
    TensorLayout,
    TileLayout,
    WaitCmp,
    WriteChannel,
    is_incore_type,
    is_orchestration_like,
    level_to_linqu_level,
)  # fmt: skip
from pypto.ir.expr import (
    Abs,
    Add,
    And,
    BinaryExpr,
    BitAnd,
    BitNot,
    BitOr,
    BitShiftLeft,
    BitShiftRight,
    BitXor,
    Call,
    Cast,
    ConstBool,
    ConstFloat,
    ConstInt,
    Eq,
    Expr,
    FloatDiv,
    FloorDiv,
    FloorMod,
    Ge,
    GlobalVar,
    Gt,
    IterArg,
    Le,
    Lt,
    MakeTuple,
    Max,
    Min,
    Mul,
    Ne,
    Neg,
    Not,
    Op,
    Or,
    Pow,
    Sub,
    Submit,
    TupleGetItemExpr,
    UnaryExpr,
    Var,
    Xor,
)  # fmt: skip
from pypto.ir.memref import MemRef, WindowBuffer
from pypto.ir.node import IRNode
from pypto.ir.printer import python_print, python_print_type, register_format_callback
from pypto.ir.program import Function, Program
from pypto.ir.scalar_ops import (
    add,
    and_,
    bit_and,
    bit_not,
    bit_or,
    bit_shift_left,
    bit_shift_right,
    bit_xor,
    cast,
    eq,
    floordiv,
    ge,
    gt,
    le,
    lt,
    max_,
    min_,
    mod,
    mul,
    ne,
    neg,
    not_,
    or_,
    pow,
    sub,
    truediv,
)  # fmt: skip
from pypto.ir.span import Span
from pypto.ir.stmt import (
    AssignStmt,
    BreakStmt,
    ClusterScopeStmt,
    CommDomainScopeStmt,
    ContinueStmt,
    EvalStmt,
    ForStmt,
    HierarchyScopeStmt,
    IfStmt,
    InCoreScopeStmt,
    InlineStmt,
    ReturnStmt,
    RuntimeScopeStmt,
    ScopeStmt,
    SeqStmts,
    SplitAivScopeStmt,
    SpmdScopeStmt,
    Stmt,
    WhileStmt,
    YieldStmt,
    attach_leading_comments,
    flatten_to_stmts,
)  # fmt: skip
from pypto.ir.structural import assert_structural_equal, structural_equal, structural_hash
from pypto.ir.types import (
    ArrayType,
    AsyncEventType,
    AsyncSessionType,
    BufferType,
    CommCtxType,
    DistributedTensorType,
    MemRefType,
    MultiBufferType,
    PrefetchAsyncContextType,
    PtrType,
    ScalarType,
    ShapedType,
    TensorType,
    TensorView,
    TileType,
    TileView,
    TupleType,
    Type,
    UnknownType,
    VoidType,
    WindowBufferType,
)  # fmt: skip
from pypto.ir.utils import (
    ParentStmtAnalysis,
    collect_def_vars,
    deduce_call_return_type,
    deep_clone,
    find_yield_stmt,
    get_last_yield_stmt,
    inout,
    input,
    make_call,
    memref_init,
    no_dep,
    output,
    output_existing,
    scalar_dir,
    set_call_attrs,
    substitute_expr,
    substitute_stmt,
)
from pypto.ir.visitor import IRMutator, IRVisitor

Mem = MemorySpace
DYNAMIC_DIM = -1
null = PadValue.null
zero = PadValue.zero
globals().update(DTYPES)

#: Names of higher floors that users find here, loaded on first access: name -> module.
_LAZY: dict[str, str] = {
    **dict.fromkeys(("IRBuilder",), "pypto.ir.builder"),
    **dict.fromkeys(
        ("serialize", "deserialize", "serialize_to_file", "deserialize_from_file"), "pypto.ir.serialization"
    ),
    **dict.fromkeys(
        (
            "create_op_call", "is_op_registered", "get_op", "get_op_memory_spec", "get_op_arg_effect",
            "op_has_declared_arg_effects", "op_has_declared_arg_effect", "get_op_write_channel",
        ),
        "pypto.ops.queries",
    ),
    **dict.fromkeys(
        (
            "op_conversion", "register_op_conversion", "register_op_conversion_custom", "has_op_conversion",
            "ConversionContext",
        ),
        "pypto.passes.tile.conversions",
    ),
    **dict.fromkeys(("PassManager", "PassDumpLevel"), "pypto.passes.manager"),
    **dict.fromkeys(
        (
            "PassContext", "VerificationMode", "VerificationLevel", "DiagnosticPhase", "DiagnosticCheck",
            "DiagnosticCheckSet", "make_roundtrip_instrument",
        ),
        "pypto.passes",
    ),
    **dict.fromkeys(("CompiledProgram",), "pypto.ir.compiled_program"),
    **dict.fromkeys(("DistributedConfig",), "pypto.ir.distributed_compiled_program"),
}  # fmt: skip
_SUBMODULES = (
    "builder", "comm_layout", "compile", "compiled_program", "distributed_compiled_program", "instruments", "op",
    "pass_manager", "tensor_view_semantics",
)  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        value = getattr(importlib.import_module(_LAZY[name]), name)
        globals()[name] = value
        return value
    if name in _SUBMODULES:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY, *_SUBMODULES})
