"""Pattern 5: kernels marked ``windowize`` are launched on the windows that they use instead of on whole tensors."""

from __future__ import annotations

from dataclasses import dataclass

from pypto.arith import Analyzer
from pypto.ir.enums import FunctionType, ParamDirection, TensorLayout, is_incore_type
from pypto.ir.expr import Call, Expr, GlobalVar, MakeTuple, Submit, TupleGetItemExpr, Var, const_index, const_value
from pypto.ir.node import replace
from pypto.ir.program import Function, Program
from pypto.ir.stmt import AssignStmt, ForStmt, IfStmt, ScopeStmt, Stmt, WhileStmt, flatten_to_stmts
from pypto.ir.types import TensorType, TensorView, TupleType, Type
from pypto.ir.visitor import IRMutator
from pypto.ops.registry import create_op_call
from pypto.passes.lib import scalars
from pypto.passes.lib.lineage import Lineage
from pypto.passes.lib.op_facts import in_place_arg
from pypto.passes.lib.rewrite import Substitution, clone, fresh, rebuild_lists, with_body
from pypto.passes.lib.uses import count_reads
from pypto.passes.lib.walk import iter_stmts, stmt_call
from pypto.passes.tile.orch_tensors.affine import Progression, affine, per_iteration, progression, separates
from pypto.passes.tile.orch_tensors.parent_strides import RetypeCalls, row_major
from pypto.passes.tile.orch_tensors.windows import KernelWindows, Window

ATTRIBUTE = "windowize"
SUFFIX = "__windowed"


def externalize_windows(program: Program) -> Program:
    """Clone marked kernels to ``<name>__windowed`` and pass slices of their tensors; outputs are assembled back."""
    functions = {f.name: f for f in program.functions.values()}
    lineage = Lineage(program)
    kernels = {
        f.name: windows
        for f in functions.values()
        if is_incore_type(f.func_type) and f.attrs.get(ATTRIBUTE) and f.body is not None and f.return_types
        and f.name + SUFFIX not in functions and (windows := KernelWindows(f, lineage)).complete
    }  # fmt: skip
    if not kernels:
        return program
    sites: dict[str, list[_Site]] = {name: [] for name in kernels}
    for function in functions.values():
        if function.body is not None:
            for site in _Caller(function, functions, kernels, lineage).sites():
                sites[site.call.op.name].append(site)
    narrowed: dict[str, dict[int, Window]] = {}
    for name, found in sites.items():
        windows = {**kernels[name].reads, **kernels[name].writes}
        if found and windows and all(site.possible for site in found):
            narrowed[name] = {i: w for i, w in windows.items() if row_major(functions[name].params[i].type)}
    narrowed = {name: windows for name, windows in narrowed.items() if windows}
    if not narrowed:
        return program
    result: list[Function] = []
    for function in functions.values():
        if function.body is not None:
            function = _Launches(function, functions, narrowed).rewrite()
        result.append(function)
        if function.name in narrowed:
            result.append(_narrow(functions[function.name], narrowed[function.name], lineage))
    return Program(result, program.name, program.span)


@dataclass
class _Site:
    """One launch of a marked kernel."""

    call: Call | Submit
    possible: bool
    roots: dict[int, Var]  # output position -> the tensor it lies in


