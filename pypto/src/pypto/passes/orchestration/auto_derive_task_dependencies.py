"""AutoDeriveTaskDependencies: explicit task dependencies for AUTO scopes, on request."""

from __future__ import annotations

from dataclasses import dataclass, field

from pypto.ir.dtype import DataType
from pypto.ir.enums import ArgDirection, ForKind, is_orchestration_like
from pypto.ir.expr import Call, Expr, Submit, TupleGetItemExpr, Var
from pypto.ir.node import replace
from pypto.ir.program import Function, Program
from pypto.ir.stmt import (
    AssignStmt,
    EvalStmt,
    ForStmt,
    IfStmt,
    RuntimeScopeStmt,
    ScopeStmt,
    Stmt,
    WhileStmt,
    flatten_to_stmts,
)
from pypto.ir.types import ScalarType, TensorType
from pypto.ir.visitor import IRMutator
from pypto.passes.lib.auto_dependency_marks import FUNCTION_MARK, REGION_MARK
from pypto.passes.lib.lineage import Lineage
from pypto.passes.lib.op_facts import is_user_call
from pypto.passes.lib.scalars import trip_count
from pypto.passes.lib.walk import iter_stmts, map_functions, stmt_call, yielded
from pypto.passes.orchestration.tensor_locations import Location, LocationMap, Locations, may_overlap
from pypto.passes.pass_ import Pass, PassProperties, create_program_pass
from pypto.passes.properties import IRProperty as P

EDGES = "compiler_manual_dep_edges"
_WRITES = (ArgDirection.InOut, ArgDirection.Output, ArgDirection.OutputExisting)
_READS = (ArgDirection.Input, ArgDirection.InOut)


@dataclass(eq=False)
class _Task:
    """One launch; ``id`` is the variable that stands for it in an edge list."""

    call: Call | Submit
    id: Var | None


@dataclass(eq=False)
class _Access:
    location: Location
    writes: bool
    task: _Task
    #: Left the loop or branch of its launch, where only ``outer_name`` (if any) can name the task.
    exported: bool = False
    outer_name: Var | None = None
    #: The number of launches behind ``outer_name`` is known at run time only.
    uncounted: bool = False

    @property
    def name(self) -> Var | None:
        """The variable that stands for the task at the current place."""
        return self.outer_name if self.exported else self.task.id

    def export(self, name: Var | None) -> None:
        self.exported, self.outer_name = True, name


def _same_place(a: Location, b: Location) -> bool:
    return a.root is b.root and a.box == b.box


@dataclass(eq=False)
class _Region:
    """A scope whose dependencies are derived together."""

    virtual: bool
    failed: bool = False
    calls: list[Call | Submit] = field(default_factory=list)


@dataclass
class _Decision:
    edges: list[Var]
    directions: list[ArgDirection]
    region: _Region


