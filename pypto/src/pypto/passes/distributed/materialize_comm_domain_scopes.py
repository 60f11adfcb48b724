"""MaterializeCommDomainScopes: find out which devices share each window and wrap the host body accordingly."""

from __future__ import annotations

from pypto.errors import InternalError, user_error
from pypto.ir.expr import Call, ConstInt, Expr, GlobalVar, Submit, Var, const_index, const_value
from pypto.ir.memref import WindowBuffer
from pypto.ir.node import replace
from pypto.ir.program import Function
from pypto.ir.stmt import (
    AssignStmt,
    CommDomainScopeStmt,
    ForStmt,
    Stmt,
    WhileStmt,
    flatten_to_stmts,
    seq,
)
from pypto.ir.types import DistributedTensorType, TensorType, Type
from pypto.passes.distributed.host import ALL_TO_ALL_V, ALLOC, WINDOW, collective, device_of, is_host
from pypto.passes.lib.op_facts import VIEWS, same_object_arg
from pypto.passes.lib.rewrite import Retype, with_body
from pypto.passes.lib.walk import bodies, iter_stmts, stmt_call
from pypto.passes.pass_ import function_pass
from pypto.passes.properties import IRProperty as P

#: Devices of a window: None stands for all of them.
Devices = frozenset[int] | None
_ALL: Devices = None


class _Windows:
    """Windows of one host function with the devices that use them."""

    def __init__(self, function: Function) -> None:
        self.buffers: dict[Var, AssignStmt] = {}
        self.views: dict[Var, list[Var]] = {}
        self._buffer_of: dict[Var, Var] = {}
        self._devices: dict[Var, list[Devices]] = {}
        self._values: dict[Var, Expr] = {}
        self._links: list[tuple[Var, Var]] = []
        self._walk(function.body, {}, False)

    def _walk(self, body: Stmt, loops: dict[Var, ForStmt], in_loop: bool) -> None:
        for stmt in flatten_to_stmts(body):
            call = stmt_call(stmt)
            if isinstance(stmt, AssignStmt):
                self._values[stmt.var] = stmt.value
                self._assign(stmt)
            if call is not None:
                self._call(call, loops, in_loop)
            if isinstance(stmt, (ForStmt, WhileStmt)):
                inner = dict(loops)
                if isinstance(stmt, ForStmt):
                    inner[stmt.loop_var] = stmt
                for arg, result in zip(stmt.iter_args, stmt.return_vars):
                    source = self._buffer_of.get(arg.initValue)
                    if source is not None:
                        self._buffer_of[arg] = self._buffer_of[result] = source
                self._walk(stmt.body, inner, True)
            else:
                for nested in bodies(stmt):
                    self._walk(nested, loops, in_loop)

    def _assign(self, stmt: AssignStmt) -> None:
        value = stmt.value
        if isinstance(value, Var):
            if value in self._buffer_of:
                self._buffer_of[stmt.var] = self._buffer_of[value]
            return
        if not isinstance(value, Call):
            return
        name = value.op.name
        if name == ALLOC:
            self.buffers[stmt.var] = stmt
            self.views[stmt.var] = []
        elif name == WINDOW and value.args[0] in self.buffers:
            self.views[value.args[0]].append(stmt.var)
            self._buffer_of[stmt.var] = value.args[0]
        elif isinstance(stmt.var.type, TensorType) and value.args:
            index = 0 if name in VIEWS or collective(value) else same_object_arg(value)
            source = value.args[index] if index is not None and index < len(value.args) else None
            if source in self._buffer_of:
                self._buffer_of[stmt.var] = self._buffer_of[source]

    def _call(self, call: Call | Submit, loops: dict[Var, ForStmt], in_loop: bool) -> None:
        used = [self._buffer_of[a] for a in call.args if isinstance(a, Var) and a in self._buffer_of]
        if collective(call) is not None:
            if call.op.name == ALL_TO_ALL_V and in_loop:
                raise user_error("pld.tensor.all_to_all_v is not supported inside a for/while loop", span=call.span)
            self._links += [(used[0], other) for other in used[1:]]
            return
        if not isinstance(call.op, GlobalVar) or not used:
            return
        device = device_of(call)
        if device is None:
            return
        devices = self._device_set(device, loops, call)
        for buffer in used:
            self._devices.setdefault(buffer, []).append(devices)

    def _device_set(self, device: Expr, loops: dict[Var, ForStmt], call: Call | Submit) -> Devices:
        number = const_value(device)
        if number is not None:
            return frozenset((number,))
        loop = loops.get(device) if isinstance(device, Var) else None
        if loop is None:
            raise InternalError(
                "MaterializeCommDomainScopes: device= must be a constant or the variable of an enclosing pl.range",
                span=call.span,
            )
        if const_value(loop.start) != 0 or const_value(loop.step) != 1:
            raise InternalError(
                "MaterializeCommDomainScopes: a non-unit-step loop is not supported as device=; use pl.range(N)",
                span=loop.span,
            )
        stop: Expr = loop.stop
        while isinstance(stop, Var) and stop in self._values:
            stop = self._values[stop]
        if isinstance(stop, Call) and stop.op.name == "pld.system.world_size":
            return _ALL
        count = const_value(stop)
        if count is None:
            raise InternalError(
                "MaterializeCommDomainScopes: the device loop must run over pld.system.world_size() or a constant",
                span=loop.span,
            )
        return frozenset(range(count))

    def descriptor(self, buffer: Var) -> Devices:
        """Devices of a window, after collectives have tied their operands together."""
        return _union(self._devices[buffer])

    def resolve(self) -> None:
        """Spread devices over collectives and check that every window is used.

        Raises:
            InternalError: a window without a view or without a dispatch.
        """
        changed = True
        while changed:
            changed = False
            for data, other in self._links:
                for source, target in ((data, other), (other, data)):
                    if source in self._devices and target not in self._devices:
                        self._devices[target] = list(self._devices[source])
                        changed = True
        for buffer, stmt in self.buffers.items():
            if not self.views[buffer]:
                raise InternalError(
                    f"window buffer '{buffer.name_hint}' has no pld.tensor.window materialisation", span=stmt.span
                )
            if buffer not in self._devices:
                raise InternalError(
                    f"window buffer '{buffer.name_hint}' is not consumed by any chip_orch dispatch", span=stmt.span
                )

    def names_of(self, buffer: Var) -> list[Var]:
        """Every variable that names a view of the buffer."""
        return [v for v, b in self._buffer_of.items() if b is buffer]


