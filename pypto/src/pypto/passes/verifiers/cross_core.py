"""MixedKernelExpanded: cube and vector work are in kernels of their own, and the pipes between them are complete."""

from __future__ import annotations

from pypto.ir.enums import FunctionType, MemorySpace
from pypto.ir.expr import Call, Expr, Submit, Var, const_value
from pypto.ir.program import Function, Program
from pypto.ir.stmt import AssignStmt, Stmt
from pypto.ir.types import TileType
from pypto.passes.diagnostics import Diagnostic
from pypto.passes.lib.core_affinity import Affinity, stmt_affinity
from pypto.passes.lib.op_facts import FREES, POPS, PUSHES
from pypto.passes.lib.walk import iter_calls, iter_stmts
from pypto.passes.properties import IRProperty
from pypto.passes.verification import PropertyVerifierRegistry
from pypto.passes.verifiers.base import error, incore_functions

_RULE = "MixedKernelExpanded"
_SPACE = {"tile.tpop_from_aiv": MemorySpace.Mat, "tile.tpop_from_aic": MemorySpace.Vec}
_INITIALIZE = {FunctionType.AIC: "system.aic_initialize_pipe", FunctionType.AIV: "system.aiv_initialize_pipe"}


@PropertyVerifierRegistry.register(IRProperty.MixedKernelExpanded)
def verify_cross_core(program: Program) -> list[Diagnostic]:
    """No kernel mixes both kinds of work; pipes are initialised, popped tiles are freed and in the right space."""
    found: list[Diagnostic] = []
    for function in incore_functions(program):
        if function.func_type is FunctionType.InCore and _is_mixed(function):
            message = f"InCore function '{function.name}' mixes cube and vector tile operators"
            found.append(error(_RULE, 1, message, function.span))
        calls = list(iter_calls(function.body))
        if any(c.op.name in POPS | PUSHES | FREES for _, c in calls):
            _tiles(function, calls, found)
            _setup(function, calls, found)
    return found


def _is_mixed(function: Function) -> bool:
    joined = Affinity.SHARED
    for stmt in iter_stmts(function.body):
        joined |= stmt_affinity(stmt)
    return Affinity.MIXED in joined


def _tiles(function: Function, calls: list[tuple[Stmt, Call | Submit]], found: list[Diagnostic]) -> None:
    popped: dict[Expr, Stmt] = {}
    freed: set[Expr] = set()
    for stmt, call in calls:
        name = call.op.name
        if name in PUSHES:
            _static(function, name, call.args[0], stmt, found)
        elif name in POPS and isinstance(stmt, AssignStmt):
            popped[stmt.var] = stmt
            _static(function, name, stmt.var, stmt, found)
            space = stmt.var.type.memory_space if isinstance(stmt.var.type, TileType) else None
            if space is not None and space is not _SPACE[name]:
                message = (
                    f"function '{function.name}' needs the {name} result in MemorySpace::{_SPACE[name].name}, but "
                    f"'{stmt.var.name_hint}' is in MemorySpace::{space.name}"
                )
                found.append(error(_RULE, 2, message, stmt.span))
        elif name in FREES:
            freed.add(call.args[0])
            if call.args[0] not in popped:
                message = f"function '{function.name}': {name} of a tile that no tpop before it received"
                found.append(error(_RULE, 3, message, stmt.span))
    for var, stmt in popped.items():
        if var not in freed:
            message = f"function '{function.name}': popped tile '{var.name_hint}' is never freed (system.tfree_to_*)"
            found.append(error(_RULE, 3, message, stmt.span))


def _static(function: Function, name: str, tile: Expr, stmt: Stmt, found: list[Diagnostic]) -> None:
    if isinstance(tile.type, TileType) and any(const_value(d) is None for d in tile.type.shape):
        message = f"function '{function.name}': {name} needs a tile of static shape"
        found.append(error(_RULE, 4, message, stmt.span))


def _setup(function: Function, calls: list[tuple[Stmt, Call | Submit]], found: list[Diagnostic]) -> None:
    wanted = _INITIALIZE.get(function.func_type)
    if wanted is None:
        return
    sizes: dict[Expr, tuple[str, int]] = {}
    ready = False
    for stmt, call in calls:
        name = call.op.name
        if name == "system.reserve_buffer" and isinstance(stmt, AssignStmt):
            sizes[stmt.var] = (call.kwargs["name"], call.kwargs["size"])
        elif name == wanted:
            ready = True
            _room(function, stmt, call, sizes, found)
        elif name in POPS | PUSHES and not ready:
            message = f"function '{function.name}' uses {name} before {wanted}; initialise the pipe first"
            found.append(error(_RULE, 5, message, stmt.span))
            return


def _room(
    function: Function, stmt: Stmt, call: Call | Submit, sizes: dict[Expr, tuple[str, int]], found: list[Diagnostic]
) -> None:
    slot, slots = call.kwargs.get("slot_size"), call.kwargs.get("slot_num")
    if not slot or not slots:
        return
    for arg in call.args:
        name, size = sizes.get(arg, ("", None)) if isinstance(arg, Var) else ("", None)
        if size is not None and size < slot * slots:
            message = (
                f"function '{function.name}': reserved buffer '{name}' has {size} bytes, the pipe needs {slots} slots "
                f"of {slot} bytes"
            )
            found.append(error(_RULE, 6, message, stmt.span))