class _Derivation:
    """Walks one function and decides the edges and directions of its launches."""

    def __init__(self, function: Function, lineage: Lineage) -> None:
        self._locations = LocationMap(function, lineage)
        self._tasks: dict[Var, _Task] = {}
        self.decisions: dict[Call | Submit, _Decision] = {}
        self.regions: list[_Region] = []
        #: Roots that one iteration of an ordered loop leaves for the next one: the runtime has to track them.
        self._tracked: set[Var] = set()
        #: Everything that happens is explicit, so the runtime need not track anything.
        self.covered = function.attrs.get("auto_scope") is not False
        region = _Region(True) if self.covered else None
        if region is not None:
            self.regions.append(region)
        self._body(function.body, [], region)
        if any(r.failed for r in self.regions):
            self.covered = False

    # -- walk ---------------------------------------------------------------------------------------------------

    def _body(self, body: Stmt, history: list[_Access], region: _Region | None) -> None:
        """Statements in order; ``history`` grows by their accesses."""
        for stmt in flatten_to_stmts(body):
            call = stmt_call(stmt)
            if isinstance(stmt, AssignStmt):
                self._assign(stmt)
            if call is not None and is_user_call(call):
                self._launch(stmt, call, history, region)
            elif isinstance(stmt, ForStmt):
                self._loop(stmt, history, region)
            elif isinstance(stmt, WhileStmt):
                self._while(stmt, history, region)
            elif isinstance(stmt, IfStmt):
                self._branch(stmt, history, region)
            elif isinstance(stmt, RuntimeScopeStmt):
                self._scope(stmt, history)
            elif isinstance(stmt, ScopeStmt):
                self._body(stmt.body, history, region)

    def _scope(self, stmt: RuntimeScopeStmt, history: list[_Access]) -> None:
        self.covered = False
        if stmt.manual:
            # The author's edges count there, so nothing inside is known to later scopes.
            self._body(stmt.body, [], None)
            return
        region = _Region(False)
        self.regions.append(region)
        inner = list(history)
        self._body(stmt.body, inner, region)
        if not region.failed:
            history[:] = inner

    def _assign(self, stmt: AssignStmt) -> None:
        self._locations.assign(stmt)
        value = stmt.value
        if isinstance(value, TupleGetItemExpr) and value.tuple in self._tasks:
            task = self._tasks[value.tuple]
            if isinstance(task.call, Call):
                # A plain call has no task id: the first of its results stands for it, any of them can carry it on.
                task.id = stmt.var if task.id is value.tuple else task.id
                self._tasks[stmt.var] = task
            elif isinstance(stmt.var.type, ScalarType) and stmt.var.type.dtype == DataType.TASK_ID:
                task.id = stmt.var
                self._tasks[stmt.var] = task
        elif isinstance(value, Var) and value in self._tasks:
            self._tasks[stmt.var] = self._tasks[value]

    def _launch(self, stmt: Stmt, call: Call | Submit, history: list[_Access], region: _Region | None) -> None:
        result = stmt.var if isinstance(stmt, AssignStmt) else None
        task = _Task(call, result if isinstance(call, Call) else None)
        if result is not None:
            self._tasks[result] = task
        new: list[_Access] = []
        edges: list[Var] = []
        directions = list(call.attrs.get("arg_directions", ()))
        given = list(call.deps) if isinstance(call, Submit) else list(call.attrs.get("manual_dep_edges", ()))
        if region is not None:
            region.calls.append(call)
        for index, (arg, direction) in enumerate(zip(call.args, call.attrs.get("arg_directions", ()))):
            if direction is ArgDirection.Scalar or not isinstance(arg.type, TensorType):
                continue
            found = self._locations.of(arg)
            if found is None:
                self._fail(region)
                continue
            writes = direction in _WRITES
            hazards = self._hazards(found, writes, direction in _READS, history)
            covered = True
            for access in hazards:
                name = access.name
                if name is None:
                    covered = False
                    self._fail(region)
                elif all(name is not d for d in given) and all(name is not e for e in edges):
                    edges.append(name)
            if hazards and covered and self._is_exact(found):
                directions[index] = self._relaxed(direction, found, hazards)
            new += [_Access(location, writes, task) for location in found]
        self._remember(new, history)
        if region is not None:
            self.decisions[call] = _Decision(edges, directions, region)

    @staticmethod
    def _is_exact(found: Locations) -> bool:
        return all(location.box is not None for location in found)

    def _relaxed(self, direction: ArgDirection, found: Locations, hazards: list[_Access]) -> ArgDirection:
        """What the runtime still has to look at when every hazard of an argument is an edge."""
        if any(location.root in self._tracked for location in found):
            return direction
        if direction is ArgDirection.Input:
            return ArgDirection.NoDep
        same = all(h.location in found for h in hazards)
        return ArgDirection.OutputExisting if direction is ArgDirection.InOut and same else direction

    @staticmethod
    def _hazards(found: Locations, writes: bool, reads: bool, history: list[_Access]) -> list[_Access]:
        hazards: list[_Access] = []
        for access in history:
            if not (writes or (reads and access.writes)):
                continue
            if any(may_overlap(access.location, location) for location in found):
                hazards.append(access)
        return hazards

    def _remember(self, new: list[_Access], history: list[_Access]) -> None:
        """Append accesses; a write of a whole region hides what it had to wait for."""
        for access in new:
            if access.writes and access.location.box is not None and len(new) == 1:
                history[:] = [h for h in history if not _same_place(h.location, access.location)]
            history.append(access)

    def _fail(self, region: _Region | None) -> None:
        if region is not None:
            region.failed = True

    # -- control flow -------------------------------------------------------------------------------------------

    def _loop(self, loop: ForStmt, history: list[_Access], region: _Region | None) -> None:
        for arg in loop.iter_args:
            if isinstance(arg.type, TensorType):
                self._locations.join(arg, (arg.initValue,))
        trips = trip_count(loop.start, loop.stop, loop.step)
        ordered = loop.kind is not ForKind.Parallel and trips != 1
        if ordered:
            self._track_between_iterations(loop)
        inner = list(history)
        self._body(loop.body, inner, region)
        values = yielded(loop.body)
        for arg, result, value in zip(loop.iter_args, loop.return_vars, values):
            if isinstance(arg.type, TensorType):
                self._locations.join(result, (arg.initValue, value))
        outside = set(map(id, history))
        for access in inner:
            if id(access) not in outside:
                access.export(self._after_loop(loop, access, values, trips, ordered))
        history[:] = inner

    def _track_between_iterations(self, loop: ForStmt | WhileStmt) -> None:
        """What an ordered loop writes is ordered between iterations by the runtime, not by edges."""
        self.covered = False
        for stmt in iter_stmts(loop.body):
            call = stmt_call(stmt)
            if call is None or not is_user_call(call):
                continue
            for arg, direction in zip(call.args, call.attrs.get("arg_directions", ())):
                if direction in _WRITES:
                    for value in (arg, *(a.initValue for a in loop.iter_args if a is arg)):
                        self._tracked |= {location.root for location in self._locations.of(value) or ()}

    def _after_loop(
        self, loop: ForStmt, access: _Access, values: tuple[Expr, ...], trips: int | None, ordered: bool
    ) -> Var | None:
        """The loop result that stands for the launches of all iterations, or None."""
        if access.uncounted or (ordered and trips is None):
            return None
        access.uncounted = trips is None
        return self._renamed(access, loop.return_vars, values)

    def _renamed(self, access: _Access, results: tuple[Var, ...], values: tuple[Expr, ...]) -> Var | None:
        """The result through which a yielded name of the task leaves a loop or branch."""
        if access.exported and access.outer_name is None:
            return None
        for result, value in zip(results, values):
            if isinstance(value, Var) and self._tasks.get(value) is access.task:
                self._tasks[result] = access.task
                return result
        return None

    def _while(self, loop: WhileStmt, history: list[_Access], region: _Region | None) -> None:
        self._track_between_iterations(loop)
        for arg in loop.iter_args:
            if isinstance(arg.type, TensorType):
                self._locations.join(arg, (arg.initValue,))
        known = set(map(id, history))
        self._body(loop.body, history, region)
        for arg, result, value in zip(loop.iter_args, loop.return_vars, yielded(loop.body)):
            if isinstance(arg.type, TensorType):
                self._locations.join(result, (arg.initValue, value))
        for access in history:
            if id(access) not in known:
                access.export(None)

    def _branch(self, branch: IfStmt, history: list[_Access], region: _Region | None) -> None:
        known = set(map(id, history))
        merged = list(history)
        arms = [branch.then_body] if branch.else_body is None else [branch.then_body, branch.else_body]
        for body in arms:
            inner = list(history)
            self._body(body, inner, region)
            values = yielded(body)
            for access in inner:
                if id(access) in known:
                    continue
                access.export(self._renamed(access, branch.return_vars, values))
                merged.append(access)
        for index, result in enumerate(branch.return_vars):
            if isinstance(result.type, TensorType):
                self._locations.join(result, tuple(yielded(body)[index] for body in arms))
        history[:] = merged


