"""Matmul operands that no iteration of a loop changes stay on the chip: their loads move in front of the loop."""

from __future__ import annotations

from pypto.backend import get_backend_instance, get_backend_type, is_backend_configured
from pypto.ir.enums import ForKind, FunctionType, MemorySpace, ParamDirection
from pypto.ir.expr import Call, Submit, Var
from pypto.ir.node import replace
from pypto.ir.program import Function, Program
from pypto.ir.stmt import AssignStmt, ForStmt, Stmt, flatten_to_stmts, seq
from pypto.ir.types import ScalarType, TensorType, TileType
from pypto.passes.lib.lineage import Lineage
from pypto.passes.lib.op_facts import MATMULS, POPS, PUSHES, VIEWS, in_place_arg, is_user_call
from pypto.passes.lib.rewrite import rebuild_lists, with_body
from pypto.passes.lib.scalars import trip_count
from pypto.passes.lib.sizes import shaped_bytes
from pypto.passes.lib.tensor_roots import tensor_roots
from pypto.passes.lib.walk import bodies, defined_vars, direct_uses, iter_calls, iter_stmts, stmt_call, used_vars
from pypto.passes.tile.conversions.registry import MAT_BRIDGE

#: Operators that bring a Mat tile to a matmul.
_STAGING = frozenset(("tile.transpose_view", "tile.move", "tile.extract"))
_L0 = (MemorySpace.Left, MemorySpace.Right)


def keep_operands_resident(program: Program) -> Program:
    """Hoist marked loads of operands out of counted sequential loops where nothing can change what they read.

    The source must be an input that every caller creates itself and passes under no writable parameter, so that no
    task writes it while the kernel runs. A load that is staged for one matmul takes its staging along when the L0
    buffers can hold every tile of the kernel; one that several matmuls read moves alone.
    """
    lineage = Lineage(program)
    private = _private_inputs(program, lineage)
    functions, changed = [], False
    for function in program.functions.values():
        positions = private.get(function.name)
        new = _Residency(function, positions, lineage).run() if positions else function
        changed = changed or new is not function
        functions.append(new)
    return Program(functions, program.name, program.span) if changed else program


# -- callers ----------------------------------------------------------------------------------------------------


def _private_inputs(program: Program, lineage: Lineage) -> dict[str, set[int]]:
    """Kernel -> positions of the inputs that every launch fills with a tensor nobody else writes."""
    marked = {
        f.name for f in program.functions.values() if any(MAT_BRIDGE in c.attrs for _, c in iter_calls(f.body))
    }  # fmt: skip
    if not marked:
        return {}
    called = {
        call.op.name for f in program.functions.values() for _, call in iter_calls(f.body) if is_user_call(call)
    }  # fmt: skip
    found: dict[str, set[int]] = {}
    for function in program.functions.values():
        root = function.func_type is FunctionType.Orchestration and function.name not in called
        roots = tensor_roots(function, lineage) if root else {}
        created = {
            s.var
            for s in iter_stmts(function.body)
            if isinstance(s, AssignStmt) and isinstance(s.value, Call) and s.value.op.name == "tensor.create"
        }
        for _, call in iter_calls(function.body):
            if not is_user_call(call) or call.op.name not in marked:
                continue
            here: set[int] = set()
            callee = program.get_function(call.op.name)
            if root and isinstance(call, Call) and callee is not None:
                here = _private_arguments(call, callee, roots, created, set(function.params))
            found[call.op.name] = found[call.op.name] & here if call.op.name in found else here
    return found


def _private_arguments(call: Call, callee: Function, roots: dict, created: set[Var], params: set[Var]) -> set[int]:
    written: set[Var] = set()
    for arg, direction in zip(call.args, callee.param_directions):
        if direction is not ParamDirection.In and isinstance(arg.type, TensorType):
            origin = roots.get(arg) if isinstance(arg, Var) else None
            if origin is None or not origin <= created | params:
                return set()  # it may lie anywhere
            written |= origin
    result = set()
    for index, (arg, direction) in enumerate(zip(call.args, callee.param_directions)):
        origin = roots.get(arg) if isinstance(arg, Var) else None
        if direction is ParamDirection.In and origin is not None and len(origin) == 1:
            if origin <= created and not origin & written:
                result.add(index)
    return result


# -- kernels ----------------------------------------------------------------------------------------------------