class _Caller:
    """The launches of one function, and what else writes the tensors that they write."""

    def __init__(
        self, function: Function, functions: dict[str, Function], kernels: dict[str, KernelWindows], lineage: Lineage
    ) -> None:
        self._function, self._functions, self._kernels, self._lineage = function, functions, kernels, lineage
        self._roots: dict[Var, Var | None] = {p: p for p in function.params}
        self._tuples: dict[Var, Expr] = {}
        self._values: dict[Var, Expr] = {}
        self._found: list[_Site] = []
        self._written_whole: set[Var | None] = set()
        self._simplify = Analyzer().simplify

    def sites(self) -> list[_Site]:
        outside = self._function.func_type in (FunctionType.Group, FunctionType.Spmd)
        self._walk(self._function.body, [], fixed=not outside and not is_incore_type(self._function.func_type))
        # A tensor with one writer that needs all of it is left whole for the others too.
        changed = True
        while changed:
            changed = False
            for site in self._found:
                roots = set(site.roots.values())
                if site.possible and roots & self._written_whole:
                    site.possible = False
                if not site.possible and not roots <= self._written_whole:
                    self._written_whole |= roots
                    changed = True
        return self._found

    def _walk(self, body: Stmt | None, loops: list[tuple[ForStmt, Progression | None]], *, fixed: bool) -> None:
        for stmt in flatten_to_stmts(body):
            call = stmt_call(stmt)
            if call is not None:
                self._note(call, loops, fixed)
            if isinstance(stmt, AssignStmt):
                self._assign(stmt)
            elif isinstance(stmt, ForStmt):
                known = {loop.loop_var for loop, _ in loops}
                steps = progression(stmt, self._values, known, self._simplify)
                self._loop(stmt)
                self._walk(stmt.body, [*loops, (stmt, steps)], fixed=fixed)
            elif isinstance(stmt, WhileStmt):
                self._loop(stmt)
                self._walk(stmt.body, loops, fixed=False)
            elif isinstance(stmt, IfStmt):
                self._walk(stmt.then_body, loops, fixed=fixed)
                self._walk(stmt.else_body, loops, fixed=fixed)
                for var, (a, b) in zip(stmt.return_vars, _branch_values(stmt)):
                    root = self._roots.get(a)
                    self._roots[var] = root if root is self._roots.get(b) else None
            elif isinstance(stmt, ScopeStmt):
                self._walk(stmt.body, loops, fixed=fixed)

    def _assign(self, stmt: AssignStmt) -> None:
        value = stmt.value
        if isinstance(value, (Call, Submit, MakeTuple)):
            self._tuples[stmt.var] = value
        if not isinstance(stmt.var.type, (TensorType, TupleType)):
            self._values[stmt.var] = value
            return
        source = self._lineage.alias_source(value, self._tuples)
        if source is None and isinstance(value, Call) and in_place_arg(value) is not None:
            source = value.args[in_place_arg(value)]  # a view lies in the same tensor
        self._roots[stmt.var] = self._roots.get(source, stmt.var) if isinstance(source, Var) else stmt.var

    def _loop(self, stmt: ForStmt | WhileStmt) -> None:
        for arg, result in zip(stmt.iter_args, stmt.return_vars):
            root = self._roots.get(arg.initValue) if isinstance(arg.initValue, Var) else None
            self._roots[arg] = self._roots[result] = root

    def _note(self, call: Call | Submit, loops: list, fixed: bool) -> None:
        if not isinstance(call.op, GlobalVar):
            index = in_place_arg(call)
            if index is not None and isinstance(call.args[index].type, TensorType):
                written = call.op.name in ("tensor.write", "tensor.assemble")
                if written:
                    self._written_whole.add(self._roots.get(call.args[index]))
            return
        callee = self._functions.get(call.op.name)
        directions = callee.param_directions if callee is not None else ()
        roots = {
            i: self._roots.get(arg)
            for i, (arg, direction) in enumerate(zip(call.args, directions))
            if direction is not ParamDirection.In and isinstance(arg.type, TensorType)
        }
        windows = self._kernels.get(call.op.name)
        if windows is None:
            self._written_whole.update(roots.values())
            return
        whole = {root for i, root in roots.items() if i not in windows.writes}
        self._written_whole |= whole
        possible = fixed and self._fits(call, callee, windows, roots, loops)
        self._found.append(_Site(call, possible, {i: root for i, root in roots.items() if i in windows.writes}))

    def _fits(self, call: Call | Submit, callee: Function, windows: KernelWindows, roots: dict, loops: list) -> bool:
        if (
            len(call.args) != len(callee.params)
            or any(r is None for r in roots.values())
            or len(set(roots.values())) < len(roots)
        ):
            return False
        if isinstance(call, Submit) and not windows.writes:
            return False
        given = dict(zip(callee.params, call.args))
        for index, window in (*windows.reads.items(), *windows.writes.items()):
            origin = origin_at(window, given)
            if not _same_shape(call.args[index].type, callee.params[index].type):
                return False
            for start, extent, dim in zip(origin, window.shape, callee.params[index].type.shape):
                low = const_value(start)
                if low is not None and not 0 <= low <= const_value(dim) - extent:
                    return False
        return all(
            self._apart(windows.writes[i], given, root, loops) for i, root in roots.items() if i in windows.writes
        )

    def _apart(self, window: Window, given: dict[Var, Expr], root: Var, loops: list) -> bool:
        """Iterations of the loops that carry the output write different cells of it."""
        carrying = [(loop, s) for loop, s in loops if any(self._roots.get(a) is root for a in loop.iter_args)]
        if not carrying:
            return True
        if any(steps is None for _, steps in loops):
            return False
        steps = {loop.loop_var: s for loop, s in loops}
        parts = [affine(o, self._values, set(steps)) for o in origin_at(window, given)]
        if any(p is None for p in parts):
            return False
        counted = [per_iteration(p, steps) for p in parts]
        carriers = {loop.loop_var: s.trips for loop, s in carrying}
        own = [replace_factors(p, carriers) for p in counted]
        return separates(own, list(window.shape), carriers)