class _Rewrite(IRMutator):
    """Writes the decisions onto the calls."""

    def __init__(self, derivation: _Derivation) -> None:
        super().__init__()
        self._derivation = derivation
        self._keeps_directions = any(r.failed for r in derivation.regions)

    def visit_type(self, kind):
        return kind

    def visit_call(self, call: Call) -> Expr:
        return self._decided(call)

    def visit_submit(self, submit: Submit) -> Expr:
        return self._decided(submit)

    def _decided(self, call: Call | Submit) -> Expr:
        decision = self._derivation.decisions.get(call)
        if decision is None:
            return call
        edges = decision.edges if decision.region.virtual or not decision.region.failed else []
        attrs = {k: v for k, v in call.attrs.items() if k not in (EDGES, REGION_MARK)}
        if not self._keeps_directions:
            attrs["arg_directions"] = decision.directions
        if edges:
            attrs[EDGES] = edges
            if self._derivation.covered:
                attrs[REGION_MARK] = True
        return call if _same(attrs, call.attrs) else replace(call, attrs=attrs)


def _same(a: dict, b: dict) -> bool:
    if list(a) != list(b) or a.get("arg_directions") != b.get("arg_directions"):
        return False
    return all(x is y for x, y in zip(a.get(EDGES, ()), b.get(EDGES, ())))


def _derive(function: Function, lineage: Lineage) -> Function:
    if not is_orchestration_like(function.func_type) or function.body is None:
        return function
    derivation = _Derivation(function, lineage)
    if not derivation.decisions:
        return function
    function = _Rewrite(derivation).visit_function(function)
    launches = any(d.edges for d in derivation.decisions.values())
    if derivation.covered and launches and not _has_bare_call(function):
        return replace(function, attrs={**function.attrs, FUNCTION_MARK: True})
    return function


def _has_bare_call(function: Function) -> bool:
    """A launch whose task nobody could name, so a manual scope would lose it."""
    return any(
        isinstance(s, EvalStmt) and isinstance(s.expr, Call) and is_user_call(s.expr) for s in iter_stmts(function.body)
    )


def auto_derive_task_dependencies(analyze_auto_scopes: bool = False) -> Pass:
    """Derive ``compiler_manual_dep_edges`` for AUTO scopes when asked; otherwise leave the program as it is.

    Edges are added for every read-after-write, write-after-read and write-after-write pair of launches in a region
    (a hand-placed AUTO scope, or the whole body of an ``auto_scope`` function) whose tasks can be named. A region with
    a launch that cannot be placed or named falls back: a hand-placed one loses its edges, the implicit one keeps them,
    and no argument of the function is taken out of the runtime's own tracking.
    """

    def derive(program: Program) -> Program:
        if not analyze_auto_scopes:
            return program
        lineage = Lineage(program)
        return map_functions(program, lambda function: _derive(function, lineage))

    properties = PassProperties(
        required=(P.SplitIncoreOrch, P.CallDirectionsResolved), produced=(P.CallDirectionsResolved,)
    )
    return create_program_pass(derive, "AutoDeriveTaskDependencies", properties)
