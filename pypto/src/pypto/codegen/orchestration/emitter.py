"""Orchestration functions as C++: one statement walker, reading what the passes have decided."""

from __future__ import annotations

from contextlib import contextmanager

import msgspec

from pypto.codegen.orchestration.expressions import c_type, expression, narrowed
from pypto.codegen.orchestration.names import RUNTIME_DTYPE, VariableNames
from pypto.codegen.orchestration.tasks import TaskEmission
from pypto.codegen.writer import Writer
from pypto.errors import InternalError, UnsupportedFeatureError, user_error
from pypto.ir import DataType, Expr, ForKind, Function, Program, Span, TensorType, Var
from pypto.ir import stmt as S
from pypto.ir.expr import Call, ConstBool, ConstFloat, ConstInt, GlobalVar, MakeTuple, Submit, TupleGetItemExpr
from pypto.ir.types import ArrayType, CommCtxType, PtrType, ScalarType, TupleType
from pypto.ir.visitor import IRVisitor


class TaskId(msgspec.Struct):
    """C++ value of a task id: a variable, or an array of them; ``guarded`` ids may be invalid."""

    text: str
    guarded: bool = True
    count: int = 0


class OrchestrationEmitter:
    """State of one orchestration function."""

    def __init__(self, program: Program, function: Function):
        self.program = program
        self.function = function
        self.writer = Writer(4)
        self.names = VariableNames()
        self.tensors: dict[Var, str] = {}
        self.scalars: dict[Var, str] = {}
        self.task_ids: dict[Var, TaskId] = {}
        self.arrays: dict[Var, tuple[str, int, DataType]] = {}
        self.tuples: dict[Var, list] = {}
        self.info_of: dict[str, str] = {}
        self.uses = used_variables(function)
        self.tracked = _tracked_tensors(function)
        self.tensor_tasks: dict[Var, TaskId] = {}
        self.tasks = TaskEmission(self)
        self._allocations = 0
        self._pending: dict[Var, Call] = {}

    # -- helpers ------------------------------------------------------------------------------------------------

    def line(self, text: str = "") -> None:
        self.writer.line(text)

    @contextmanager
    def block(self, opening: str):
        self.line(opening)
        with self.writer.indented(4):
            yield
        self.line("}")

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
        """One ``alloc_tensors`` for the tensors that ``stmts`` create and whose extents are known here."""
        creates = [
            (s.var, s.value)
            for s in stmts
            if isinstance(s, S.AssignStmt)
            and isinstance(s.value, Call)
            and s.value.op.name == "tensor.create"
            and s.var not in self.tensors
            and all(self._known(e) for e in s.value.args[0].elements)
        ]
        if not creates:
            return
        infos = []
        for var, call in creates:
            name = self.names.claim(var.name_hint)
            infos.append((var, name, self.create_info(f"{name}_ci", var, call)))
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
                info = self.create_info(f"{name}_ci", var, call)
                batch = f"alloc_{self._allocations}"
                self._allocations += 1
                self.line(f"TaskOutputTensors {batch} = alloc_tensors({info});")
                self.line(f"const ChipTensor& {name} = {batch}.get_ref(0);")
                self.tensors[var] = name
        elif op == "tensor.slice":
            self._slice(var, call)
        elif op in ("tensor.reshape", "tensor.view"):
            name = self._declare_tensor(var)
            shape = call.args[1].elements
            extents = ", ".join(narrowed(self, d) for d in shape)
            self.line(f"uint32_t {name}_shapes[{len(shape)}] = {{{extents}}};")
            source = self.tensor(call.args[0])
            self.line(f"ChipTensor {name} = {source}.reshape({name}_shapes, {len(shape)});")
        elif op == "tensor.transpose":
            source = self.tensor(call.args[0])
            axes = ", ".join(str(_axis(a, len(var.type.shape))) for a in call.args[1:3])
            name = self._declare_tensor(var)
            self.line(f"ChipTensor {name} = {source}.transpose({axes});")
        elif op in ("tensor.assemble", "tensor.set_validshape"):
            self.tensors[var] = self.tensor(call.args[0])
        else:
            raise _misplaced(call, span)

    def _declare_tensor(self, var: Var) -> str:
        return self.names.claim(var.name_hint)

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

    # -- control flow -------------------------------------------------------------------------------------------

    def _for(self, stmt: S.ForStmt) -> None:
        if isinstance(stmt.step, ConstInt) and stmt.step.value <= 0:
            raise user_error("a loop must have a positive step", span=stmt.span)
        start, stop, step = (expression(self, e) for e in (stmt.start, stmt.stop, stmt.step))
        updates = self._declare_carries(stmt)
        arrays = self._declare_task_arrays(stmt)
        with self.names.scoped(stmt.loop_var.name_hint) as name:
            self.scalars[stmt.loop_var] = name
            with self.block(f"for (int64_t {name} = {start}; {name} < {stop}; {name} += {step}) {{"):
                values = self._loop_body(stmt, updates, arrays)
        self._bind_results(stmt, updates, values)
        for position, array in arrays.items():
            self.tasks.fan_in(stmt.return_vars[position], array, trip_count(stmt))

    def _while(self, stmt: S.WhileStmt) -> None:
        updates = self._declare_carries(stmt)
        with self.captured() as condition:
            text = expression(self, stmt.condition)
        if condition.lines:
            with self.block("while (true) {"):
                self.writer.lines += condition.lines
                self.line(f"if (!{text}) break;")
                values = self._loop_body(stmt, updates)
        else:
            with self.block(f"while ({text.removeprefix('(').removesuffix(')') if _outer(text) else text}) {{"):
                values = self._loop_body(stmt, updates)
        self._bind_results(stmt, updates, values)

    def _declare_carries(self, stmt) -> dict[int, str]:
        """Variables of rebound carries, declared before the loop: position -> name."""
        updates: dict[int, str] = {}
        attrs = getattr(stmt, "attrs", None) or {}
        for position, arg in enumerate(stmt.iter_args):
            init, kind = arg.initValue, arg.type
            rebound = attrs.get(f"iter_arg_rebind_{position}", not isinstance(kind, TensorType))
            if isinstance(kind, ArrayType) or not rebound:
                self._bind_init(arg, init)
                continue
            if self._parallel_task_carry(stmt, arg):
                count = self._static_trip_count(stmt)
                name = self.names.claim(stmt.return_vars[position].name_hint)
                self.line(f"PTO2TaskId {name}[{count}];")
                self.fill_invalid(name, count)
                self.task_ids[arg] = self.task_id(init) if isinstance(init, Var) else TaskId(self._task_text(init))
                self.arrays[stmt.return_vars[position]] = (name, count, DataType.TASK_ID)
                updates[position] = name
                continue
            name = self.names.claim(stmt.return_vars[position].name_hint)
            if isinstance(kind, TensorType):
                self.line(f"ChipTensor {name} = {self.tensor(init)};")
                self.tensors[arg] = name
            elif kind.dtype == DataType.TASK_ID:
                self.line(f"PTO2TaskId {name} = {self._task_text(init)};")
                self.task_ids[arg] = TaskId(name)
            else:
                self.line(f"{c_type(kind.dtype)} {name} = {expression(self, init)};")
                self.scalars[arg] = name
            updates[position] = name
        return updates

    def _task_text(self, value: Expr) -> str:
        if isinstance(value, Var):
            return self.task_id(value).text
        return "PTO2TaskId::invalid()"

    def _bind_init(self, arg: Var, init: Expr) -> None:
        if isinstance(init, Var):
            self.alias(arg, init)
        elif isinstance(init, (ConstInt, ConstFloat, ConstBool)):
            self.scalars[arg] = expression(self, init)
        else:
            raise InternalError("a loop carry must start from a variable or a constant", span=init.span)

    @staticmethod
    def _parallel_task_carry(stmt, arg: Var) -> bool:
        return (
            isinstance(stmt, S.ForStmt)
            and stmt.kind is ForKind.Parallel
            and isinstance(arg.type, ScalarType)
            and arg.type.dtype == DataType.TASK_ID
        )

    def _static_trip_count(self, stmt: S.ForStmt) -> int:
        count = trip_count(stmt)
        if count is None:
            raise user_error(
                "a parallel loop that carries a TaskId needs a statically-known trip count", span=stmt.span
            )
        return count

    def _loop_body(self, stmt, updates: dict[int, str], arrays: dict[int, str] | None = None) -> tuple:
        """The body and the updates of the carries, which may stand inside a runtime scope; returns the yielded values."""
        body = stmt.body
        stmts = S.flatten_to_stmts(body)
        if len(stmts) == 1 and isinstance(stmts[0], S.RuntimeScopeStmt):
            scope = stmts[0]
            inner = S.flatten_to_stmts(scope.body)
            if scope.manual:
                self.allocate(inner)
            with self.block("PTO2_SCOPE(PTO2ScopeMode::MANUAL) {" if scope.manual else "PTO2_SCOPE() {"):
                return self._statements_and_updates(stmt, inner, updates, arrays or {})
        return self._statements_and_updates(stmt, stmts, updates, arrays or {})

    def _statements_and_updates(
        self, stmt, stmts: list[S.Stmt], updates: dict[int, str], arrays: dict[int, str]
    ) -> tuple:
        values: tuple = ()
        if stmts and isinstance(stmts[-1], S.YieldStmt):
            values, stmts = stmts[-1].value, stmts[:-1]
        self.allocate(stmts)
        for child in stmts:
            self.emit_stmt(child)
        self._update(stmt, values, updates)
        for position, array in arrays.items():
            task = self._task_of(values[position])
            if task is not None:
                self.line(f"{array}[{self._slot(stmt)}] = {task.text};")
        return values

    def _slot(self, stmt: S.ForStmt) -> str:
        """Number of the running iteration."""
        start, step = (expression(self, e) for e in (stmt.start, stmt.step))
        index = self.scalars[stmt.loop_var]
        return index if (start, step) == ("0", "1") else f"({index} - {start}) / {step}"

    def _update(self, stmt, values: tuple, updates: dict[int, str]) -> None:
        lines = []
        for position, name in updates.items():
            value, kind = values[position], stmt.iter_args[position].type
            if self._parallel_task_carry(stmt, stmt.iter_args[position]):
                lines.append((f"{name}[{self._slot(stmt)}]", self._task_text(value), "PTO2TaskId"))
                continue
            if isinstance(kind, TensorType):
                lines.append((name, self.tensor(value), "ChipTensor"))
            elif kind.dtype == DataType.TASK_ID:
                lines.append((name, self._task_text(value), "PTO2TaskId"))
            else:
                lines.append((name, expression(self, value), c_type(kind.dtype)))
        lines = [item for item in lines if item[0] != item[1]]
        if len(lines) > 1:
            staged = []
            for name, text, kind in lines:
                temporary = self.names.exact(f"next_{name.split('[')[0]}")
                self.line(f"{kind} {temporary} = {text};")
                staged.append((name, temporary))
            for name, temporary in staged:
                self.line(f"{name} = {temporary};")
        else:
            for name, text, _ in lines:
                self.line(f"{name} = {text};")

    def _bind_results(self, stmt, updates: dict[int, str], values: tuple) -> None:
        for position, (arg, var) in enumerate(zip(stmt.iter_args, stmt.return_vars)):
            if var not in self.arrays:
                self.alias(var, arg)
            if position < len(values) and position not in updates and isinstance(values[position], Var):
                task = self.tensor_tasks.get(values[position])
                if task is not None and not isinstance(stmt, S.ForStmt):
                    self.tensor_tasks[var] = task

    def _declare_task_arrays(self, stmt: S.ForStmt) -> dict[int, str]:
        """Arrays that collect the producing task of each iteration for compiler-derived dependencies."""
        arrays: dict[int, str] = {}
        for position, var in enumerate(stmt.return_vars):
            if var not in self.tracked or not isinstance(var.type, TensorType):
                continue
            count = trip_count(stmt)
            if count is None:
                raise UnsupportedFeatureError(
                    f"automatic dependencies on a loop without a constant trip count [{stmt.span}]"
                )
            name = self.names.claim(f"{var.name_hint}_tids")
            self.line(f"PTO2TaskId {name}[{count}];")
            self.fill_invalid(name, count)
            arrays[position] = name
        return arrays

    def _task_of(self, value: Expr) -> TaskId | None:
        return self.tensor_tasks.get(value) if isinstance(value, Var) else None

    def _if(self, stmt: S.IfStmt) -> None:
        condition = expression(self, stmt.condition)
        bodies = [stmt.then_body] + ([stmt.else_body] if stmt.else_body is not None else [])
        names = [self.names.claim(v.name_hint) for v in stmt.return_vars]
        branches = [self._branch(body) for body in bodies]
        in_place = self._branch_results(stmt, names, [values for _, _, values in branches])
        for number, (scope, lines, values) in enumerate(branches):
            self.line(f"if ({condition}) {{" if number == 0 else "} else {")
            with self.writer.indented(4):
                if scope:
                    self.line(scope)
                self.writer.lines += lines
                with self.writer.indented(4 if scope else 0):
                    for name, (text, _) in zip(names, values):
                        if name not in in_place:
                            self.line(f"{name} = {text};")
                if scope:
                    self.line("}")
        self.line("}")

    def _branch(self, body: S.Stmt) -> tuple[str, list[str], list[tuple[str, Expr]]]:
        """Opening of the scope that is the whole branch (or ""), lines inside, C++ text of every yielded value."""
        stmts, opening = S.flatten_to_stmts(body), ""
        if len(stmts) == 1 and isinstance(stmts[0], S.RuntimeScopeStmt):
            opening = "PTO2_SCOPE(PTO2ScopeMode::MANUAL) {" if stmts[0].manual else "PTO2_SCOPE() {"
            stmts = S.flatten_to_stmts(stmts[0].body)
        values: tuple = ()
        if stmts and isinstance(stmts[-1], S.YieldStmt):
            values, stmts = stmts[-1].value, stmts[:-1]
        with self.captured() as writer, writer.indented(8 if opening else 4):
            self.allocate(stmts)
            for child in stmts:
                self.emit_stmt(child)
            texts = [(self._value_text(v), v) for v in values]
        return opening, writer.lines, texts

    def _value_text(self, value: Expr) -> str:
        if isinstance(value.type, TensorType):
            return self.tensor(value)
        if isinstance(value.type, ArrayType):
            return self.arrays[value][0]
        if value.type.dtype == DataType.TASK_ID:
            return self._task_text(value)
        return expression(self, value)

    def _branch_results(self, stmt: S.IfStmt, names: list[str], values: list[list]) -> set[str]:
        """Declare the results before the branch; a tensor that is the same in every branch needs no variable."""
        in_place = set()
        for position, (var, name) in enumerate(zip(stmt.return_vars, names)):
            texts = {branch[position][0] for branch in values}
            if isinstance(var.type, (TensorType, ArrayType)) and len(texts) == 1:
                in_place.add(name)
                self.alias(var, values[0][position][1])
            elif isinstance(var.type, TensorType):
                self.line(f"ChipTensor {name} = {next(iter(self.tensors.values()))};")
                self.tensors[var] = name
            elif isinstance(var.type, ScalarType) and var.type.dtype == DataType.TASK_ID:
                self.line(f"PTO2TaskId {name} = PTO2TaskId::invalid();")
                self.task_ids[var] = TaskId(name)
            else:
                self.line(f"{c_type(var.type.dtype)} {name};")
                self.scalars[var] = name
        return in_place


