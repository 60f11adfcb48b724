"""Orchestration functions as C++: one statement walker, reading what the passes have decided."""

from __future__ import annotations

import re
from contextlib import contextmanager

from pypto.codegen.division import Divisions
from pypto.codegen.orchestration.analysis import TaskId, tracked_tensors, used_variables, variables_of
from pypto.codegen.orchestration.control_flow import ControlFlow
from pypto.codegen.orchestration.expressions import c_type, expression, narrowed
from pypto.codegen.orchestration.names import RUNTIME_DTYPE, VariableNames
from pypto.codegen.orchestration.tasks import TaskEmission
from pypto.codegen.writer import Writer
from pypto.errors import InternalError, user_error
from pypto.ir import DataType, Expr, Function, Program, Span, TensorType, Var
from pypto.ir import stmt as S
from pypto.ir.expr import Call, ConstFloat, ConstInt, GlobalVar, MakeTuple, Submit, TupleGetItemExpr
from pypto.ir.types import ArrayType, CommCtxType, PtrType, ScalarType, TupleType

#: Tensors of one ``alloc_tensors``; the task runtime takes no more.
_MAX_ALLOCATED_TOGETHER = 256

#: Variables that a generated line declares and through which task ids are named.
_TASK_DECLARATION = re.compile(r"^\s*(?:PTO2TaskId|TaskOutputTensors) (\w+)", re.MULTILINE)


