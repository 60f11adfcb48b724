"""Properties of tile-level code: operators, ranks, memory spaces, allocations, stores."""

from __future__ import annotations

from pypto.ir.dtype import DataType
from pypto.ir.enums import AtomicType, MemorySpace
from pypto.ir.expr import Call, Expr, GlobalVar, MakeTuple, const_value
from pypto.ir.program import Program
from pypto.ir.stmt import AssignStmt, Stmt
from pypto.ir.types import TensorType, TileType
from pypto.ops.registry import find_op
from pypto.passes.context import backend_handler
from pypto.passes.diagnostics import Diagnostic
from pypto.passes.lib.walk import defined_vars, iter_calls, iter_stmts, stmt_call
from pypto.passes.properties import IRProperty
from pypto.passes.verification import PropertyVerifierRegistry
from pypto.passes.verifiers.base import defined_functions, error, incore_functions

_register = PropertyVerifierRegistry.register
#: Tensor operators that a kernel keeps: metadata and scalar access of global memory.
_KERNEL_TENSOR_OPS = frozenset(("tensor.view", "tensor.dim", "tensor.read", "tensor.write", "tensor.alloc"))


@_register(IRProperty.IncoreTileOps)
def verify_incore_tile_ops(program: Program) -> list[Diagnostic]:
    """Kernels hold no tensor operator that computes."""
    return [
        error("IncoreTileOps", 1, f"tensor operator '{call.op.name}' remains in kernel '{function.name}'", stmt.span)
        for function in incore_functions(program)
        for stmt, call in iter_calls(function.body)
        if call.op.name.startswith("tensor.") and call.op.name not in _KERNEL_TENSOR_OPS
    ]


@_register(IRProperty.TileOps2D)
def verify_tile_ops_2d(program: Program) -> list[Diagnostic]:
    """Kernels hold tiles of at most two axes, 2D assemble offsets, and transposes with scratch."""
    rule = "TileOps2D"
    found: list[Diagnostic] = []
    for function in incore_functions(program):
        for stmt in iter_stmts(function.body):
            for var in defined_vars(stmt):
                if isinstance(var.type, TileType) and len(var.type.shape) > 2:
                    message = f"TileOps2D: tile '{var.name_hint}' has {len(var.type.shape)} axes in '{function.name}'"
                    found.append(error(rule, 1, message, stmt.span))
        for stmt, call in iter_calls(function.body):
            name = call.op.name
            if name == "tile.assemble" and isinstance(call.args[2], MakeTuple) and len(call.args[2].elements) > 2:
                message = f"TileOps2D: tile.assemble with {len(call.args[2].elements)} offsets in '{function.name}'"
                found.append(error(rule, 2, message, stmt.span))
            elif name == "tile.transpose" and len(call.args) == 3:
                message = f"TileOps2D: tile.transpose without its scratch tile in '{function.name}'"
                found.append(error(rule, 3, message, stmt.span))
    return found


def _allowed(call: Call) -> tuple[tuple[MemorySpace, ...], ...]:
    definition = None if isinstance(call.op, GlobalVar) else find_op(call.op.name)
    return definition.memory.inputs if definition is not None and definition.memory is not None else ()


@_register(IRProperty.TileMemoryInferred)
def verify_tile_memory(program: Program) -> list[Diagnostic]:
    """Assigned tiles have a space, and operands sit where their operator wants them."""
    rule = "TileMemoryInferred"
    found: list[Diagnostic] = []
    for function in incore_functions(program):
        for stmt in iter_stmts(function.body):
            if type(stmt) is AssignStmt and isinstance(stmt.var.type, TileType) and stmt.var.type.memory_space is None:
                message = f"tile '{stmt.var.name_hint}' has no memory space in '{function.name}'"
                found.append(error(rule, 1, message, stmt.span))
        for stmt, call in iter_calls(function.body):
            for index, (arg, spaces) in enumerate(zip(call.args, _allowed(call))):
                kind = arg.type
                if not spaces or not isinstance(kind, TileType) or kind.memory_space in (None, *spaces):
                    continue
                wanted = " or ".join(s.name for s in spaces)
                message = (
                    f"operand {index} of {call.op.name} is in {kind.memory_space.name}, it must be in {wanted} "
                    f"in '{function.name}'"
                )
                found.append(error(rule, 2, message, stmt.span))
    return found


