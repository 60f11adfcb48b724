"""Loops and branches of orchestration functions: carries, results, task arrays."""

from __future__ import annotations

from pypto.codegen.orchestration.analysis import TaskId, trip_count
from pypto.codegen.orchestration.expressions import c_type, expression
from pypto.errors import InternalError, UnsupportedFeatureError, user_error
from pypto.ir import DataType, Expr, ForKind, TensorType, Var
from pypto.ir import stmt as S
from pypto.ir.expr import ConstBool, ConstFloat, ConstInt
from pypto.ir.types import ArrayType, ScalarType


class ControlFlow:
    """The control-flow part of the orchestration emitter."""

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
        """The body and the updates of its carries (which may stand inside a runtime scope); returns the yields."""
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
        producers = {
            i: self.names.claim(f"{v.name_hint}_tid")
            for i, v in enumerate(stmt.return_vars)
            if v in self.tracked and isinstance(v.type, TensorType)
        }
        for name in producers.values():
            self.line(f"PTO2TaskId {name} = PTO2TaskId::invalid();")
        branches = []
        for body in bodies:
            opening, lines, texts, hoisted = self._branch(body, producers)
            branches.append((opening, lines, texts))
            for declaration in hoisted:
                self.line(declaration)
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
        self.tensor_tasks.update((stmt.return_vars[i], TaskId(name)) for i, name in producers.items())

    def _branch(
        self, body: S.Stmt, producers: dict[int, str]
    ) -> tuple[str, list[str], list[tuple[str, Expr]], list[str]]:
        """Opening of the scope that is the whole branch (or ""), lines inside, C++ text of every yielded value, and
        declarations that belong before the branch.

        ``producers`` names variables for the tasks that produced yielded tensors, by position.
        """
        stmts, opening = S.flatten_to_stmts(body), ""
        if len(stmts) == 1 and isinstance(stmts[0], S.RuntimeScopeStmt):
            opening = "PTO2_SCOPE(PTO2ScopeMode::MANUAL) {" if stmts[0].manual else "PTO2_SCOPE() {"
            stmts = S.flatten_to_stmts(stmts[0].body)
        values: tuple = ()
        if stmts and isinstance(stmts[-1], S.YieldStmt):
            values, stmts = stmts[-1].value, stmts[:-1]
        with self.captured() as writer, writer.indented(8 if opening else 4), self.closing() as hoisted:
            self.allocate(stmts)
            for child in stmts:
                self.emit_stmt(child)
            texts = [(self._value_text(v), v) for v in values]
            for position, name in producers.items():
                task = self._task_of(values[position])
                if task is None:
                    continue
                if task.count:
                    raise UnsupportedFeatureError(
                        f"automatic dependencies on {task.count} tasks that a branch leaves behind [{body.span}]"
                    )
                self.line(f"{name} = {task.text};")
        return opening, writer.lines, texts, hoisted

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
