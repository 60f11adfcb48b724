"""IR as a Python script on torch tensors: one function per IR function, operators by their torch meaning."""

from __future__ import annotations

import enum
import keyword
import re
from typing import Any

from pypto.codegen.writer import NameTable, Writer
from pypto.ir import DataType, Expr, Function, Program, Var
from pypto.ir import expr as E
from pypto.ir import stmt as S
from pypto.ir.dtype import DTYPE_CONSTANT
from pypto.ir.expr import Call, ConstBool, ConstFloat, ConstInt, GlobalVar, MakeTuple, Submit, TupleGetItemExpr
from pypto.ir.types import ArrayType, ScalarType, TensorType, TileType
from pypto.ops.registry import find_op

_HEADER = '''\
"""Generated from tile IR: the same computation on torch tensors."""

from pypto.debug import torch_support as rt
from pypto.ir import CachePolicy, DataType, MemorySpace, PadValue, TensorLayout, TileLayout

'''

_BINARY = {
    E.Add: "+", E.Sub: "-", E.Mul: "*", E.FloorDiv: "//", E.FloorMod: "%", E.FloatDiv: "/", E.Pow: "**", E.Eq: "==",
    E.Ne: "!=", E.Lt: "<", E.Le: "<=", E.Gt: ">", E.Ge: ">=", E.And: "and", E.Or: "or", E.Xor: "!=", E.BitAnd: "&",
    E.BitOr: "|", E.BitXor: "^", E.BitShiftLeft: "<<", E.BitShiftRight: ">>",
}  # fmt: skip
_UNARY = {E.Neg: "-", E.Not: "not ", E.BitNot: "~"}
_VIEWS = ("tile.reshape", "tensor.reshape", "tensor.view")
_QUERIES = {"get_block_idx": "rt.block_idx()", "get_block_num": "rt.block_num()", "get_subblock_idx": "rt.lane_idx()"}


def torch_codegen(node: Program | Function, *, check_shapes: bool = False) -> str:
    """A script with one function per IR function.

    Args:
        node: a program or a function.
        check_shapes: check the dtype and shape of parameters and assigned values while the script runs.

    Raises:
        TypeError: for another node.
        ValueError: an operator without torch meaning.
    """
    if isinstance(node, Program):
        functions = list(node.functions.values())
    elif isinstance(node, Function):
        functions = [node]
    else:
        raise TypeError(f"torch_codegen needs an ir.Program or ir.Function, got {type(node).__name__}")
    parts = [TorchCodegen(f, node if isinstance(node, Program) else None, check_shapes).source() for f in functions]
    return _HEADER + "\n\n".join(parts)


def function_name(name: str) -> str:
    """Python name of an IR function."""
    name = re.sub(r"\W", "_", name)
    return f"{name}_" if keyword.iskeyword(name) or name == "rt" else name


def valid_symbols(function: Function) -> list[tuple[Var, int, int]]:
    """Symbols that only the valid region of a parameter declares: (variable, parameter position, axis)."""
    known = set(function.params)
    for param in function.params:
        if isinstance(param.type, TensorType):
            known.update(d for d in param.type.shape if isinstance(d, Var))
    found: dict[Var, tuple[Var, int, int]] = {}
    for position, param in enumerate(function.params):
        if isinstance(param.type, TensorType):
            for axis, extent in enumerate(param.type.valid_shape):
                if isinstance(extent, Var) and extent not in known:
                    found.setdefault(extent, (extent, position, axis))
    return list(found.values())