def _union(sets: list[Devices]) -> Devices:
    if any(s is None for s in sets):
        return _ALL
    return frozenset().union(*sets)


@function_pass("MaterializeCommDomainScopes", produced=(P.CommDomainScopesMaterialized,))
def materialize_comm_domain_scopes(function: Function) -> Function:
    """Create one WindowBuffer per allocation, point its views at it, group buffers of equal devices into domains."""
    if not is_host(function) or any(isinstance(s, CommDomainScopeStmt) for s in iter_stmts(function.body)):
        return function
    windows = _Windows(function)
    if not windows.buffers:
        return function
    windows.resolve()
    types: dict[Var, Type] = {}
    domains: dict[Devices, list[WindowBuffer]] = {}
    for buffer, stmt in windows.buffers.items():
        window = WindowBuffer(buffer, stmt.value.args[0], False, False, stmt.span)
        domains.setdefault(windows.descriptor(buffer), []).append(window)
        for name in windows.names_of(buffer):
            if isinstance(name.type, DistributedTensorType):
                types[name] = replace(name.type, window_buffer=window)
    for slots in domains.values():
        names = [w.name_hint for w in slots]
        if len(set(names)) != len(names):
            raise InternalError(f"window buffers of one domain need different names, got {', '.join(names)}")
    function = Retype(types).visit_function(function)
    stmts = flatten_to_stmts(function.body)
    first = next(i for i, s in enumerate(stmts) if _allocates(s))
    body: Stmt = seq(stmts[first:], function.body.span)
    for number, (devices, slots) in reversed(list(enumerate(domains.items()))):
        listed: tuple[ConstInt, ...] = () if devices is None else tuple(const_index(d) for d in sorted(devices))
        body = CommDomainScopeStmt(listed, slots, f"comm_d{number}", body=body, span=function.body.span)
    return with_body(function, seq([*stmts[:first], body], function.body.span))


def _allocates(stmt: Stmt) -> bool:
    call = stmt_call(stmt)
    if call is not None and call.op.name == ALLOC:
        return True
    return any(_allocates(s) for body in bodies(stmt) for s in flatten_to_stmts(body))