class _Residency:
    def __init__(self, function: Function, positions: set[int], lineage: Lineage) -> None:
        self._function = function
        self._sources = {function.params[i] for i in positions} - _written(function, lineage)
        self._moved: set[Stmt] = set()
        self._readers: dict[Var, list[Stmt]] = {}
        for stmt in iter_stmts(function.body):
            for var in direct_uses(stmt):
                self._readers.setdefault(var, []).append(stmt)

    def run(self) -> Function:
        function = self._function
        if any(c.op.name == "system.reserve_buffer" for _, c in iter_calls(function.body)):
            return function
        fits = _fitting_spaces(function)
        self._mat_fits, self._l0_fits = MemorySpace.Mat in fits, all(space in fits for space in _L0)
        if not self._mat_fits:
            return function
        return with_body(function, rebuild_lists(function.body, self._list))

    def _list(self, stmts: list[Stmt]) -> list[Stmt]:
        result: list[Stmt] = []
        for stmt in stmts:
            hoisted, stmt = self._loop(stmt) if isinstance(stmt, ForStmt) else ([], stmt)
            result.extend([*hoisted, stmt])
        return result if len(result) != len(stmts) else stmts

    def _loop(self, loop: ForStmt) -> tuple[list[Stmt], ForStmt]:
        """(statements that move in front of the loop, the loop without them)."""
        trips = trip_count(loop.start, loop.stop, loop.step)
        if loop.kind is not ForKind.Sequential or not trips or not _undisturbed(loop):
            return [], loop
        stmts = flatten_to_stmts(loop.body)
        variant = {v for s in [loop, *iter_stmts(loop.body)] for v in defined_vars(s)}
        hoisted: list[Stmt] = []
        for stmt in stmts:
            if not _is_pure(stmt):
                break
            if stmt not in self._moved and self._is_candidate(stmt, variant):
                chain = self._chain(stmt, stmts, variant)
                if chain and self._l0_fits:
                    hoisted.extend(chain)
                elif self._feeds_matmuls(stmt.var):
                    hoisted.append(stmt)
        if not hoisted:
            return [], loop
        self._moved.update(hoisted)
        rest = [s for s in stmts if not any(s is h for h in hoisted)]
        ordered = [s for s in stmts if any(s is h for h in hoisted)]
        return ordered, replace(loop, body=seq(rest, loop.body.span))

    def _is_candidate(self, stmt: Stmt, variant: set[Var]) -> bool:
        """A marked load of a private input that reads the same cells in every iteration."""
        call = stmt_call(stmt)
        if not isinstance(stmt, AssignStmt) or call is None or MAT_BRIDGE not in call.attrs:
            return False
        if call.op.name != "tile.load" or stmt.var.type.memory_space is not MemorySpace.Mat:
            return False
        return call.args[0] in self._sources and not any(v in variant for v in used_vars(call))

    def _chain(self, load: AssignStmt, stmts: list[Stmt], variant: set[Var]) -> list[Stmt]:
        """The load and its staging up to the only matmul that reads it, ``[]`` when it has other readers."""
        chain: list[Stmt] = [load]
        var = load.var
        while True:
            readers = self._readers.get(var, [])
            if len(readers) != 1:
                return []
            (reader,) = readers
            call = stmt_call(reader)
            if call is not None and call.op.name in MATMULS:
                return chain if var.type.memory_space in _L0 else []
            if call is None or call.op.name not in _STAGING or not any(reader is s for s in stmts):
                return []
            if call.args[0] is not var or any(v in variant and v is not var for v in used_vars(call)):
                return []
            chain.append(reader)
            var = reader.var

    def _feeds_matmuls(self, var: Var) -> bool:
        """Every reader of ``var`` stages it for a matmul, or is one that does not accumulate into it."""
        readers = self._readers.get(var, [])
        for reader in readers:
            call = stmt_call(reader)
            if not isinstance(reader, AssignStmt) or call is None:
                return False
            if call.op.name in MATMULS:
                if in_place_arg(call) is not None and call.args[in_place_arg(call)] is var:
                    return False
            elif call.op.name not in _STAGING or call.args[0] is not var or not self._feeds_matmuls(reader.var):
                return False
        return bool(readers)


def _written(function: Function, lineage: Lineage) -> set[Var]:
    """Parameters that the kernel itself writes, through views too."""
    roots = tensor_roots(function, lineage)
    written: set[Var] = set()
    for _, call in iter_calls(function.body):
        index = in_place_arg(call)
        targets = (
            call.args if is_user_call(call) else () if index is None or call.op.name in VIEWS else [call.args[index]]
        )
        for target in targets:
            if isinstance(target, Var):
                written |= roots.get(target, frozenset())
    return written


def _undisturbed(loop: ForStmt) -> bool:
    """No launch, synchronisation, transfer between cores or jump inside the loop or in its initial values."""
    if any(isinstance(a.initValue, (Call, Submit)) for a in loop.iter_args):
        return False
    return not any(
        is_user_call(c) or c.op.name.startswith(("system.", "pld.")) or c.op.name in POPS | PUSHES
        for _, c in iter_calls(loop.body)
    )


def _is_pure(stmt: Stmt) -> bool:
    """A definition without effect: what follows it may as well stand before it."""
    if not isinstance(stmt, AssignStmt):
        return False
    call = stmt_call(stmt)
    if call is None:
        return isinstance(stmt.var.type, (ScalarType, TileType))
    return call.op.name.startswith("tile.") and (in_place_arg(call) is None or call.op.name in MATMULS)


def _fitting_spaces(function: Function) -> set[MemorySpace]:
    """Spaces that can hold every tile of the function at once; empty without a backend."""
    if not is_backend_configured():
        return set()
    backend = get_backend_instance(get_backend_type())
    used = dict.fromkeys((MemorySpace.Mat, *_L0), 0)

    def count(body: Stmt | None, copies: int) -> None:
        for stmt in flatten_to_stmts(body):
            if isinstance(stmt, AssignStmt) and isinstance(stmt.var.type, TileType):
                space = stmt.var.type.memory_space
                if space in used:
                    size = shaped_bytes(stmt.var.type)
                    used[space] += copies * size if size is not None else 1 << 62
            stages = int(stmt.attrs.get("pipeline_stages", 1)) if isinstance(stmt, ForStmt) else 1
            for inner in bodies(stmt):
                count(inner, copies * stages)

    count(function.body, 1)
    return {space for space, size in used.items() if size <= backend.get_mem_size(space)}
