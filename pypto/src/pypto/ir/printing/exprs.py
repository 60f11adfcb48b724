"""Text of expressions: operators with minimal parentheses, operator calls, program calls, task launches."""

from __future__ import annotations

import json
import keyword
import math
from enum import Enum
from typing import Any

from pypto.errors import InternalError
from pypto.ir import expr as E
from pypto.ir.dtype import DataType
from pypto.ir.enums import ArgDirection, AtomicType, MemorySpace, PipeType, SplitMode
from pypto.ir.memref import MemRef, WindowBuffer
from pypto.ir.node import IRNode
from pypto.ir.printing.names import Names

# Binding strength, loosest first. Comparisons and ``xor`` do not chain: both operands must bind tighter.
_OR, _AND, _NOT, _COMPARE, _BITOR, _BITXOR, _BITAND, _SHIFT, _ADD, _MUL, _UNARY, _POW, _ATOM = range(13)

_BINARY: dict[type, tuple[str, int]] = {
    E.Or: ("or", _OR), E.Xor: ("xor", _OR), E.And: ("and", _AND),
    E.Eq: ("==", _COMPARE), E.Ne: ("!=", _COMPARE), E.Lt: ("<", _COMPARE), E.Le: ("<=", _COMPARE),
    E.Gt: (">", _COMPARE), E.Ge: (">=", _COMPARE),
    E.BitOr: ("|", _BITOR), E.BitXor: ("^", _BITXOR), E.BitAnd: ("&", _BITAND),
    E.BitShiftLeft: ("<<", _SHIFT), E.BitShiftRight: (">>", _SHIFT),
    E.Add: ("+", _ADD), E.Sub: ("-", _ADD),
    E.Mul: ("*", _MUL), E.FloorDiv: ("//", _MUL), E.FloorMod: ("%", _MUL), E.FloatDiv: ("/", _MUL),
    E.Pow: ("**", _POW),
}  # fmt: skip
_CONSTANTS = (E.ConstInt, E.ConstFloat)

#: First parts of operator names that are printed with their namespace.
_NAMESPACES = ("tensor", "tile", "system", "array", "prefetch", "builtin", "dist", "test")

_CAST_MODES = ("none", "rint", "round", "floor", "ceil", "trunc", "odd")
_ENUM_KWARGS: dict[str, type[Enum]] = {
    "atomic": AtomicType, "pipe": PipeType, "set_pipe": PipeType, "wait_pipe": PipeType,
}  # fmt: skip
_ADIR = {
    ArgDirection.Input: "input", ArgDirection.Output: "output", ArgDirection.InOut: "inout",
    ArgDirection.OutputExisting: "output_existing", ArgDirection.NoDep: "no_dep", ArgDirection.Scalar: "scalar",
}  # fmt: skip


def string(text: str) -> str:
    """A double-quoted Python string literal."""
    return json.dumps(text, ensure_ascii=False)


def float_text(value: float) -> str:
    """A float with up to 17 significant digits, recognisable as a float."""
    text = f"{value:.17g}".replace("e+", "e")
    return text if not math.isfinite(value) or "." in text or "e" in text else f"{text}.0"


