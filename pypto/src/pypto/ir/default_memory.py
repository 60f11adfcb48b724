"""Default MemRefs of tile and tensor variables."""

from __future__ import annotations

from pypto.ir import expr as E
from pypto.ir.dtype import DataType
from pypto.ir.enums import MemorySpace
from pypto.ir.expr import Var
from pypto.ir.memref import MemRef
from pypto.ir.node import replace
from pypto.ir.program import Function, Program
from pypto.ir.types import TensorType, TileType
from pypto.ir.visitor import IRMutator


class _MemRefInitializer(IRMutator):
    """Gives every tile and tensor variable without a MemRef one of its own."""

    def __init__(self) -> None:
        super().__init__()
        self._count = 0

    def visit_def(self, var: Var) -> Var:
        if var in self.var_map:
            return self.var_map[var]
        kind = var.type
        if isinstance(kind, (TensorType, TileType)) and kind.memref is None:
            space = MemorySpace.DDR if isinstance(kind, TensorType) else kind.memory_space or MemorySpace.Vec
            memref = MemRef(space, E.ConstInt(0, DataType.INT64), storage_bytes(kind), self._count, var.span)
            self._count += 1
            changes = {"memref": memref} if isinstance(kind, TensorType) else {"memref": memref, "memory_space": space}
            new = self.var_map[var] = replace(var, type=replace(kind, **changes))
            return new
        return super().visit_def(var)


def storage_bytes(kind: TensorType | TileType) -> int:
    """Bytes of a value of static shape, rounded up for 4-bit types; 0 when an extent is not constant."""
    elements = 1
    for dim in kind.shape:
        if type(dim) is not E.ConstInt or dim.value < 0:
            return 0
        elements *= dim.value
    return (elements * kind.dtype.get_bit() + 7) // 8


def memref_init(func_or_program: Function | Program) -> Function | Program:
    """Attach default MemRefs to tile (Vec) and tensor (DDR) variables that have none."""
    initializer = _MemRefInitializer()
    if isinstance(func_or_program, Program):
        return initializer.visit_program(func_or_program)
    return initializer.visit_function(func_or_program)