def replace_factors(part, kept: dict[Var, int]):
    """The offset as seen by the loops ``kept``; the others stand still."""
    return type(part)(part.fixed, {var: factor for var, factor in part.factors.items() if var in kept})


def origin_at(window: Window, given: dict[Var, Expr]) -> tuple[Expr, ...]:
    """The origin of a window in terms of a launch's arguments."""
    substitution, simplify = Substitution(dict(given)), Analyzer().simplify
    return tuple(simplify(substitution.visit_expr(o)) for o in window.origin)


def _branch_values(stmt: IfStmt) -> list[tuple]:
    from pypto.passes.lib.walk import yielded

    return list(zip(yielded(stmt.then_body), yielded(stmt.else_body)))


def _same_shape(a: Type, b: Type) -> bool:
    return (
        isinstance(a, TensorType)
        and len(a.shape) == len(b.shape)
        and all(const_value(x) is not None and const_value(x) == const_value(y) for x, y in zip(a.shape, b.shape))
    )


# -- the kernel -------------------------------------------------------------------------------------------------


def narrowed_type(kind: TensorType, window: Window) -> TensorType:
    """The type of a window of a tensor: its extents with the strides of the whole."""
    view = TensorView(stride=row_major(kind), layout=TensorLayout.ND)
    return TensorType([const_index(n) for n in window.shape], kind.dtype, None, view)


def _narrow(function: Function, windows: dict[int, Window], lineage: Lineage) -> Function:
    """``<name>__windowed``: the kernel on windows, with offsets that start there."""
    var_map: dict[Var, Expr] = {p: replace(p) for p in function.params}
    body = clone(function.body, var_map)
    params = tuple(var_map[p] for p in function.params)
    attrs = {key: value for key, value in function.attrs.items() if key != ATTRIBUTE}
    returned = lineage.returned_params(function.name)
    types, bases = {}, {}
    origins = lineage.origins(function)
    for index, window in windows.items():
        kind = narrowed_type(function.params[index].type, window)
        for alias, param in origins.items():
            if param is function.params[index]:
                types[var_map[alias]] = kind
                bases[var_map[alias]] = tuple(Substitution(dict(var_map)).visit_expr(o) for o in window.origin)
    return_types = [
        narrowed_type(function.params[i].type, windows[i]) if i in windows else kind
        for i, kind in zip([*returned, *[None] * len(function.return_types)], function.return_types)
    ]
    values = {s.var: s.value for s in iter_stmts(body) if isinstance(s, AssignStmt)}
    body = _Rebase(bases, values).visit_stmt(body)
    copy = replace(function, name=function.name + SUFFIX, params=params, body=body, attrs=attrs)
    copy = RetypeCalls(types).visit_function(copy)
    return replace(copy, return_types=return_types)


class _Rebase(IRMutator):
    """Counts the offsets of loads and stores from the origins of the windows."""

    def __init__(self, bases: dict[Var, tuple[Expr, ...]], values: dict[Var, Expr]) -> None:
        super().__init__()
        self._bases, self._values = bases, values
        self._simplify = Analyzer().simplify

    def visit_call(self, call: Call) -> Expr:
        target = {"tile.load": 0, "tile.store": 2}.get(call.op.name)
        if target is None or call.args[target] not in self._bases:
            return call
        base = self._bases[call.args[target]]
        offsets = [self._local(o, b) for o, b in zip(call.args[1].elements, base)]
        return replace(call, args=(call.args[0], MakeTuple(offsets, call.span), *call.args[2:]))

    def _local(self, offset: Expr, base: Expr) -> Expr:
        if const_value(base) == 0:
            return offset
        return self._simplify(scalars.sub(self._resolved(offset), base))

    def _resolved(self, expr: Expr) -> Expr:
        """The offset in terms of parameters and loop variables."""
        return _Resolve(self._values).visit_expr(expr)


class _Resolve(IRMutator):
    def __init__(self, values: dict[Var, Expr]) -> None:
        super().__init__()
        self._values = values

    def visit_var(self, var: Var) -> Expr:
        return self.visit_expr(self._values[var]) if var in self._values else var


# -- the launches -----------------------------------------------------------------------------------------------