class ExprPrinter:
    """Prints expressions with the names in ``names``; unknown variables are named when first met."""

    def __init__(self, prefix: str):
        self.pl = prefix
        self.names = Names()
        self.uses_pld = False
        self.mark_free = False  # inside a function, where every variable must be a parameter or defined
        self.in_program = False
        self.in_dimension = False
        self.in_signature = False
        self._constants: dict[int, bool] = {}
        self.assigned_name: str | None = None  # the variable that takes the printed value
        self.region_split: int | None = None  # inside a split_aiv region: the split that crossings take from it
        self._table = {
            **dict.fromkeys(E.BINARY_CLASSES, self._binary),
            E.Var: self.var, E.IterArg: self.var, MemRef: self.var, WindowBuffer: self.var,
            E.ConstInt: self._const_int, E.ConstFloat: self._const_float, E.ConstBool: self._const_bool,
            E.Min: self._min_max, E.Max: self._min_max, E.Abs: self._abs, E.Neg: self._prefix, E.Not: self._prefix,
            E.BitNot: self._prefix, E.Cast: self._cast, E.Call: self._call, E.Submit: self._submit,
            E.MakeTuple: self._make_tuple, E.TupleGetItemExpr: self._item,
        }  # fmt: skip

    # Supplied by the type printer.
    def type(self, kind: Any) -> str:
        raise NotImplementedError

    def dtype(self, dtype: DataType) -> str:
        raise NotImplementedError

    def expr(self, expr: E.Expr) -> str:
        """Text of an expression, without outer parentheses."""
        return self._table[type(expr)](expr)

    # -- leaves -----------------------------------------------------------------------------------------------------

    def var(self, var: E.Var) -> str:
        name = self.names.of.get(var)
        if name is None:
            name = self.names.define(var)
            if self.mark_free:
                name = self.names.of[var] = f"{name}__FREE_VAR"
        return name

    def _const_int(self, const: E.ConstInt, typed: bool = False) -> str:
        if const.dtype == DataType.INDEX and not typed:
            return str(const.value)
        return f"{self.pl}.const({const.value}, {self.dtype(const.dtype)})"

    def _const_float(self, const: E.ConstFloat, typed: bool = False) -> str:
        if const.dtype == DataType.FP32 and not typed:
            return float_text(const.value)
        return f"{self.pl}.const({float_text(const.value)}, {self.dtype(const.dtype)})"

    def _const_bool(self, const: E.ConstBool) -> str:
        return "True" if const.value else "False"

    # -- scalar operators -------------------------------------------------------------------------------------------

    def _operand(self, expr: E.Expr, minimum: int, typed: bool) -> str:
        """``expr`` as an operand that must bind at least as tightly as ``minimum``."""
        cls = type(expr)
        if cls is E.ConstInt:
            text = self._const_int(expr, typed)
            return f"({text})" if minimum > _UNARY and text[0] == "-" else text
        if cls is E.ConstFloat:
            text = self._const_float(expr, typed)
            return f"({text})" if minimum > _UNARY and text[0] == "-" else text
        text = self._binary(expr, typed) if cls in _BINARY else self.expr(expr)
        return f"({text})" if _strength(cls) < minimum else text

    def _binary(self, expr: E.BinaryExpr, typed: bool = False) -> str:
        spine = [expr]  # down the left operands, so that long sums need no recursion
        while type(spine[-1].left) in _BINARY:
            spine.append(spine[-1].left)
        spine.reverse()
        constant = _only_constants(spine[0].left, self._constants)
        text, below = "", _ATOM
        for node in spine:
            symbol, strength = _BINARY[type(node)]
            constant = constant and _only_constants(node.right, self._constants)
            left = right = strength + 1
            if strength == _POW:
                right = _UNARY
            elif strength != _COMPARE and symbol != "xor":
                left = strength
            if node is spine[0]:
                text = self._operand(node.left, left, typed or constant)
            elif below < left:
                text = f"({text})"
            text = f"{text} {symbol} {self._operand(node.right, right, typed or constant)}"
            below = strength
        return text

    def _prefix(self, expr: E.UnaryExpr) -> str:
        cls = type(expr)
        typed = type(expr.operand) in _CONSTANTS
        if cls is E.Not:
            return f"not {self._operand(expr.operand, _NOT, typed)}"
        return f"{'-' if cls is E.Neg else '~'}{self._operand(expr.operand, _UNARY, typed)}"

    def _abs(self, expr: E.Abs) -> str:
        return f"abs({self._operand(expr.operand, _OR, type(expr.operand) in _CONSTANTS)})"

    def _cast(self, expr: E.Cast) -> str:
        return f"{self.pl}.cast({self.expr(expr.operand)}, {self.dtype(expr.dtype)})"

    def _min_max(self, expr: E.BinaryExpr) -> str:
        typed = self.in_dimension or _only_constants(expr, self._constants)
        name = "min" if type(expr) is E.Min else "max"
        return f"{self.pl}.{name}({self._operand(expr.left, _OR, typed)}, {self._operand(expr.right, _OR, typed)})"

    def _make_tuple(self, expr: E.MakeTuple) -> str:
        return f"[{self.list(expr.elements)}]"

    def _item(self, expr: E.TupleGetItemExpr) -> str:
        return f"{self.expr(expr.tuple)}[{expr.index}]"

    def list(self, exprs: Any) -> str:
        """Comma-separated expressions."""
        return ", ".join([self.expr(e) for e in exprs])

    # -- calls ------------------------------------------------------------------------------------------------------

    def _op_name(self, name: str) -> str:
        head, _, rest = name.partition(".")
        if head == "pld":
            self.uses_pld = True
        elif head in _NAMESPACES and rest:
            name = f"{self.pl}.{name}"
        else:
            return name
        leaf = name.rpartition(".")[2]
        return f"{name}_" if keyword.iskeyword(leaf) else name

    def _call(self, call: E.Call) -> str:
        if isinstance(call.op, E.GlobalVar):
            args = [self.expr(a) for a in call.args]
            attrs = dict(call.attrs)
            self._append_device(args, attrs)
            args += [f"{key}={self.kwarg(key, value)}" for key, value in call.kwargs.items()]
            self._append_attrs(args, attrs)
            return f"{self._callee(call.op)}({', '.join(args)})"
        attrs = call.attrs
        if attrs:
            attrs = self._op_attrs(call)
        args = self._op_arguments(call)
        self._append_attrs(args, attrs)
        return f"{self._op_name(call.op.name)}({', '.join(args)})"

    def _callee(self, op: E.GlobalVar) -> str:
        return f"self.{op.name}" if self.in_program else op.name

    def _op_attrs(self, call: E.Call) -> dict[str, Any]:
        """Attributes left for the ``attrs`` dictionary; the dependency attributes have syntax on one operator only."""
        attrs = dict(call.attrs)
        if call.op.name == "system.task_dummy":
            attrs.pop("manual_dep_edges", None)
            attrs.pop("dummy_task", None)
            return attrs
        for key in ("manual_dep_edges", "dummy_task"):
            if key in attrs:
                raise InternalError(
                    f"attribute '{key}' of a call to '{call.op.name}' cannot be printed: only system.task_dummy has it",
                    span=call.span,
                )
        return attrs

    def _op_arguments(self, call: E.Call) -> list[str]:
        name, args, kwargs = call.op.name, list(call.args), dict(call.kwargs)
        named: dict[str, str] = {}
        if name == "system.task_dummy":
            return [f"deps=[{self.list(call.attrs.get('manual_dep_edges', ()))}]"]
        if name in ("tile.alloc", "tensor.alloc") and args and type(args[0]) is E.ConstInt:
            space = f"{self.pl}.Mem.{MemorySpace(args.pop(0).value).name}"
            size = [str(a.value) if type(a) is E.ConstInt else self.expr(a) for a in args]
            return [space, *size, *self._kwargs(name, kwargs)]
        if name.endswith(".full") and len(args) == 2:
            named["value"] = self.expr(args.pop())
        elif name.endswith(".reinterpret_view") and len(args) == 2:
            named["shape"] = self.expr(args.pop())
        elif name == "system.syncall" and args:
            # One operand stands for a count that follows from the launch, which the surface spells as 0.
            counts = [str(a.value) if type(a) is E.ConstInt else self.expr(a) for a in args[1:]] or ["0"]
            named.update(gm_workspace=self.expr(args[0]), used_cores=counts[0])
            args = []
            kwargs = {key: kwargs[key] for key in ("mode", "core_type") if key in kwargs}
        elif name == "pld.tensor.alloc_window_buffer" and kwargs.get("name") == self.assigned_name:
            kwargs.pop("name", None)  # the parser takes it from the assignment
        elif name.endswith((".aiv_shard", ".aic_gather")) and kwargs.get("split") == self.region_split:
            kwargs.pop("split", None)
        elif name.endswith(".gather_row") and len(args) == 6:
            # ``transpose`` is the sixth positional argument of the surface.
            valid_shape = self.expr(args.pop())
            return [*[self.expr(a) for a in args], f"valid_shape={valid_shape}", *self._kwargs(name, kwargs)]
        texts = [self.expr(a) for a in args]
        return texts + self._kwargs(name, kwargs) + [f"{key}={text}" for key, text in named.items()]

    def _kwargs(self, op: str, kwargs: dict[str, Any]) -> list[str]:
        return [f"{key}={self.kwarg(key, value, op)}" for key, value in kwargs.items()]

    def kwarg(self, key: str, value: Any, op: str = "") -> str:
        """Text of a keyword argument; ints that stand for enum members print as these."""
        if type(value) is int:
            if key in _ENUM_KWARGS:
                return f"{self.pl}.{_ENUM_KWARGS[key].__name__}.{_ENUM_KWARGS[key](value).name}"
            if key == "mode" and op.endswith(".cast") and 0 <= value < len(_CAST_MODES):
                return string(_CAST_MODES[value])
        return self.value(value)

    def value(self, value: Any) -> str:
        """Text of an attribute or keyword value."""
        if isinstance(value, IRNode):
            return self.expr(value)
        if isinstance(value, (bool, type(None))):
            return str(value)
        if isinstance(value, ArgDirection):
            return f"{self.pl}.adir.{_ADIR[value]}"
        if isinstance(value, MemorySpace):
            return f"{self.pl}.Mem.{value.name}"
        if isinstance(value, Enum):
            return f"{self.pl}.{type(value).__name__}.{value.name}"
        if isinstance(value, int):
            return str(value)
        if isinstance(value, float):
            return float_text(value)
        if isinstance(value, str):
            return string(value)
        if isinstance(value, DataType):
            return self.dtype(value)
        if isinstance(value, (list, tuple)):
            return f"[{', '.join([self.value(v) for v in value])}]"
        raise InternalError(f"an attribute value of class {type(value).__name__} cannot be printed")

    def attrs(self, attrs: dict[str, Any]) -> str:
        """``{"key": value, ...}``."""
        parts = []
        for key, value in attrs.items():
            text = f"{self.pl}.SplitMode.{SplitMode(value).name}" if key == "split" and type(value) is int else None
            parts.append(f"{string(key)}: {text or self.value(value)}")
        return f"{{{', '.join(parts)}}}"

    def _append_attrs(self, args: list[str], attrs: dict[str, Any]) -> None:
        if attrs:
            args.append(f"attrs={self.attrs(attrs)}")

    def _append_device(self, args: list[str], attrs: dict[str, Any]) -> None:
        device = attrs.pop("device", None)
        if device is not None:
            args.append(f"device={self.value(device)}")

    def _submit(self, submit: E.Submit) -> str:
        args = [self._callee(submit.op), *[self.expr(a) for a in submit.args]]
        attrs = dict(submit.attrs)
        if submit.core_num is not None:
            args.append(f"core_num={self.expr(submit.core_num)}")
            if submit.sync_start:
                args.append("sync_start=True")
        self._append_device(args, attrs)
        if submit.deps:
            args.append(f"deps=[{self.list(submit.deps)}]")
        dumps = attrs.pop("dump_vars", None)
        if dumps:
            args.append(f"dumps=[{self.list(dumps)}]")
        if submit.allow_early_resolve:
            args.append("allow_early_resolve=True")
        if submit.predicate is not None:
            args.append(f"predicate={self.predicate(submit.predicate)}")
        args += [f"{key}={self.kwarg(key, value)}" for key, value in submit.kwargs.items()]
        self._append_attrs(args, attrs)
        name = "submit" if submit.core_num is None else "spmd_submit"
        return f"{self.pl}.{name}({', '.join(args)})"

    def predicate(self, expr: E.Expr) -> str:
        """A dispatch predicate in its own syntax, ``(tensor[i, j] > 0)``."""
        if type(expr) not in _BINARY:
            return f"({self.expr(expr)})"

        def side(value: E.Expr) -> str:
            if type(value) is E.ConstInt:
                return str(value.value)
            if type(value) is E.Call and value.op.name == "tensor.read" and type(value.args[1]) is E.MakeTuple:
                return f"{self.expr(value.args[0])}[{self.list(value.args[1].elements)}]"
            return self._operand(value, _COMPARE + 1, False)

        return f"({side(expr.left)} {_BINARY[type(expr)][0]} {side(expr.right)})"


def _strength(cls: type) -> int:
    if cls in _BINARY:
        return _BINARY[cls][1]
    if cls is E.Not:
        return _NOT
    return _UNARY if cls in (E.Neg, E.BitNot) else _ATOM


def _only_constants(expr: E.Expr, known: dict[int, bool]) -> bool:
    """True for an operator tree whose leaves are all constants: bare literals would be folded when read back.

    ``known`` keeps the answers by object identity, so that a deep tree is walked once.
    """
    cls = type(expr)
    if cls in _CONSTANTS:
        return True
    if not isinstance(expr, (E.BinaryExpr, E.UnaryExpr)) or cls is E.Cast:
        return False
    stack = [expr]
    while stack:
        item = stack[-1]
        operands = (item.left, item.right) if isinstance(item, E.BinaryExpr) else (item.operand,)
        pending = [o for o in operands if isinstance(o, (E.BinaryExpr, E.UnaryExpr)) and id(o) not in known]
        if pending and type(item) is not E.Cast:
            stack.extend(pending)
            continue
        stack.pop()
        known[id(item)] = type(item) is not E.Cast and all(
            known[id(o)] if id(o) in known else type(o) in _CONSTANTS for o in operands
        )
    return known[id(expr)]