def trip_count(stmt: S.ForStmt) -> int | None:
    """Number of iterations when the bounds are constant."""
    bounds = (stmt.start, stmt.stop, stmt.step)
    if not all(isinstance(b, ConstInt) for b in bounds):
        return None
    start, stop, step = (b.value for b in bounds)
    return max(0, -(-(stop - start) // step)) if step > 0 else None


def _outer(text: str) -> bool:
    """Whether the first and the last character are one pair of parentheses."""
    if not (text.startswith("(") and text.endswith(")")):
        return False
    depth = 0
    for position, char in enumerate(text):
        depth += (char == "(") - (char == ")")
        if depth == 0 and position < len(text) - 1:
            return False
    return True


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


def variables_of(expr: Expr) -> list[Var]:
    """Variables of a scalar expression."""
    from pypto.codegen.pto.kernel import collect_vars_from_shape_expr

    return collect_vars_from_shape_expr(expr)


def used_variables(function: Function) -> set[Var]:
    """Variables that some expression reads (definitions and types do not count)."""

    class Uses(IRVisitor):
        def __init__(self) -> None:
            self.found: set[Var] = set()

        def visit_var_like(self, var: Var) -> None:
            self.found.add(var)

        def visit_assign_stmt(self, stmt: S.AssignStmt) -> None:
            self.visit_expr(stmt.value)

        def visit_function(self, function: Function) -> None:
            self.visit_stmt(function.body)

        def visit_call(self, call: Call) -> None:
            for arg in call.args:
                self.visit_expr(arg)
            from pypto.ir.visitor import attr_exprs

            for value in attr_exprs(call.attrs):
                self.visit_expr(value)
            if call.op.name == "tensor.dim":
                for dim in call.args[0].type.shape:
                    self.visit_expr(dim)

        def visit_for_stmt(self, stmt: S.ForStmt) -> None:
            for expr in (stmt.start, stmt.stop, stmt.step, *(a.initValue for a in stmt.iter_args)):
                self.visit_expr(expr)
            self.visit_stmt(stmt.body)

        def visit_if_stmt(self, stmt: S.IfStmt) -> None:
            self.visit_expr(stmt.condition)
            self.visit_stmt(stmt.then_body)
            if stmt.else_body is not None:
                self.visit_stmt(stmt.else_body)

    uses = Uses()
    uses.visit_function(function)
    return uses.found


def _tracked_tensors(function: Function) -> set[Var]:
    """Tensors whose producing task a compiler-derived dependency names, followed back through loops and tuples."""

    class Search(IRVisitor):
        def __init__(self) -> None:
            self.tracked: set[Var] = set()
            self.links: dict[Var, list[Expr]] = {}

        def visit_call(self, call: Call) -> None:
            self.tracked.update(call.attrs.get("compiler_manual_dep_edges", ()))

        def visit_submit(self, submit: Submit) -> None:
            self.tracked.update(submit.attrs.get("compiler_manual_dep_edges", ()))

        def visit_assign_stmt(self, stmt: S.AssignStmt) -> None:
            if isinstance(stmt.value, (Var, TupleGetItemExpr)):
                source = stmt.value.tuple if isinstance(stmt.value, TupleGetItemExpr) else stmt.value
                self.links.setdefault(stmt.var, []).append(source)
            super().visit_assign_stmt(stmt)

        def visit_for_stmt(self, stmt: S.ForStmt) -> None:
            stmts = S.flatten_to_stmts(stmt.body)
            while len(stmts) == 1 and isinstance(stmts[0], S.RuntimeScopeStmt):
                stmts = S.flatten_to_stmts(stmts[0].body)
            if stmts and isinstance(stmts[-1], S.YieldStmt):
                for var, value in zip(stmt.return_vars, stmts[-1].value):
                    self.links.setdefault(var, []).append(value)
            super().visit_for_stmt(stmt)

    search = Search()
    search.visit_function(function)
    pending = list(search.tracked)
    while pending:
        for source in search.links.get(pending.pop(), ()):
            if isinstance(source, Var) and source not in search.tracked:
                search.tracked.add(source)
                pending.append(source)
    return search.tracked