class _Launches:
    """Replaces the launches of narrowed kernels in one function."""

    def __init__(self, function: Function, functions: dict[str, Function], narrowed: dict[str, dict[int, Window]]):
        self._function, self._functions, self._narrowed = function, functions, narrowed
        self._items: dict[Var, dict[int, Expr]] = {}  # result of a launch -> its parts
        self._lineage = Lineage(Program(list(functions.values()), "", function.span))

    def rewrite(self) -> Function:
        self._reads = count_reads(self._function)
        new = with_body(self._function, rebuild_lists(self._function.body, self._list))
        return _UseItems(self._items).visit_function(new) if self._items else new

    def _list(self, stmts: list[Stmt]) -> list[Stmt]:
        result: list[Stmt] = []
        for stmt in stmts:
            call = stmt_call(stmt)
            windows = self._narrowed.get(call.op.name) if call is not None else None
            result.extend([stmt] if windows is None else self._launch(stmt, call, windows))
        return result if len(result) != len(stmts) or any(a is not b for a, b in zip(result, stmts)) else stmts

    def _launch(self, stmt: Stmt, call: Call | Submit, windows: dict[int, Window]) -> list[Stmt]:
        callee = self._functions[call.op.name]
        given = dict(zip(callee.params, call.args))
        inputs = [i for i in windows if callee.param_directions[i] is ParamDirection.In]
        before: list[Stmt] = []
        args, origins = list(call.args), {}
        for index in (*sorted(inputs), *sorted(set(windows) - set(inputs))):
            origins[index] = MakeTuple(origin_at(windows[index], given), call.span)
            shape = MakeTuple([const_index(n) for n in windows[index].shape], call.span)
            value = create_op_call("tensor.slice", [call.args[index], shape, origins[index]], {}, call.span)
            args[index] = Var(f"{call.args[index].name_hint}__window", value.type, call.span)
            before.append(AssignStmt(args[index], value, stmt.span))
        returned = self._lineage.returned_params(callee.name)
        types = {
            position: narrowed_type(callee.params[index].type, windows[index])
            for position, index in enumerate(returned)
            if index in windows
        }
        kind = call.type
        if isinstance(kind, TupleType):
            kind = TupleType([types.get(i, t) for i, t in enumerate(kind.types)])
        elif types:
            kind = types[0]
        launch = replace(call, op=GlobalVar(callee.name + SUFFIX), args=tuple(args), type=kind)
        if not isinstance(stmt, AssignStmt) or not types:
            field = "value" if isinstance(stmt, AssignStmt) else "expr"
            return [*before, replace(stmt, **{field: launch})]
        name = f"{stmt.var.name_hint}__windowed"
        whole = Var(name, kind, stmt.span)
        after: list[Stmt] = [AssignStmt(whole, launch, stmt.span)]
        if not isinstance(kind, TupleType):
            value = self._assembled(call, returned[0], whole, origins)
            return [*before, *after, AssignStmt(stmt.var, value, stmt.span)]
        elements: list[Expr] = []
        for position, item in enumerate(kind.types):
            part: Expr = TupleGetItemExpr(whole, position)
            if position in types:
                piece = fresh(whole, f"_{position}", item)
                after.append(AssignStmt(piece, part, stmt.span))
                value = self._assembled(call, returned[position], piece, origins)
                part = Var(f"{stmt.var.name_hint}__assembled_{position}", value.type, stmt.span)
                after.append(AssignStmt(part, value, stmt.span))
            elements.append(part)
        self._items[stmt.var] = dict(enumerate(elements))
        if self._reads[stmt.var] > self._projections(stmt.var):
            after.append(AssignStmt(stmt.var, MakeTuple(elements, stmt.span), stmt.span))
        return [*before, *after]

    def _projections(self, var: Var) -> int:
        values = (s.value for s in iter_stmts(self._function.body) if isinstance(s, AssignStmt))
        return sum(isinstance(v, TupleGetItemExpr) and v.tuple is var for v in values)

    @staticmethod
    def _assembled(call: Call | Submit, index: int, value: Var, origins: dict[int, MakeTuple]) -> Call:
        return create_op_call("tensor.assemble", [call.args[index], value, origins[index]], {}, call.span)


class _UseItems(IRMutator):
    """Projections of a replaced launch read its parts."""

    def __init__(self, items: dict[Var, dict[int, Expr]]) -> None:
        super().__init__()
        self._items = items

    def visit_tuple_get_item_expr(self, value: TupleGetItemExpr) -> Expr:
        parts = self._items.get(value.tuple) if isinstance(value.tuple, Var) else None
        return super().visit_tuple_get_item_expr(value) if parts is None else parts[value.index]
