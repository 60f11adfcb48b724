"""Windows of kernel parameters: the one box of a tensor that a kernel reads, or writes completely."""

from __future__ import annotations

from dataclasses import dataclass

from pypto.arith import Analyzer
from pypto.ir.enums import ParamDirection, TensorLayout
from pypto.ir.expr import Call, Expr, Var, const_value
from pypto.ir.program import Function
from pypto.ir.stmt import (
    AssignStmt,
    EvalStmt,
    ForStmt,
    IfStmt,
    ReturnStmt,
    ScopeStmt,
    Stmt,
    WhileStmt,
    flatten_to_stmts,
)
from pypto.ir.structural import structural_equal
from pypto.ir.types import ScalarType, TensorType
from pypto.passes.lib import scalars
from pypto.passes.lib.lineage import Lineage
from pypto.passes.lib.walk import direct_uses, used_vars
from pypto.passes.tile.orch_tensors.affine import Affine, Progression, affine, per_iteration, progression, separates

_LARGEST = 2**63 - 1


@dataclass
class Window:
    """A box of a parameter: its origin as expressions over the scalar parameters, and its extents."""

    origin: tuple[Expr, ...]
    shape: tuple[int, ...]

    def covers(self, kind: TensorType) -> bool:
        """The box is the whole tensor."""
        whole = all(const_value(d) == n for d, n in zip(kind.shape, self.shape))
        return whole and all(const_value(o) == 0 for o in self.origin)


@dataclass
class _Access:
    """One load or store statement: the box it touches and the loops around it."""

    offsets: list[Affine]
    extents: list[int]
    loops: dict[Var, Progression]