class TorchCodegen:
    """The script of one function."""

    def __init__(self, function: Function, program: Program | None = None, check_shapes: bool = False):
        self.function = function
        self.program = program
        self.check_shapes = check_shapes
        self.writer = Writer()
        self.names: dict[Var, str] = {}
        self._table = NameTable()
        self._table.taken |= {"rt", "range", "min", "max", "abs", "int", "float", "bool", *keyword.kwlist}

    # -- functions ----------------------------------------------------------------------------------------------

    def source(self) -> str:
        params = [self.name(p) for p in self.function.params]
        params += [f"{self.name(var)}=None" for var, _, _ in valid_symbols(self.function)]
        self.writer.line(f"def {function_name(self.function.name)}({', '.join(params)}):")
        with self.writer.indented(4):
            self._bind_symbols()
            if self.check_shapes:
                for param in self.function.params:
                    self._check(param)
            start = len(self.writer.lines)
            if self.function.body is not None:
                self.stmt(self.function.body)
            if len(self.writer.lines) == start:
                self.writer.line("pass")
        return self.writer.text()

    def _bind_symbols(self) -> None:
        """Dynamic extents, read from the first tensor that declares them alone."""
        for param in self.function.params:
            if isinstance(param.type, TensorType):
                for axis, dim in enumerate(param.type.shape):
                    if isinstance(dim, Var) and dim not in self.names:
                        self.writer.line(f"{self.name(dim)} = {self.name(param)}.shape[{axis}]")

    def _check(self, var: Var) -> None:
        if isinstance(var.type, (TensorType, TileType)):
            shape = ", ".join(str(d.value) if isinstance(d, ConstInt) else "-1" for d in var.type.shape)
            self.writer.line(f"rt.check({self.name(var)}, ({shape},), {_dtype(var.type.dtype)}, {var.name_hint!r})")

    def name(self, var: Var) -> str:
        """Python name of a variable, unique in the function."""
        found = self.names.get(var)
        if found is None:
            base = re.sub(r"\W", "_", var.name_hint) or "v"
            base = f"v{base}" if base[0].isdigit() else base
            found = self.names[var] = self._table.suffixed(base)
        return found

    # -- statements ---------------------------------------------------------------------------------------------

    def stmt(self, stmt: S.Stmt) -> None:
        match stmt:
            case S.SeqStmts():
                for child in stmt.stmts:
                    self.stmt(child)
            case S.AssignStmt():
                self._assign(stmt)
            case S.EvalStmt():
                text = self.effect(stmt.expr)
                if text:
                    self.writer.line(text)
            case S.ReturnStmt():
                self.writer.line(f"return {', '.join(self.expr(v) for v in stmt.value)}".rstrip())
            case S.ForStmt():
                self._for(stmt)
            case S.WhileStmt():
                self._while(stmt)
            case S.IfStmt():
                self._if(stmt)
            case S.BreakStmt():
                self.writer.line("break")
            case S.ContinueStmt():
                self.writer.line("continue")
            case S.YieldStmt():
                pass
            case S.SpmdScopeStmt():
                self._repeated(f"for _ in rt.blocks({self.expr(stmt.core_num)}):", stmt.body)
            case S.SplitAivScopeStmt():
                self._repeated("for _ in rt.lanes():", stmt.body)
            case S.ScopeStmt():
                self.stmt(stmt.body)
            case _:
                raise ValueError(f"{type(stmt).__name__} has no torch form")

    def _assign(self, stmt: S.AssignStmt) -> None:
        if isinstance(stmt.value, Call) and stmt.value.op.name == "tile.alloc":
            return
        self.writer.line(f"{self.name(stmt.var)} = {self.expr(stmt.value)}")
        if self.check_shapes:
            self._check(stmt.var)

    def _repeated(self, header: str, body: S.Stmt) -> None:
        self.writer.line(header)
        with self.writer.indented(4):
            self._block(body)

    def _block(self, body: S.Stmt | None, targets: tuple = ()) -> None:
        """A body and the assignment of what it yields to ``targets``."""
        start = len(self.writer.lines)
        if body is not None:
            self.stmt(body)
            values = _yielded(body)
            if targets and values:
                left = ", ".join(self.name(t) for t in targets)
                right = ", ".join(self.expr(v) for v in values)
                if left != right:
                    self.writer.line(f"{left} = {right}")
        if len(self.writer.lines) == start:
            self.writer.line("pass")

    def _carries(self, iter_args: tuple) -> None:
        for arg in iter_args:
            self.writer.line(f"{self.name(arg)} = {self.expr(arg.initValue)}")

    def _results(self, stmt: S.ForStmt | S.WhileStmt) -> None:
        for var, arg in zip(stmt.return_vars, stmt.iter_args):
            self.writer.line(f"{self.name(var)} = {self.name(arg)}")

    def _for(self, stmt: S.ForStmt) -> None:
        self._carries(stmt.iter_args)
        bounds = ", ".join(self.expr(e) for e in (stmt.start, stmt.stop, stmt.step))
        self.writer.line(f"for {self.name(stmt.loop_var)} in range({bounds}):")
        with self.writer.indented(4):
            self._block(stmt.body, stmt.iter_args)
        self._results(stmt)

    def _while(self, stmt: S.WhileStmt) -> None:
        self._carries(stmt.iter_args)
        self.writer.line(f"while {self.expr(stmt.condition)}:")
        with self.writer.indented(4):
            self._block(stmt.body, stmt.iter_args)
        self._results(stmt)

    def _if(self, stmt: S.IfStmt) -> None:
        self.writer.line(f"if {self.expr(stmt.condition)}:")
        with self.writer.indented(4):
            self._block(stmt.then_body, stmt.return_vars)
        if stmt.else_body is not None:
            self.writer.line("else:")
            with self.writer.indented(4):
                self._block(stmt.else_body, stmt.return_vars)

    # -- expressions --------------------------------------------------------------------------------------------

    def effect(self, expr: Expr) -> str:
        """A statement made of an expression; empty for what has no effect on values."""
        if isinstance(expr, Call) and expr.op.name.startswith("system."):
            return ""
        return self.expr(expr)

    def expr(self, expr: Expr) -> str:
        if isinstance(expr, Var):
            return self.name(expr)
        if isinstance(expr, (ConstInt, ConstBool)):
            return repr(expr.value)
        if isinstance(expr, ConstFloat):
            return (
                f"float('{expr.value}')"
                if expr.value != expr.value or abs(expr.value) == float("inf")
                else repr(expr.value)
            )
        if isinstance(expr, (E.Min, E.Max)):
            which = "min" if isinstance(expr, E.Min) else "max"
            return f"{which}({self.expr(expr.left)}, {self.expr(expr.right)})"
        if isinstance(expr, E.BinaryExpr):
            return f"({self.expr(expr.left)} {_BINARY[type(expr)]} {self.expr(expr.right)})"
        if isinstance(expr, E.Cast):
            return f"{_python_type(expr.dtype)}({self.expr(expr.operand)})"
        if isinstance(expr, E.Abs):
            return f"abs({self.expr(expr.operand)})"
        if isinstance(expr, E.UnaryExpr):
            return f"({_UNARY[type(expr)]}{self.expr(expr.operand)})"
        if isinstance(expr, MakeTuple):
            return _tuple([self.expr(e) for e in expr.elements])
        if isinstance(expr, TupleGetItemExpr):
            return f"{self.expr(expr.tuple)}[{expr.index}]"
        if isinstance(expr, Submit):
            return self._submit(expr)
        if isinstance(expr, Call):
            return self._program_call(expr) if isinstance(expr.op, GlobalVar) else self._operator(expr)
        raise ValueError(f"{type(expr).__name__} has no torch form")

    def _program_call(self, call: Call) -> str:
        text = self._call_text(call)
        count = call.attrs.get("core_num")
        if count is None:
            return text
        count = self.expr(count) if isinstance(count, Expr) else str(count)
        return f"[{text} for _ in rt.blocks({count})][-1]"

    def _call_text(self, call: Call | Submit) -> str:
        args = [self.expr(a) for a in call.args]
        callee = self.program.get_function(call.op.name) if self.program is not None else None
        for var, position, axis in valid_symbols(callee) if callee is not None else ():
            args.append(f"{var.name_hint}={self.expr(call.args[position].type.valid_shape[axis])}")
        return f"{function_name(call.op.name)}({', '.join(args)})"

    def _submit(self, submit: Submit) -> str:
        text = self._call_text(submit)
        if submit.core_num is not None:
            text = f"[{text} for _ in rt.blocks({self.expr(submit.core_num)})][-1]"
        if isinstance(submit.type, ScalarType):
            return f"(None, {text})[0]"
        many = len(submit.type.types) > 2
        return f"(*{text}, None)" if many else f"({text}, None)"

    # -- operators ----------------------------------------------------------------------------------------------

    def _operator(self, call: Call) -> str:
        name = call.op.name
        leaf = name.split(".")[-1]
        if leaf in _QUERIES:
            return _QUERIES[leaf]
        special = getattr(self, f"_op_{name.replace('.', '_')}", None)
        if special is not None:
            return special(call)
        if name in _VIEWS:
            return f"{self.expr(call.args[0])}.reshape({self._shape(call.type.shape)})"
        if name.startswith("system."):
            return "None"
        definition = find_op(name)
        if definition is None or definition.torch is None:
            raise ValueError(f"operator {name} has no torch form (function '{self.function.name}')")
        return self._generic(call)

    def _generic(self, call: Call) -> str:
        parts = [repr(call.op.name), *(self.expr(a) for a in call.args)]
        regions = [self._region(a) for a in call.args]
        if any(r != "None" for r in regions):
            parts.append(f"_regions={_tuple(regions)}")
            if isinstance(call.type, (TensorType, TileType)):
                parts.append(f"_shape={self._shape(call.type.shape)}")
        parts += [f"{key}={_attr(value)}" for key, value in call.kwargs.items()]
        return f"rt.op({', '.join(parts)})"

    def _shape(self, dims: Any) -> str:
        return _tuple([self.expr(d) for d in dims])

    def _region(self, value: Expr) -> str:
        """Valid extents of an operand, ``None`` when every cell is valid."""
        kind = value.type
        if not isinstance(kind, (TensorType, TileType)) or kind.valid_shape is kind.shape:
            return "None"
        return self._shape(kind.valid_shape)

    def _op_tile_load(self, call: Call) -> str:
        tensor, offsets, shape, valid = call.args[:4]
        if isinstance(call.type, TileType) and len(call.type.valid_shape) == len(valid.elements):
            valid = MakeTuple(call.type.valid_shape)
        return f"rt.load({self.expr(tensor)}, {self.expr(offsets)}, {self.expr(shape)}, {self.expr(valid)})"

    def _op_tile_store(self, call: Call) -> str:
        tile, offsets, output = call.args[:3]
        window = self.expr(call.args[3]) if len(call.args) > 3 else "None"
        atomic = int(call.kwargs.get("atomic", 0))
        return (
            f"rt.store({self.expr(tile)}, {self.expr(offsets)}, {self.expr(output)}, {window}, "
            f"{self._region(tile)}, {atomic})"
        )

    def _op_tensor_assemble(self, call: Call) -> str:
        target, source, offsets = call.args[:3]
        value = self.expr(source)
        if (cells := self._region(source)) != "None":
            value = f"rt.region({value}, {cells})"
        return f"rt.put({self.expr(target)}, {self.expr(offsets)}, {value}, {int(call.kwargs.get('atomic', 0))})"

    def _op_tile_assemble(self, call: Call) -> str:
        target, source, offsets = call.args[:3]
        value = self.expr(source)
        if (cells := self._region(source)) != "None":
            value = f"rt.region({value}, {cells})"
        return f"rt.assemble({self.expr(target)}, {value}, {self.expr(offsets)})"

    def _slice(self, call: Call) -> str:
        drop = f", {self.expr(call.args[4])}" if len(call.args) > 4 else ""
        value, shape, offsets = (self.expr(a) for a in call.args[:3])
        return f"rt.window({value}, {shape}, {offsets}{drop})"

    def _op_tensor_slice(self, call: Call) -> str:
        return self._slice(call)

    def _op_tile_slice(self, call: Call) -> str:
        return f"{self._slice(call)}.reshape({self._shape(call.type.shape)}).clone()"

    def _op_tile_extract(self, call: Call) -> str:
        source, row, col, shape = (self.expr(a) for a in call.args[:4])
        return f"rt.window({source}, {shape}, ({row}, {col}))"

    def _fillpad(self, call: Call) -> str:
        value = call.args[0]
        shape = f", {self.expr(call.args[1])}" if len(call.args) > 1 else ""
        pad = _attr(call.kwargs.get("pad_value"))
        return f"rt.fillpad({self.expr(value)}, {self._region(value)}, {pad}{shape})"

    _op_tile_fillpad = _op_tile_fillpad_inplace = _op_tile_fillpad_expand = _fillpad
    _op_tensor_fillpad = _op_tensor_fillpad_expand = _fillpad

    def _zeros(self, call: Call) -> str:
        return f"rt.zeros({self._shape(call.type.shape)}, {_dtype(call.type.dtype)})"

    _op_tile_create = _zeros

    def _op_tensor_create(self, call: Call) -> str:
        init = call.kwargs.get("init_value")
        fill = f".fill_({_attr(init)})" if init is not None else ""
        return self._zeros(call) + fill

    def _reinterpret(self, call: Call) -> str:
        return f"rt.reinterpret({self.expr(call.args[0])}, {_dtype(call.type.dtype)}, {self._shape(call.type.shape)})"

    _op_tile_reinterpret_view = _op_tensor_reinterpret_view = _reinterpret

    def _same(self, call: Call) -> str:
        return self.expr(call.args[0])

    _op_tile_set_validshape = _op_tensor_set_validshape = _same

    def _op_tile_transpose_view(self, call: Call) -> str:
        return f"{self.expr(call.args[0])}.mT"

    def _op_tensor_transpose(self, call: Call) -> str:
        value, first, second = (self.expr(a) for a in call.args[:3])
        return f"{value}.transpose({first}, {second})"

    def _op_tensor_dim(self, call: Call) -> str:
        return f"{self.expr(call.args[0])}.shape[{self.expr(call.args[1])}]"

    def _read(self, call: Call) -> str:
        return f"rt.read({self.expr(call.args[0])}, {self.expr(call.args[1])})"

    _op_tile_read = _op_tensor_read = _read

    def _write(self, call: Call) -> str:
        return f"rt.write({', '.join(self.expr(a) for a in call.args[:3])})"

    _op_tile_write = _op_tensor_write = _write

    def _op_array_create(self, call: Call) -> str:
        kind = call.type
        fill = "None" if isinstance(kind, ArrayType) and kind.dtype == DataType.TASK_ID else "0"
        return f"[{fill}] * {kind.extent.value}"

    def _op_array_update_element(self, call: Call) -> str:
        return f"rt.updated({', '.join(self.expr(a) for a in call.args[:3])})"

    def _op_array_get_element(self, call: Call) -> str:
        return f"{self.expr(call.args[0])}[{self.expr(call.args[1])}]"

    def _shard(self, call: Call) -> str:
        return f"rt.shard({self.expr(call.args[0])}, {int(call.kwargs.get('split', 0))})"

    _op_tensor_aiv_shard = _op_tile_aiv_shard = _shard


def _yielded(body: S.Stmt) -> tuple:
    stmts = S.flatten_to_stmts(body)
    while stmts and isinstance(stmts[-1], S.ScopeStmt):
        stmts = S.flatten_to_stmts(stmts[-1].body)
    return stmts[-1].value if stmts and isinstance(stmts[-1], S.YieldStmt) else ()


def _tuple(items: list[str]) -> str:
    return f"({', '.join(items)}{',' if len(items) == 1 else ''})"


def _python_type(dtype: DataType) -> str:
    return "bool" if dtype == DataType.BOOL else "float" if dtype.is_float() else "int"


def _dtype(dtype: DataType) -> str:
    return f"DataType.{DTYPE_CONSTANT[dtype]}"


def _attr(value: Any) -> str:
    if isinstance(value, DataType):
        return _dtype(value)
    if isinstance(value, (ConstInt, ConstFloat)):
        return repr(value.value)
    if isinstance(value, enum.IntEnum):
        return str(int(value))
    if isinstance(value, enum.Enum):
        return f"{type(value).__name__}.{value.name}"
    return repr(value)
