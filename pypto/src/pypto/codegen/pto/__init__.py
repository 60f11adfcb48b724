"""Kernel functions as ``.pto`` text."""

from __future__ import annotations

import os

from pypto.backend import get_handler
from pypto.codegen.pto.kernel import KernelEmitter, collect_vars_from_shape_expr
from pypto.errors import InternalError
from pypto.ir import FunctionType, MemorySpace, Program, is_incore_type
from pypto.ir.program import Function
from pypto.ir.types import TileType
from pypto.ir.visitor import IRVisitor

_OFF = ("0", "false", "no", "off")


def emit_source_locations(setting: bool | None = None) -> bool:
    """Whether locations are printed: ``setting``, else the environment variable ``PYPTO_EMIT_PTO_LOC``, else yes."""
    if setting is not None:
        return setting
    return os.environ.get("PYPTO_EMIT_PTO_LOC", "").lower() not in _OFF


class PTOCodegen:
    """Turns kernel functions into one ``.pto`` module."""

    def generate(self, program: Program, emit_tile_addr: bool = True, emit_source_loc: bool | None = None) -> str:
        """The module of all functions of ``program`` for the selected backend; equal input gives equal text."""
        functions = list(program.functions.values())
        order = {FunctionType.AIC: 0, FunctionType.AIV: 1}
        functions.sort(key=lambda f: order.get(f.func_type, 2))
        return generate_module(functions, emit_tile_addr=emit_tile_addr, emit_source_loc=emit_source_loc)


def generate_module(
    functions: list[Function], *, emit_tile_addr: bool = True, emit_source_loc: bool | None = None
) -> str:
    """``.pto`` text of kernel functions, in the given order."""
    from pypto.codegen.pto.operators.restrictions import check_parameters
    from pypto.codegen.pto.statements import emit_body

    handler = get_handler()
    lines = [f'module attributes {{pto.target_arch = "{handler.get_pto_target_arch()}"}} {{']
    for function in functions:
        if not is_incore_type(function.func_type):
            raise InternalError(
                f"function '{function.name}' of type {function.func_type.name} is no kernel: .pto text is made of "
                "InCore-variant functions (InCore, AIC, AIV)"
            )
        emitter = KernelEmitter(
            function, handler, emit_tile_addr=emit_tile_addr, emit_source_loc=emit_source_locations(emit_source_loc)
        )
        check_parameters(function, handler.get_pto_target_arch())
        emitter.declare_params()
        emit_body(emitter, function.body)
        lines += emitter.render()
    lines.append("}")
    return "\n".join(lines) + "\n"


_CUBE_SPACES = (MemorySpace.Left, MemorySpace.Right, MemorySpace.Acc, MemorySpace.Mat)


def infer_function_core_type(function: Function):
    """``CoreType.CUBE`` when any tile lives in Left, Right, Acc or Mat, else ``CoreType.VECTOR``."""
    from pypto.ir import CoreType

    if function.func_type is FunctionType.AIC:
        return CoreType.CUBE
    if function.func_type is FunctionType.AIV:
        return CoreType.VECTOR

    class Search(IRVisitor):
        cube = False

        def visit_var_like(self, var) -> None:
            if isinstance(var.type, TileType) and var.type.memory_space in _CUBE_SPACES:
                self.cube = True

    search = Search()
    search.visit_function(function)
    return CoreType.CUBE if search.cube else CoreType.VECTOR


__all__ = [
    "PTOCodegen",
    "collect_vars_from_shape_expr",
    "emit_source_locations",
    "generate_module",
    "infer_function_core_type",
]