class KernelWindows:
    """Windows of the tensor parameters of one kernel.

    ``reads`` and ``writes`` map parameter positions to windows. ``complete`` is False when an output is written in
    another way: then no parameter of the kernel is narrowed.
    """

    def __init__(self, function: Function, lineage: Lineage) -> None:
        self.reads: dict[int, Window] = {}
        self.writes: dict[int, Window] = {}
        self.complete = True
        self._function = function
        self._params = set(function.params)
        self._simplify = Analyzer().simplify
        self._origins = lineage.origins(function)
        self._values: dict[Var, Expr] = {}
        self._loops: dict[Var, Progression] = {}
        self._loads: dict[Var, list[_Access | None]] = {}
        self._stores: dict[Var, list[_Access | None]] = {}
        self._blocked: set[Var] = set()
        self._walk(function.body, known=True)
        self._decide(lineage.returned_params(function.name))

    # -- reading the body ---------------------------------------------------------------------------------------

    def _walk(self, body: Stmt | None, *, known: bool) -> None:
        """``known``: every statement here runs, in loops whose iterations are counted."""
        for stmt in flatten_to_stmts(body):
            if isinstance(stmt, AssignStmt) and type(stmt.var.type) is ScalarType:
                self._values[stmt.var] = stmt.value
            if isinstance(stmt, (AssignStmt, EvalStmt)):
                value = stmt.value if isinstance(stmt, AssignStmt) else stmt.expr
                if isinstance(value, Call):
                    self._call(value, known)
                elif isinstance(stmt, EvalStmt) or value not in self._origins:
                    self._block(used_vars(value))
            elif isinstance(stmt, ForStmt):
                steps = progression(stmt, self._values, set(self._loops), self._simplify)
                if steps is not None:
                    self._loops[stmt.loop_var] = steps
                self._walk(stmt.body, known=known and steps is not None)
                self._loops.pop(stmt.loop_var, None)
            elif isinstance(stmt, (WhileStmt, IfStmt)):
                self._block(direct_uses(stmt))
                for inner in (stmt.body,) if isinstance(stmt, WhileStmt) else (stmt.then_body, stmt.else_body):
                    self._walk(inner, known=False)
            elif isinstance(stmt, ScopeStmt):
                self._walk(stmt.body, known=known)
            elif isinstance(stmt, ReturnStmt):
                self._block(v for v in direct_uses(stmt) if v in self._params and v not in self._outputs())

    def _outputs(self) -> set[Var]:
        function = self._function
        pairs = zip(function.params, function.param_directions)
        return {p for p, direction in pairs if direction is not ParamDirection.In}

    def _block(self, variables) -> None:
        self._blocked.update(self._origins[v] for v in variables if v in self._origins)

    def _call(self, call: Call, known: bool) -> None:
        name, args = call.op.name, call.args
        target = {"tile.load": 0, "tile.store": 2}.get(name)
        if target is None or not isinstance(args[target], Var) or args[target] not in self._origins:
            self._block(used_vars(call))
            return
        param = self._origins[args[target]]
        access = None
        if known and name == "tile.load" and not call.kwargs.get("transpose") and _same(args[2], args[3]):
            access = self._access(args[1].elements, [const_value(e) for e in args[2].elements])
        elif known and name == "tile.store" and len(args) == 3 and not call.kwargs:
            tile = args[0].type
            shape = [const_value(e) for e in tile.shape]
            if [const_value(e) for e in tile.valid_shape] == shape:
                access = self._access(args[1].elements, [1] * (len(args[1].elements) - len(shape)) + shape)
        (self._loads if name == "tile.load" else self._stores).setdefault(param, []).append(access)

    def _access(self, offsets: tuple, extents: list[int | None]) -> _Access | None:
        if any(e is None for e in extents) or len(offsets) != len(extents):
            return None
        parts = [affine(o, self._values, set(self._loops)) for o in offsets]
        if any(p is None for p in parts):
            return None
        return _Access([per_iteration(p, self._loops) for p in parts], extents, dict(self._loops))

    # -- decisions ----------------------------------------------------------------------------------------------

    def _decide(self, returned: list[int | None]) -> None:
        function = self._function
        for index, (param, direction) in enumerate(zip(function.params, function.param_directions)):
            if not isinstance(param.type, TensorType):
                continue
            if direction is ParamDirection.In:
                window = self._read_window(param)
                if window is not None and not window.covers(param.type):
                    self.reads[index] = window
                continue
            window = self._written_window(param) if returned.count(index) == 1 else None
            if window is None:
                self.complete = False
            elif not window.covers(param.type):
                self.writes[index] = window

    def _read_window(self, param: Var) -> Window | None:
        loads = self._loads.get(param, [])
        if param in self._blocked or param in self._stores or not loads or not _plain(param.type):
            return None
        windows = [self._box(access, param) if access is not None else None for access in loads]
        first = windows[0]
        if first is None or any(w is None or not _equal(w, first) for w in windows):
            return None
        return first

    def _written_window(self, param: Var) -> Window | None:
        """The box of the only store, when all iterations together fill it and none writes a cell twice."""
        stores = self._stores.get(param, [])
        if param in self._blocked or param in self._loads or len(stores) != 1 or stores[0] is None:
            return None
        (access,) = stores
        window = self._box(access, param) if _plain(param.type) else None
        trips = {var: steps.trips for var, steps in access.loops.items()}
        if window is None or not separates(access.offsets, access.extents, trips):
            return None
        cells = _product(access.extents) * _product(trips.values())
        return window if cells == _product(window.shape) else None

    def _box(self, access: _Access, param: Var) -> Window | None:
        """What all iterations touch together."""
        origin, shape = [], []
        for part, extent, dim in zip(access.offsets, access.extents, param.type.shape):
            low = part.fixed
            for var, factor in part.factors.items():
                reach = abs(factor) * (access.loops[var].trips - 1)
                extent += reach
                if factor < 0:
                    low = scalars.sub(low, reach)
            low = self._simplify(low)
            limit = const_value(dim)
            if limit is None or extent > limit or any(v not in self._params for v in used_vars(low)):
                return None
            if const_value(low) is not None and not 0 <= const_value(low) <= limit - extent:
                return None
            origin.append(low)
            shape.append(extent)
        if any(steps.trips < 1 for steps in access.loops.values()) or _product(shape) > _LARGEST:
            return None
        return Window(tuple(origin), tuple(shape))


def _plain(kind: TensorType) -> bool:
    """A packed or strided row-major tensor of which every cell is valid."""
    view = kind.tensor_view
    if type(kind) is not TensorType:
        return False
    return view is None or (view.layout is TensorLayout.ND and not view.valid_shape)


def _same(a: Expr, b: Expr) -> bool:
    return structural_equal(a, b)


def _equal(a: Window, b: Window) -> bool:
    return a.shape == b.shape and all(structural_equal(x, y) for x, y in zip(a.origin, b.origin))


def _product(numbers) -> int:
    result = 1
    for number in numbers:
        result *= number
    return result