class OrchestrationEmitter(ControlFlow):
    """State of one orchestration function.

    ``hoisted`` names producers whose task ids are declared outside the scope that submits them; ``missed`` holds, after
    printing, those that should have been.
    """

    def __init__(self, program: Program, function: Function, hoisted: frozenset[Var] = frozenset()):
        self.program = program
        self.function = function
        self.divisions = Divisions(function)
        self.writer = Writer(4)
        self.names = VariableNames()
        self.tensors: dict[Var, str] = {}
        self.scalars: dict[Var, str] = {}
        self.task_ids: dict[Var, TaskId] = {}
        self.arrays: dict[Var, tuple[str, int, DataType]] = {}
        self.tuples: dict[Var, list] = {}
        self.info_of: dict[str, str] = {}
        self.uses = used_variables(function)
        self.tracked = tracked_tensors(function)
        self.tensor_tasks: dict[Var, TaskId] = {}
        self.hoisted = hoisted
        self.closed: dict[Var, object] = {}
        self.renamed: dict[Var, Var] = {}
        self.missed: set[Var] = set()
        self.tasks = TaskEmission(self)
        self._allocations = 0
        self._pending: dict[Var, Call] = {}

    # -- helpers ------------------------------------------------------------------------------------------------

    def line(self, text: str = "") -> None:
        self.writer.line(text)

    @contextmanager
    def block(self, opening: str):
        position = len(self.writer.lines)
        self.line(opening)
        with self.writer.indented(4), self.closing() as hoisted:
            yield
        self.line("}")
        self.writer.lines[position:position] = [f"{' ' * self.writer.indent}{line}" for line in hoisted]

    @contextmanager
    def closing(self):
        """At the end of a C++ scope the task ids that were declared in it are forgotten; older values mean again what
        they meant before it.

        Yields the declarations that belong before the scope: of ids which a later compiler-derived dependency needs.
        """
        start, tables = len(self.writer.lines), (self.task_ids, self.tensor_tasks, self.arrays)
        counts = [len(table) for table in tables]
        known = dict(self.tensor_tasks)
        hoisted: list[str] = []
        yield hoisted
        self.tensor_tasks.update(known)
        declared = set(_TASK_DECLARATION.findall("\n".join(self.writer.lines[start:])))
        if not declared:
            return
        for table, count in zip(tables, counts):
            for var in list(table)[count:]:
                entry = table[var]
                text = entry.text if isinstance(entry, TaskId) else entry[0]
                if text.partition(".")[0] not in declared:
                    continue
                if isinstance(entry, TaskId) and text.isidentifier() and not entry.count and var in self.hoisted:
                    table[var] = TaskId(text)
                    declaration = f"PTO2TaskId {text} = PTO2TaskId::invalid();"
                    if declaration not in hoisted:
                        hoisted.append(declaration)
                        self._assign_instead_of_declaring(text, start)
                else:
                    self.closed[var] = table.pop(var)

    def _assign_instead_of_declaring(self, name: str, start: int) -> None:
        lines = self.writer.lines
        for index in range(start, len(lines)):
            if lines[index].lstrip().startswith(f"PTO2TaskId {name} ="):
                lines[index] = lines[index].replace("PTO2TaskId ", "", 1)

    @contextmanager
    def captured(self):
        """Collect the lines written inside instead of printing them."""
        outer, self.writer = self.writer, Writer(self.writer.indent)
        try:
            yield self.writer
        finally:
            self.writer = outer

    def tensor(self, value: Expr) -> str:
        text = self.tensors.get(value) if isinstance(value, Var) else None
        if text is None:
            raise InternalError(f"'{value}' does not name a tensor of '{self.function.name}'", span=value.span)
        return text

    def alias(self, var: Var, value: Var) -> None:
        for table in (self.tensors, self.scalars, self.task_ids, self.arrays, self.tuples, self.tensor_tasks):
            if value in table:
                table[var] = table[value]
        if value in self.closed:
            self.closed[var] = self.closed[value]
            self.renamed[var] = value

    # -- entry --------------------------------------------------------------------------------------------------

    def emit_function(self) -> None:
        self._declare_params()
        self.emit_body(self.function.body)

    def _declare_params(self) -> None:
        tensors = [p for p in self.function.params if isinstance(p.type, TensorType)]
        scalars = [p for p in self.function.params if isinstance(p.type, (ScalarType, CommCtxType))]
        self.line("// External tensors")
        for index, param in enumerate(tensors):
            name = self.tensors[param] = self.names.exact(f"ext_{self.names.claim(param.name_hint)}")
            self.line(f"const ChipTensor& {name} = orch_args.tensor({index}).ref();")
        self.line()
        if scalars:
            self.line("// Scalar params")
            for index, param in enumerate(scalars):
                name = self.scalars[param] = self.names.claim(param.name_hint)
                if isinstance(param.type, CommCtxType):
                    self.line(f"uint64_t {name} = orch_args.scalar({index});")
                else:
                    kind = c_type(param.type.dtype)
                    self.line(f"{kind} {name} = from_u64<{kind}>(orch_args.scalar({index}));")
            self.line()
        self._declare_symbols(tensors)

    def _declare_symbols(self, tensors: list[Var]) -> None:
        """Dynamic extents that the body mentions, read from the first parameter that declares them."""
        lines = []
        params = set(self.function.params)
        for index, param in enumerate(tensors):
            for axis, dim in enumerate(param.type.shape):
                if isinstance(dim, Var) and dim not in params and dim not in self.scalars and dim in self.uses:
                    name = self.scalars[dim] = self.names.claim(dim.name_hint)
                    lines.append(f"int64_t {name} = (int64_t)orch_args.tensor({index}).ref().shapes[{axis}];")
        if lines:
            self.line("// Dynamic-dim symbols (extent of the declaring argument)")
            for line in lines:
                self.line(line)
            self.line()

    # -- bodies -------------------------------------------------------------------------------------------------

    def emit_body(self, body: S.Stmt, *, hoisted: bool = False) -> None:
        stmts = S.flatten_to_stmts(body)
        if not hoisted:
            self.allocate(stmts)
        for stmt in stmts:
            self.emit_stmt(stmt)

    def emit_stmt(self, stmt: S.Stmt) -> None:
        match stmt:
            case S.AssignStmt():
                self._assign(stmt.var, stmt.value, stmt.span)
            case S.EvalStmt():
                self._evaluate(stmt.expr, stmt.span)
            case S.RuntimeScopeStmt():
                self._runtime_scope(stmt)
            case S.ForStmt():
                self._for(stmt)
            case S.WhileStmt():
                self._while(stmt)
            case S.IfStmt():
                self._if(stmt)
            case S.ReturnStmt():
                pass
            case S.ScopeStmt():
                self.emit_body(stmt.body)
            case _:
                raise InternalError(f"{type(stmt).__name__} cannot be printed in an orchestration", span=stmt.span)

    def _runtime_scope(self, stmt: S.RuntimeScopeStmt) -> None:
        stmts = S.flatten_to_stmts(stmt.body)
        if stmt.manual:
            self.allocate(stmts)
        with self.block("PTO2_SCOPE(PTO2ScopeMode::MANUAL) {" if stmt.manual else "PTO2_SCOPE() {"):
            if not stmt.manual:
                self.allocate(stmts)
            self.allocate(stmts)
            for child in stmts:
                self.emit_stmt(child)

    # -- tensors ------------------------------------------------------------------------------------------------

    def allocate(self, stmts: list[S.Stmt]) -> None:
        """``alloc_tensors`` for what ``stmts`` create with extents that are known here: one call if it can."""
        creates = [
            (s.var, s.value)
            for s in stmts
            if isinstance(s, S.AssignStmt)
            and isinstance(s.value, Call)
            and s.value.op.name == "tensor.create"
            and s.var not in self.tensors
            and all(self._known(e) for e in s.value.args[0].elements)
        ]
        infos = []
        for var, call in creates:
            name = self.names.claim(var.name_hint)
            infos.append((var, name, self.create_info(f"{name}_ci", var, call)))
        for first in range(0, len(infos), _MAX_ALLOCATED_TOGETHER):
            self._alloc_tensors(infos[first : first + _MAX_ALLOCATED_TOGETHER])

    def _alloc_tensors(self, infos: list[tuple[Var, str, str]]) -> None:
        """One call for (variable, name, create info) of each tensor."""
        batch = f"alloc_{self._allocations}"
        self._allocations += 1
        self.line(f"TaskOutputTensors {batch} = alloc_tensors({', '.join(info for _, _, info in infos)});")
        for index, (var, name, _) in enumerate(infos):
            self.line(f"const ChipTensor& {name} = {batch}.get_ref({index});")
            self.tensors[var] = name

    def _known(self, expr: Expr) -> bool:
        return all(v in self.scalars for v in variables_of(expr))

    def create_info(self, name: str, var: Var, call: Call) -> str:
        """``TensorCreateInfo`` lines of a created tensor; returns its name."""
        shape, dtype = list(call.args[0].elements), var.type.dtype
        extents = [narrowed(self, d) for d in shape]
        workspace = self.tasks.pipe_workspace_elements(var)
        if workspace is not None:
            extents = [str(workspace)]
        if dtype == DataType.FP4:
            extents[-1] = f"({extents[-1]} / 2)"
        self.line(f"uint32_t {name}_shapes[{len(extents)}] = {{{', '.join(extents)}}};")
        manual = ", /*manual_dep=*/true" if call.kwargs.get("manual_dep") else ""
        self.line(f"TensorCreateInfo {name}({name}_shapes, {len(extents)}, DataType::{RUNTIME_DTYPE[dtype]}{manual});")
        init = call.kwargs.get("init_value")
        if init is not None:
            self.line(f"{name}.set_initial_value({_initial_value(init, dtype, call.span)});")
        return name

    def _tensor_call(self, var: Var, call: Call, span: Span) -> None:
        op = call.op.name
        if op == "tensor.create":
            if var not in self.tensors:
                name = self.names.claim(var.name_hint)
                self._alloc_tensors([(var, name, self.create_info(f"{name}_ci", var, call))])
        elif op == "tensor.slice":
            self._slice(var, call)
        elif op in ("tensor.reshape", "tensor.view"):
            source = self.tensor(call.args[0])
            name = self._declare_tensor(var)
            shape = call.args[1].elements
            extents = ", ".join(narrowed(self, d) for d in shape)
            self.line(f"uint32_t {name}_shapes[{len(shape)}] = {{{extents}}};")
            self.line(f"ChipTensor {name} = {source}.reshape({name}_shapes, {len(shape)});")
        elif op == "tensor.transpose":
            source = self.tensor(call.args[0])
            axes = ", ".join(str(_axis(a, len(var.type.shape))) for a in call.args[1:3])
            name = self._declare_tensor(var)
            self.line(f"ChipTensor {name} = {source}.transpose({axes});")
        elif op == "tensor.assemble" and call.kwargs.get("atomic"):
            raise user_error(
                "An atomic tensor.assemble combines values on a core, and orchestration code only names memory; "
                "move it into `with pl.at(level=pl.Level.CORE_GROUP):`",
                span=span,
            )
        elif op in ("tensor.assemble", "tensor.set_validshape"):
            self.tensors[var] = self.tensor(call.args[0])
        else:
            raise _misplaced(call, span)

    def _declare_tensor(self, var: Var) -> str:
        name = self.tensors[var] = self.names.claim(var.name_hint)
        return name

    def _slice(self, var: Var, call: Call) -> None:
        source = self.tensor(call.args[0])
        sizes, offsets = call.args[1].elements, call.args[2].elements
        name = self.names.claim(var.name_hint)
        rank = len(offsets)
        self.line(f"uint32_t {name}_offsets[{rank}] = {{{', '.join(narrowed(self, o) for o in offsets)}}};")
        extents = []
        for axis, size in enumerate(sizes):
            start, extent = f"{name}_offsets[{axis}]", f"{source}.shapes[{axis}]"
            extents.append(
                f"({start} >= {extent} ? 0u : std::min<uint32_t>({narrowed(self, size)}, {extent} - {start}))"
            )
        self.line(f"uint32_t {name}_shapes[{rank}] = {{{', '.join(extents)}}};")
        dropped = _dropped_axes(call)
        if not dropped:
            self.line(f"ChipTensor {name} = {source}.view({name}_shapes, {name}_offsets);")
            self.tensors[var] = name
            return
        self.line(f"ChipTensor {name}_full = {source}.view({name}_shapes, {name}_offsets);")
        self.line(f"ChipTensor {name} = {name}_full;")
        kept = [axis for axis in range(rank) if axis not in dropped]
        self.line(f"{name}.ndims = {len(kept)};")
        for position, axis in enumerate(kept):
            self.line(f"{name}.shapes[{position}] = {name}_full.shapes[{axis}];")
            self.line(f"{name}.strides[{position}] = {name}_full.strides[{axis}];")
        self.tensors[var] = name

    # -- assignments --------------------------------------------------------------------------------------------

    def _assign(self, var: Var, value: Expr, span: Span) -> None:
        if isinstance(value, Var):
            self._rename(var, value)
        elif isinstance(value, Submit) or (isinstance(value, Call) and isinstance(value.op, GlobalVar)):
            self.tasks.submit(value, var, span)
        elif isinstance(value, TupleGetItemExpr):
            self._element(var, value)
        elif isinstance(value, MakeTuple):
            self.tuples[var] = list(value.elements)
        elif isinstance(var.type, TensorType) and isinstance(value, Call):
            self._tensor_call(var, value, span)
        elif isinstance(var.type, ArrayType) and isinstance(value, Call):
            self._array_call(var, value)
        elif isinstance(var.type, ScalarType):
            self._scalar(var, value)
        elif not isinstance(var.type, (PtrType, TupleType)):
            raise _misplaced(value, span)

    def _rename(self, var: Var, value: Var) -> None:
        if isinstance(var.type, ScalarType) and var.type.dtype == DataType.TASK_ID:
            if value in self.task_ids and self.task_ids[value].count == 0 and var in self.uses:
                name = self.names.claim(var.name_hint)
                self.line(f"PTO2TaskId {name} = {self.task_ids[value].text};")
                self.task_ids[var] = TaskId(name, guarded=False)
            else:
                self.alias(var, value)
            return
        self.alias(var, value)

    def _element(self, var: Var, value: TupleGetItemExpr) -> None:
        items = self.tuples.get(value.tuple)
        if items is None:
            raise InternalError(f"the tuple of '{var.name_hint}' is not the result of a task", span=value.span)
        item = items[value.index]
        if isinstance(item, TaskId):
            if var in self.uses:
                name = self.names.claim(var.name_hint)
                self.line(f"PTO2TaskId {name} = {item.text};")
                self.task_ids[var] = TaskId(name, guarded=False)
        elif isinstance(item, str):
            self.tensors[var] = item
            if value.tuple in self.tensor_tasks:
                self.tensor_tasks[var] = self.tensor_tasks[value.tuple]
        else:
            self._assign(var, item, value.span)

    def _scalar(self, var: Var, value: Expr) -> None:
        dtype = var.type.dtype
        if dtype == DataType.TASK_ID:
            self._task_id(var, value)
            return
        if isinstance(value, Call) and value.op.name == "tensor.read":
            self._read(var, value)
            return
        name = self.names.claim(var.name_hint)
        self.line(f"{c_type(dtype)} {name} = {expression(self, value)};")
        self.scalars[var] = name

    def _task_id(self, var: Var, value: Expr) -> None:
        if not isinstance(value, Call):
            raise InternalError("a task id comes from a task", span=value.span)
        if value.op.name == "system.task_dummy":
            self.tasks.barrier(value, var)
        elif value.op.name == "system.task_invalid":
            self.task_ids[var] = TaskId("PTO2TaskId::invalid()", guarded=True)
        elif value.op.name == "array.get_element":
            name = self.names.claim(var.name_hint)
            array, _, _ = self.arrays[value.args[0]]
            self.line(f"PTO2TaskId {name} = {array}[{expression(self, value.args[1])}];")
            self.task_ids[var] = TaskId(name)
        else:
            raise _misplaced(value, value.span)

    def _read(self, var: Var, call: Call) -> None:
        name = self.names.claim(var.name_hint)
        indices = call.args[1].elements
        values = ", ".join(narrowed(self, i) for i in indices)
        self.line(f"uint32_t indices_{name}[{len(indices)}] = {{{values}}};")
        kind = c_type(var.type.dtype)
        source = self.tensor(call.args[0])
        self.line(f"{kind} {name} = get_tensor_data<{kind}>({source}, {len(indices)}, indices_{name});")
        self.scalars[var] = name

    def scalar_call(self, call: Call) -> str:
        """C++ expression of an operator whose value is a scalar."""
        op = call.op.name
        if op == "tensor.dim":
            axis = call.args[1].value
            dim = call.args[0].type.shape[axis]
            if isinstance(dim, ConstInt):
                return str(dim.value)
            if isinstance(dim, Var) and dim in self.scalars:
                return self.scalars[dim]
            return f"static_cast<int64_t>({self.tensor(call.args[0])}.shapes[{axis}])"
        if op == "array.get_element":
            name, _, _ = self.arrays[call.args[0]]
            return f"{name}[{expression(self, call.args[1])}]"
        if op == "system.task_is_valid":
            return f"{self.task_id(call.args[0]).text}.is_valid()"
        if op == "system.available_cluster_count":
            return "rt_available_cluster_count()"
        if op == "system.available_aiv_count":
            return "rt_available_aiv_count()"
        if op == "tensor.read":
            kind = c_type(call.type.dtype)
            indices = call.args[1].elements
            name = self.names.exact("indices_value")
            self.line(f"uint32_t {name}[{len(indices)}] = {{{', '.join(narrowed(self, i) for i in indices)}}};")
            return f"get_tensor_data<{kind}>({self.tensor(call.args[0])}, {len(indices)}, {name})"
        raise _misplaced(call, call.span)

    def task_id(self, value: Expr) -> TaskId:
        found = self.task_ids.get(value) if isinstance(value, Var) else None
        if found is None and isinstance(value, Var) and value in self.arrays:
            name, count, _ = self.arrays[value]
            return TaskId(name, count=count)
        if found is None:
            where = f" [{value.span}]" if value.span.is_valid() else ""
            hint = getattr(value, "name_hint", str(value))
            raise user_error(
                f"the dependency on TaskId '{hint}' cannot be honored: it is not visible here{where}; submit the "
                f"dependent task inside the scope that produces it"
            )
        return found

    # -- arrays and effects -------------------------------------------------------------------------------------

    def _array_call(self, var: Var, call: Call) -> None:
        if call.op.name == "array.create":
            name, count, dtype = self.names.claim(var.name_hint), var.type.extent.value, var.type.dtype
            if dtype == DataType.TASK_ID:
                self.line(f"PTO2TaskId {name}[{count}];")
                self.fill_invalid(name, count)
            else:
                self.line(f"{c_type(dtype)} {name}[{count}] = {{0}};")
            self.arrays[var] = (name, count, dtype)
        elif call.op.name == "array.update_element":
            entry = self.arrays[call.args[0]]
            value = call.args[2]
            text = self.task_id(value).text if entry[2] == DataType.TASK_ID else expression(self, value)
            self.line(f"{entry[0]}[{expression(self, call.args[1])}] = {text};")
            self.arrays[var] = entry
        else:
            raise _misplaced(call, call.span)

    def fill_invalid(self, name: str, count: int) -> None:
        """Every slot of a task id array starts as no task."""
        self.line(
            f"for (int64_t __init_i = 0; __init_i < {count}; ++__init_i) {name}[__init_i] = PTO2TaskId::invalid();"
        )

    def _evaluate(self, expr: Expr, span: Span) -> None:
        if isinstance(expr, Submit) or (isinstance(expr, Call) and isinstance(expr.op, GlobalVar)):
            self.tasks.submit(expr, None, span)
        elif isinstance(expr, Call) and expr.op.name == "tensor.write":
            self._write(expr)
        elif isinstance(expr, Call) and expr.op.name == "system.task_dummy":
            self.tasks.barrier(expr, None)
        elif isinstance(expr, Call) and expr.op.name == "array.update_element":
            self._array_call(Var("array", expr.args[0].type, span), expr)
        else:
            raise _misplaced(expr, span)

    def _write(self, call: Call) -> None:
        target, indices, value = self.tensor(call.args[0]), call.args[1].elements, call.args[2]
        dtype = call.args[0].type.dtype
        name = self.names.exact(f"indices_{target.removeprefix('ext_')}")
        with self.block("{"):
            self.line(f"uint32_t {name}[{len(indices)}] = {{{', '.join(narrowed(self, i) for i in indices)}}};")
            kind = c_type(dtype)
            self.line(f"set_tensor_data<{kind}>({target}, {len(indices)}, {name}, {expression(self, value)});")