@_register(IRProperty.HasMemRefs)
def verify_has_memrefs(program: Program) -> list[Diagnostic]:
    """Every tile variable names its allocation; tiles popped from a pipe lie in its slots."""
    return [
        error("HasMemRefs", 1, f"tile '{var.name_hint}' has no MemRef in '{function.name}'", stmt.span)
        for function in incore_functions(program)
        for stmt in iter_stmts(function.body)
        if not _pops(stmt)
        for var in defined_vars(stmt)
        if isinstance(var.type, TileType) and var.type.memref is None
    ]


def _pops(stmt: Stmt) -> bool:
    call = stmt_call(stmt)
    return call is not None and call.op.name.startswith("tile.tpop_from_")


@_register(IRProperty.AllocatedMemoryAddr)
def verify_allocated(program: Program) -> list[Diagnostic]:
    """The highest used address of each space is within the capacity of the backend."""
    handler = backend_handler()
    if handler is None:
        return []
    found: list[Diagnostic] = []
    for function in incore_functions(program):
        used: dict[MemorySpace, int] = {}
        for stmt in iter_stmts(function.body):
            for var in defined_vars(stmt):
                kind = var.type
                if not isinstance(kind, TileType) or kind.memref is None or kind.memory_space is None:
                    continue
                offset = const_value(kind.memref.byte_offset_)
                if offset is not None:
                    end = offset + kind.memref.size_
                    used[kind.memory_space] = max(used.get(kind.memory_space, 0), end)
        for space, end in used.items():
            limit = handler.mem_size(space)
            if limit and end > limit:
                message = (
                    f"{space.name} buffer usage ({end} bytes) exceeds platform limit ({limit} bytes) in function "
                    f"'{function.name}'"
                )
                found.append(error("AllocatedMemoryAddr", 1, message, function.span))
    return found


@_register(IRProperty.AccToGmStoreValid)
def verify_acc_stores(program: Program) -> list[Diagnostic]:
    """Accumulators are stored to element types that the fix-pipe can write."""
    allowed = (DataType.INT32, DataType.FP32, DataType.FP16, DataType.BF16)
    if backend_handler() is None:
        return []
    found: list[Diagnostic] = []
    for function in incore_functions(program):
        for stmt, call in iter_calls(function.body):
            if call.op.name != "tile.store" or not isinstance(call.args[0].type, TileType):
                continue
            target = call.args[2].type
            if call.args[0].type.memory_space is MemorySpace.Acc and target.dtype not in allowed:
                message = (
                    f"tile.store from Acc to a {target.dtype} tensor in '{function.name}': the fix-pipe writes INT32, "
                    "FP32, FP16 and BF16 only; cast on the vector core first"
                )
                found.append(error("AccToGmStoreValid", 1, message, stmt.span))
    return found


#: Operator -> operand that receives the atomic addition.
_ATOMIC_TARGETS = {
    "tile.store": 2,
    "tensor.assemble": 0,
    "pld.tensor.put": 0,
    "pld.tile.put": 0,
    "pld.tensor.remote_store": 1,
    "pld.tile.remote_store": 1,
}


@_register(IRProperty.AtomicAddDtypeValid)
def verify_atomic_dtypes(program: Program) -> list[Diagnostic]:
    """Atomic additions use element types that the backend's store pipe can combine."""
    handler = backend_handler()
    if handler is None:
        return []
    allowed = {DataType.FP32, DataType.FP16, DataType.INT32, DataType.INT16, DataType.INT8}
    if handler.name == "910B":
        allowed.add(DataType.BF16)
    found: list[Diagnostic] = []
    for function in defined_functions(program):
        for stmt, call in iter_calls(function.body):
            index = _ATOMIC_TARGETS.get(call.op.name)
            if index is None or call.kwargs.get("atomic", AtomicType.None_) != AtomicType.Add:
                continue
            target: Expr = call.args[index]
            if isinstance(target.type, TensorType) and target.type.dtype not in allowed:
                names = ", ".join(sorted(map(_short, allowed)))
                message = (
                    f"{call.op.name} with atomic add on a {_short(target.type.dtype)} tensor in '{function.name}': "
                    f"backend {handler.name} ({handler.arch}) combines {names} only; Ascend910B takes bf16 too"
                )
                found.append(error("AtomicAddDtypeValid", 1, message, stmt.span))
    return found


def _short(dtype: DataType) -> str:
    return "bf16" if dtype == DataType.BF16 else dtype.to_string()
