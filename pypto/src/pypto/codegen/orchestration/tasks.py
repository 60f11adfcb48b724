"""Task submissions: arguments, launch settings, dependencies, predicates, barriers, results."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pypto.backend import get_handler
from pypto.codegen.orchestration.analysis import TaskId
from pypto.codegen.orchestration.expressions import expression, float_literal
from pypto.codegen.orchestration.names import RUNTIME_DTYPE
from pypto.codegen.pto import infer_function_core_type
from pypto.errors import InternalError, user_error
from pypto.ir import ArgDirection, CoreType, Expr, Function, FunctionType, ParamDirection, Span, TensorType, Var
from pypto.ir import expr as E
from pypto.ir import stmt as S
from pypto.ir.expr import Call, ConstFloat, ConstInt, GlobalVar, Submit
from pypto.ir.types import ScalarType
from pypto.ir.visitor import IRVisitor

if TYPE_CHECKING:
    from pypto.codegen.orchestration.emitter import OrchestrationEmitter

_ADD = {
    ArgDirection.Input: "add_input",
    ArgDirection.Output: "add_output",
    ArgDirection.OutputExisting: "add_output",
    ArgDirection.InOut: "add_inout",
    ArgDirection.NoDep: "add_no_dep",
}
_MAX_TENSORS = 32
_MAX_SCALARS = 16
_WRITES = (ArgDirection.Output, ArgDirection.OutputExisting, ArgDirection.InOut)
_PREDICATES = {E.Eq: "EQ", E.Ne: "NE", E.Lt: "LT", E.Le: "LE", E.Gt: "GT", E.Ge: "GE"}
_FLIPPED = {"EQ": "EQ", "NE": "NE", "LT": "GT", "LE": "GE", "GT": "LT", "GE": "LE"}


class Launch:
    """What one call starts: the kernel, or the members of a group, with arguments mapped to their parameters.

    ``dumped`` are the tensors whose values the task writes for inspection.
    """

    def __init__(
        self,
        kernel: Function | None,
        members: list[Function],
        params: tuple,
        args: list,
        directions: list,
        dumped: list,
    ):
        self.kernel = kernel
        self.members = members
        self.params = params
        self.args = args
        self.directions = directions
        self.dumped = dumped


class TaskEmission:
    """Prints submissions and keeps the numbering of kernels and tasks."""

    def __init__(self, emitter: OrchestrationEmitter):
        self.emitter = emitter
        self.kernel_ids: dict[str, int] = {}
        self.core_types: dict[str, CoreType] = {}
        self.signatures: dict[str, list[str]] = {}
        self._tasks = 0
        self._mixed = 0
        self._barriers = 0

    # -- submissions --------------------------------------------------------------------------------------------

    def submit(self, call: Call | Submit, result: Var | None, span: Span) -> None:
        """One task: all lines of the submission and the binding of its results."""
        emitter = self.emitter
        callee = self._function(call)
        launch, core_num, wrapper = self._launch(callee, call)
        number = self._tasks
        self._tasks += 1
        params = f"params_t{number}"
        emitter.line()
        if wrapper is not None:
            inner = launch.kernel.name if launch.kernel else launch.members[0].name
            emitter.line(f"// Spmd {wrapper.name}: {inner}")
        elif launch.kernel is None:
            emitter.line(f"// Group {callee.name}: MixedKernels (AIC + AIV lanes)")
        else:
            emitter.line(f"// Task {number}: {callee.name}")
        emitter.line(f"CoreTaskArgs {params};")
        created = self._arguments(launch, params)
        self._launch_settings(call, launch, core_num, params)
        self._dependencies(call, params)
        self._predicate(call, params)
        outs = f"task_{number}_outs"
        tracked = [result] if result is not None and result in emitter.tracked else []
        tracked += [
            arg
            for arg, direction in zip(launch.args, launch.directions)
            if direction in _WRITES and arg in emitter.tracked
        ]
        capture = isinstance(call, Submit) or bool(created or tracked)
        self._submit_line(launch, params, f"TaskOutputTensors {outs} = " if capture else "")
        self._bind(call, callee, launch, result, outs, created, tracked)

    def _function(self, call: Call | Submit) -> Function:
        function = self.emitter.program.get_function(call.op.name) if isinstance(call.op, GlobalVar) else None
        if function is None:
            raise InternalError(f"call of unknown function '{call.op.name}'", span=call.span)
        if function.func_type is FunctionType.Orchestration:
            caller = self.emitter.function.name
            raise user_error(
                f"orchestration function '{caller}' calls the orchestration function '{function.name}', but it can "
                "only start kernels; make the callee @pl.inline, or an InCore function",
                span=call.span,
            )
        return function

    def _launch(self, callee: Function, call: Call | Submit) -> tuple[Launch, Expr | None, Function | None]:
        args = list(call.args)
        directions = call.arg_directions
        if len(directions) != len(args):
            raise InternalError(
                f"the call of '{callee.name}' has no argument directions (CallDirectionsResolved)", span=call.span
            )
        wrapper, dumped = None, list(call.attrs.get("dump_vars", ()))
        core_num = call.core_num if isinstance(call, Submit) else call.attrs.get("core_num")
        params = callee.params
        if callee.func_type is FunctionType.Spmd:
            wrapper = callee
            core_num = core_num if core_num is not None else callee.attrs.get("core_num")
            calls = inner_calls(callee)
            if len(calls) != 1:
                raise InternalError(f"Spmd function '{callee.name}' must hold one call", span=callee.span)
            by_param = dict(zip(callee.params, zip(args, directions)))
            inner = self._function(calls[0])
            mapped = [by_param.get(a, (a, ArgDirection.Scalar)) for a in calls[0].args]
            callee, params = inner, inner.params
            args, directions = [a for a, _ in mapped], [d for _, d in mapped]
            dumped += [by_param[v][0] for v in calls[0].attrs.get("dump_vars", ()) if v in by_param]
        if callee.func_type is FunctionType.Group:
            members = [self._function(c) for c in inner_calls(callee)]
            members.sort(key=lambda f: f.func_type is not FunctionType.AIC)
            return Launch(None, members, params, args, directions, dumped), core_num, wrapper
        return Launch(callee, [callee], params, args, directions, dumped), core_num, wrapper

    def _arguments(self, launch: Launch, params: str) -> dict[Var, str]:
        """Tensors, then scalars; returns the create infos of runtime-allocated outputs by parameter."""
        emitter = self.emitter
        created: dict[Var, str] = {}
        covered = list(zip(launch.args, launch.directions))
        _check_limits(launch)
        for arg, direction in covered:
            if isinstance(arg.type, TensorType):
                emitter.line(f"{params}.{_ADD[direction]}({emitter.tensor(arg)});")
        for param in launch.params[len(covered) :]:
            info = f"{params}_synth_out_{len(created)}"
            extents = [expression(emitter, d) for d in param.type.shape]
            emitter.line(f"uint32_t {info}_shapes[{len(extents)}] = {{{', '.join(extents)}}};")
            dtype = RUNTIME_DTYPE[param.type.dtype]
            emitter.line(f"TensorCreateInfo {info}({info}_shapes, {len(extents)}, DataType::{dtype});")
            emitter.line(f"{params}.add_output({info});")
            created[param] = info
        for arg, _ in covered:
            if not isinstance(arg.type, TensorType):
                emitter.line(f"{params}.add_scalar({self._scalar_argument(arg)});")
        return created

    def _scalar_argument(self, arg: Expr) -> str:
        if isinstance(arg, ConstFloat):
            return f"to_u64({float_literal(arg.value, decimals=6)})"
        if isinstance(arg, ConstInt):
            return f"(uint64_t){arg.value}"
        text = expression(self.emitter, arg)
        kind = arg.type
        return f"to_u64({text})" if isinstance(kind, ScalarType) and kind.dtype.is_float() else text

    def _launch_settings(self, call: Call | Submit, launch: Launch, core_num: Expr | None, params: str) -> None:
        emitter = self.emitter
        if core_num is not None:
            method = get_handler().get_launch_spec_core_count_method()
            count = core_num if isinstance(core_num, int) else None
            text = str(count) if count is not None else expression(emitter, core_num)
            emitter.line(f"{params}.launch_spec.{method}({text});")
        sync = call.sync_start if isinstance(call, Submit) else call.attrs.get("sync_start")
        if sync:
            emitter.line(f"{params}.launch_spec.set_require_sync_start(true);")
        early = call.allow_early_resolve if isinstance(call, Submit) else call.attrs.get("allow_early_resolve")
        if early:
            emitter.line(f"{params}.set_allow_early_resolve(true);")
        dumped = [emitter.tensor(v) for v in launch.dumped if v in emitter.tensors]
        if dumped:
            emitter.line(f"{params}.dump({', '.join(dict.fromkeys(dumped))});")

    def _submit_line(self, launch: Launch, params: str, capture: str) -> None:
        emitter = self.emitter
        if launch.kernel is None:
            ids = {m.func_type: self.kernel_id(m, launch) for m in launch.members}
            cube = str(ids.get(FunctionType.AIC, "INVALID_KERNEL_ID"))
            vector = str(ids.get(FunctionType.AIV, "INVALID_KERNEL_ID"))
            vector_function = next((m for m in launch.members if m.func_type is FunctionType.AIV), None)
            dual = vector_function is not None and vector_function.attrs.get("dual_aiv_dispatch")
            self._mixed_submit(cube, vector, vector if dual else "INVALID_KERNEL_ID", params, capture)
            return
        number = self.kernel_id(launch.kernel, launch)
        if launch.kernel.attrs.get("dual_aiv_dispatch"):
            self._mixed_submit("INVALID_KERNEL_ID", str(number), str(number), params, capture)
            return
        unit = "aic" if self.core_types[launch.kernel.name] is CoreType.CUBE else "aiv"
        emitter.line(f"{capture}rt_submit_{unit}_task({number}, {params});")

    def _mixed_submit(self, cube: str, first: str, second: str, params: str, capture: str) -> None:
        name = f"mixed_{self._mixed}"
        self._mixed += 1
        self.emitter.line(f"MixedKernels {name} = {{{cube}, {first}, {second}}};")
        self.emitter.line(f"{capture}rt_submit_task({name}, {params});")

    def kernel_id(self, function: Function, launch: Launch) -> int:
        """The id of a kernel, given in order of first appearance."""
        if function.name not in self.kernel_ids:
            if function.func_type is FunctionType.InCore and not function.attrs.get("external_source"):
                raise InternalError(
                    f"InferFunctionCoreType: kernel '{function.name}' has not been resolved to AIC or AIV; run "
                    "ExpandMixedKernel first",
                    span=function.span,
                )
            self.kernel_ids[function.name] = len(self.kernel_ids)
            self.core_types[function.name] = infer_function_core_type(function)
            self.signatures[function.name] = signature_of(function, launch.members)
        return self.kernel_ids[function.name]

    # -- dependencies -------------------------------------------------------------------------------------------

    def _dependencies(self, call: Call | Submit, params: str) -> None:
        edges = list(call.deps) if isinstance(call, Submit) else []
        edges += [e for e in call.attrs.get("manual_dep_edges", ()) if all(e is not x for x in edges)]
        tasks = [self.emitter.task_id(e) for e in edges]
        for edge in call.attrs.get("compiler_manual_dep_edges", ()):
            task = self.emitter.tensor_tasks.get(edge) or self.emitter.task_ids.get(edge)
            if task is None and edge in self.emitter.closed:
                while edge in self.emitter.renamed:
                    edge = self.emitter.renamed[edge]
                self.emitter.missed.add(edge)
            if task is not None and all(task is not t for t in tasks):
                tasks.append(task)
        if tasks:
            self._set_dependencies(params, tasks)

    def _set_dependencies(self, params: str, tasks: list) -> None:
        emitter = self.emitter
        slots = sum(t.count or 1 for t in tasks)
        emitter.line(f"PTO2TaskId {params}_deps[{slots}];")
        emitter.line(f"uint32_t {params}_deps_count = 0;")
        for task in tasks:
            names = [f"{task.text}[{i}]" for i in range(task.count)] if task.count else [task.text]
            for name in names:
                guard = f"if ({name}.is_valid()) " if task.guarded else ""
                emitter.line(f"{guard}{params}_deps[{params}_deps_count++] = {name};")
        emitter.line(f"{params}.set_dependencies({params}_deps, {params}_deps_count);")

    def barrier(self, call: Call, result: Var | None) -> None:
        """A dependency-only task for ``system.task_dummy``."""
        edges = list(call.attrs.get("manual_dep_edges", ())) or [a for a in call.args if isinstance(a, Var)]
        tasks = [self.emitter.task_id(e) for e in edges]
        name = self._barrier_lines("Phase-fence barrier {}: dependency-only dummy task", tasks, explicit=not edges)
        if result is not None:
            self.emitter.task_ids[result] = self._guarded(name)

    def fan_in(self, var: Var, array: str, count: int) -> None:
        """One barrier that waits for every iteration of a loop, for later compiler-derived dependencies."""
        tasks = [self._guarded(array, count)]
        name = self._barrier_lines("Compiler-dependency barrier {}: compressed loop fan-in", tasks, explicit=False)
        self.emitter.tensor_tasks[var] = self._guarded(name)

    @staticmethod
    def _guarded(name: str, count: int = 0) -> TaskId:
        return TaskId(name, guarded=True, count=count)

    def _barrier_lines(self, comment: str, tasks: list, *, explicit: bool) -> str:
        emitter = self.emitter
        number = self._barriers
        self._barriers += 1
        name, params = f"phase_fence_barrier_{number}", f"params_phase_fence_barrier_{number}"
        emitter.line()
        emitter.line(f"// {comment.format(number)}")
        emitter.line(f"CoreTaskArgs {params};")
        if tasks:
            self._set_dependencies(params, tasks)
        emitter.line(f"PTO2TaskId {name}_tid = PTO2TaskId::invalid();")
        with emitter.block("{" if explicit else f"if ({params}_deps_count > 0) {{"):
            emitter.line(f"TaskOutputTensors {name}_outs = rt_submit_dummy_task({params});")
            emitter.line(f"{name}_tid = {name}_outs.task_id();")
        return f"{name}_tid"

    def _predicate(self, call: Call | Submit, params: str) -> None:
        predicate = call.predicate if isinstance(call, Submit) else call.attrs.get("predicate")
        if predicate is None:
            return
        emitter = self.emitter
        kind = _PREDICATES.get(type(predicate))
        read, target = getattr(predicate, "left", None), getattr(predicate, "right", None)
        while isinstance(read, E.Cast):
            read = read.operand
        if isinstance(read, ConstInt):
            read, target, kind = target, read, _FLIPPED.get(kind or "")
        while isinstance(read, E.Cast):
            read = read.operand
        if kind is None or not (
            isinstance(read, Call) and read.op.name == "tensor.read" and isinstance(target, ConstInt)
        ):
            raise user_error(
                "a predicate must compare one tensor element with an integer constant, such as flags[i] > 0",
                span=predicate.span,
            )
        name = f"{params}_pred"
        indices = read.args[1].elements
        emitter.line(f"CoreTaskPredicate {name};")
        emitter.line(f"{name}.operand.tensor = &{emitter.tensor(read.args[0])};")
        emitter.line(f"{name}.operand.ndims = {len(indices)};")
        for axis, index in enumerate(indices):
            emitter.line(f"{name}.operand.indices[{axis}] = {expression(emitter, index)};")
        emitter.line(f"{name}.op = PredicateOp::{kind};")
        emitter.line(f"{name}.target = {target.value};")
        emitter.line(f"{params}.set_predicate({name});")

    # -- results ------------------------------------------------------------------------------------------------

    def _bind(self, call, callee: Function, launch: Launch, result: Var | None, outs: str, created, tracked) -> None:
        emitter = self.emitter
        if tracked:
            name = emitter.names.exact(f"{_base(tracked[0])}_tid")
            emitter.line(f"PTO2TaskId {name} = {outs}.task_id();")
            for var in tracked:
                emitter.tensor_tasks[var] = TaskId(name, guarded=False)
        if result is None:
            return
        values = self._result_values(callee, call, launch, outs, created)
        if isinstance(call, Submit):
            task = TaskId(f"{outs}.task_id()", guarded=False)
            if isinstance(result.type, ScalarType):
                name = emitter.names.claim(result.name_hint)
                emitter.line(f"PTO2TaskId {name} = {task.text};")
                emitter.task_ids[result] = TaskId(name, guarded=False)
            else:
                emitter.tuples[result] = [*values, task]
        elif len(values) == 1 and isinstance(result.type, TensorType):
            emitter.tensors[result] = values[0]
        elif values:
            emitter.tuples[result] = values

    def _result_values(self, callee: Function, call, launch: Launch, outs: str, created: dict) -> list:
        emitter = self.emitter
        by_param = dict(zip(callee.params, call.args))
        position = {param: index for index, param in enumerate(created)}
        values: list = []
        for value in return_values(callee):
            if value in by_param:
                values.append(emitter.tensor(by_param[value]))
            elif value in position:
                name = emitter.names.exact(f"{outs}_ref_{position[value]}")
                emitter.line(f"const ChipTensor& {name} = {outs}.get_ref({position[value]});")
                values.append(name)
            else:
                values.append(self._only_output(callee, call))
        return values

    def _only_output(self, callee: Function, call) -> str:
        written = [
            arg
            for arg, direction in zip(call.args, callee.param_directions)
            if direction is not ParamDirection.In and isinstance(arg.type, TensorType)
        ]
        if len(written) != 1 or len(callee.return_types) != 1:
            raise InternalError(
                f"the results of '{callee.name}' do not name its parameters (ReturnParamsExplicit)", span=call.span
            )
        return self.emitter.tensor(written[0])

    # -- pipe workspace -----------------------------------------------------------------------------------------

    def pipe_workspace_elements(self, var: Var) -> int | None:
        """FP32 elements of a tensor that is the pipe workspace of a mixed launch, else None."""
        if not var.name_hint.startswith("gm_pipe_buffer"):
            return None
        for call in calls_of(self.emitter.function):
            if any(arg is var for arg in call.args):
                return self._workspace_of(self._function(call))
        return None

    def _workspace_of(self, callee: Function) -> int:
        bytes_needed = 0
        for function in [callee, *(self._function(c) for c in _all_inner(self, callee))]:
            total = 0
            for call in operator_calls(function, ("system.aic_initialize_pipe", "system.aiv_initialize_pipe")):
                mask = int(call.kwargs["dir_mask"])
                slots = call.kwargs.get("slot_num") or (4 if mask == 3 else 8)
                total += int(call.kwargs["slot_size"]) * int(slots) * (2 if mask == 3 else 1)
            bytes_needed = max(bytes_needed, total)
        return max(1, bytes_needed // 4)


def _all_inner(tasks: TaskEmission, function: Function) -> list[Call]:
    found = []
    for call in inner_calls(function):
        found.append(call)
        found += _all_inner(tasks, tasks._function(call))
    return found


def _base(var: Var) -> str:
    from pypto.codegen.orchestration.names import strip_ssa

    return strip_ssa(var.name_hint)


def inner_calls(function: Function) -> list[Call]:
    """Calls of program functions inside a wrapper function."""
    return [call for call in calls_of(function) if isinstance(call.op, GlobalVar)]


def _check_limits(launch: Launch) -> None:
    """What one task can carry."""
    tensors = sum(isinstance(a.type, TensorType) for a in launch.args) + len(launch.params) - len(launch.args)
    for kind, count, limit in (
        ("tensors", tensors, _MAX_TENSORS),
        ("scalars", len(launch.params) - tensors, _MAX_SCALARS),
    ):
        if count > limit:
            kernel = launch.kernel or launch.members[0]
            raise user_error(
                f"kernel '{kernel.name}' takes {count} {kind}, but a task can carry {limit}; pack some of them into "
                "one tensor, or split the kernel",
                span=kernel.span,
            )


def calls_of(function: Function) -> list:
    """Calls and submissions of program functions, in order."""

    class Calls(IRVisitor):
        def __init__(self) -> None:
            self.found: list = []

        def visit_call(self, call: Call) -> None:
            if isinstance(call.op, GlobalVar):
                self.found.append(call)

        def visit_submit(self, submit: Submit) -> None:
            self.found.append(submit)

    calls = Calls()
    calls.visit_stmt(function.body)
    return calls.found


def operator_calls(function: Function, names: tuple[str, ...]) -> list[Call]:
    """Calls of the named operators, in order."""

    class Calls(IRVisitor):
        def __init__(self) -> None:
            self.found: list[Call] = []

        def visit_call(self, call: Call) -> None:
            if call.op.name in names:
                self.found.append(call)

    calls = Calls()
    if function.body is not None:
        calls.visit_stmt(function.body)
    return calls.found


def return_values(function: Function) -> tuple:
    """Values of the last return statement of a function."""
    for stmt in reversed(S.flatten_to_stmts(function.body)):
        if isinstance(stmt, S.ReturnStmt):
            return stmt.value
        if isinstance(stmt, S.ScopeStmt):
            inner = S.flatten_to_stmts(stmt.body)
            if inner and isinstance(inner[-1], S.ReturnStmt):
                return inner[-1].value
    return ()


_DIRECTION = {ParamDirection.In: "IN", ParamDirection.Out: "OUT", ParamDirection.InOut: "INOUT"}


def signature_of(function: Function, members: list[Function] | None = None) -> list[str]:
    """Directions of the tensor parameters; members of a group share the strongest one per position."""
    functions = [f for f in members or [function] if len(f.params) == len(function.params)]
    merged = []
    for position, param in enumerate(function.params):
        if not isinstance(param.type, TensorType):
            continue
        directions = {f.param_directions[position] for f in functions}
        if ParamDirection.InOut in directions:
            merged.append("INOUT")
        elif ParamDirection.Out in directions:
            merged.append("OUT")
        else:
            merged.append("IN")
    return merged


def entry_signature(function: Function) -> list[str]:
    """Directions of the tensor parameters of the entry."""
    return [_DIRECTION[d] for p, d in zip(function.params, function.param_directions) if isinstance(p.type, TensorType)]