def _axis(value: Expr, rank: int) -> int:
    if not isinstance(value, ConstInt):
        raise InternalError("tensor.transpose needs constant axes", span=value.span)
    return value.value % rank


def _dropped_axes(call: Call) -> set[int]:
    if len(call.args) < 5 or not isinstance(call.args[4], MakeTuple):
        return set()
    rank = len(call.args[2].elements)
    return {e.value % rank for e in call.args[4].elements}


def _initial_value(value: object, dtype: DataType, span: Span) -> str:
    number = value.value if isinstance(value, (ConstInt, ConstFloat)) else value
    if isinstance(number, float) and (number != number or number in (float("inf"), float("-inf"))):
        raise user_error("init_value must be finite", span=span)
    if dtype.is_int():
        if int(number) != number:
            raise user_error(f"init_value {number} is not an integer but the tensor is {dtype}", span=span)
        if abs(number) > 1 << 53:
            raise user_error(f"init_value {number} is not an exactly-representable integer", span=span)
        return f"static_cast<{c_type(dtype)}>({int(number)})" if number else "0"
    if number == 0:
        return "0"
    if dtype in (DataType.FP16, DataType.BF16):
        raise user_error(f"a non-zero init_value is not supported for {dtype} tensors", span=span)
    return f"static_cast<{c_type(dtype)}>({number!r})"


def _misplaced(value: Expr, span: Span) -> Exception:
    name = value.op.name if isinstance(value, Call) else type(value).__name__
    if name.startswith("tensor."):
        return user_error(f"Misplaced tensor op in an Orchestration function: {name}", span=span, kind=RuntimeError)
    return user_error(
        f"operator {name} is not supported in Orchestration functions; use it inside an InCore function", span=span
    )
