"""The operator registry: what an operator definition holds, how one is registered, looked up and called."""

from __future__ import annotations

import enum
import importlib
import inspect
import re
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from pypto.errors import InternalError, user_error
from pypto.ir.dtype import DataType
from pypto.ir.enums import (
    ArgEffect,
    CachePolicy,
    CompactMode,
    MemorySpace,
    PadValue,
    TensorLayout,
    TileLayout,
    WriteChannel,
)
from pypto.ir.expr import Call, ConstFloat, ConstInt, Expr, MakeTuple, Op
from pypto.ir.node import make
from pypto.ir.span import UNKNOWN_SPAN, Span
from pypto.ir.types import ArrayType, ScalarType, TensorType, TileType, TupleType, Type

#: Modules of ``pypto.ops`` that define operators, in the order of the reference.
FAMILIES: tuple[str, ...] = (
    "elementwise",
    "unary",
    "bitwise",
    "compare_select",
    "reductions",
    "expand",
    "creation",
    "movement",
    "fillpad",
    "views",
    "reinterpret",
    "matmul",
    "mx",
    "gather",
    "scatter",
    "sort",
    "cross_core",
    "system",
    "distributed",
    "transfers",
    "collectives",
    "internal",
)


class OpParam(msgspec.Struct, frozen=True):
    """One positional operand.

    ``kind``: tile, tensor, scalar, shape, tuple, memref, handle, array, joined by ``|``. ``element`` marks a scalar
    whose Python value takes the element type of the first operand.
    """

    name: str
    kind: str
    optional: bool = False
    variadic: bool = False
    element: bool = False


class AttrSpec(msgspec.Struct, frozen=True):
    """One keyword attribute of the IR call.

    A call without a ``required`` attribute is rejected; the Python surface leaves an attribute equal to ``default``
    out of the call unless ``keep`` is set.
    """

    name: str
    type: tuple[type, ...]
    required: bool = False
    default: Any = None
    keep: bool = False


class MemorySpec(msgspec.Struct, frozen=True):
    """Allowed spaces per operand (empty = unconstrained) and the space of the result.

    ``output`` is a MemorySpace, ``"deferred"``, ``"inherit_from_input"`` or None.
    """

    inputs: tuple[tuple[MemorySpace, ...], ...]
    output: MemorySpace | str | None


class OpDef(msgspec.Struct, eq=False, kw_only=True):
    """Everything known about one operator; see :func:`op` for the meaning of the fields."""

    name: str
    family: str = ""
    level: str = "core"
    status: str = ""
    params: tuple[OpParam, ...] = ()
    attrs: dict[str, AttrSpec] = {}
    rule: Callable[..., Type]
    signature: inspect.Signature
    front: Callable[..., tuple] | None = None
    python_name: str = ""
    hidden: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    scalar_form: str | None = None
    memory: MemorySpec | None = None
    effects: dict[int, Any] | None = None
    write_channel: WriteChannel | None = None
    inplace_safe: bool = True
    result_is_arg: int | None = None
    no_alias_args: tuple[int, ...] = ()
    core_affinity: str | None = None
    cross_core_role: str | None = None
    no_duplicate: bool = False
    internal_only: bool = False
    retargetable: bool = False
    backends: tuple[str, ...] = ()
    layouts: dict[str, Any] = {}
    converts_to: str | None = None  # tile operator name, or "custom" for a composite rule
    orchestration: bool = False
    pto: str | None = None
    pto_operands: Callable[[Call], list[Expr]] | None = None
    pto_attrs: Callable[[Call], str] | None = None
    torch: Callable[..., Any] | None = None
    outputs: int = 1
    doc: str = ""
    min_operands: int = 0
    required_attrs: tuple[str, ...] = ()
    operands_first: bool = True
    no_kwargs: bool = False
    positional_attrs: bool = False

    @property
    def declares_effects(self) -> bool:
        return self.effects is not None

    def arg_effect(self, index: int, **kwargs: Any) -> ArgEffect:
        """Effect on operand ``index`` of a call with these kwargs; Read when the operator declares none."""
        effect = (self.effects or {}).get(index, ArgEffect.Read)
        return effect if isinstance(effect, ArgEffect) else effect(kwargs)

    def deduce(self, args: tuple[Expr, ...], kwargs: dict[str, Any], span: Span = UNKNOWN_SPAN) -> Type:
        """Type of a call.

        Raises:
            ValueError: wrong operand count or kind, unknown or missing attribute, or the rule of the operator.
            TypeError: an attribute of the wrong type.
        """
        try:
            self._check_operands(args)
            if not self.attrs:
                if kwargs and self.no_kwargs:
                    raise ValueError(f"The operator {self.name} takes no kwargs, but got {', '.join(kwargs)}")
                return self.rule(*args)
            self._check_attrs(kwargs)
            if self.operands_first:
                return self.rule(*args, **kwargs)
            return self.rule(**{p.name: a for p, a in zip(self.params, args)}, **kwargs)
        except ValueError as error:
            raise user_error(str(error), span=span, kind=type(error)) from error
        except TypeError as error:
            if not span.is_valid():
                raise
            raise TypeError(f"{error} at {span}") from error
        except InternalError as error:
            raise InternalError(error.message, span=span, trace=error.trace) from error

    def _check_operands(self, args: tuple[Expr, ...]) -> None:
        params, low = self.params, self.min_operands
        variadic = bool(params) and params[-1].variadic
        if len(args) < low or (len(args) > len(params) and not variadic):
            raise ValueError(f"The operator {self.name} {self._arity(low, variadic)}, but got {len(args)}")
        last = len(params) - 1
        for index, arg in enumerate(args):
            param = params[index if index < last else last]
            if not KINDS[param.kind](arg):
                raise ValueError(
                    f"The operator {self.name} got a wrong argument {index}: {param.name} must be a "
                    f"{self._kind_text(param.kind)}, but got {type(arg.type).__name__}"
                )
            if param.kind == "shape":
                self._check_members(param.name, arg)

    def _kind_text(self, kind: str) -> str:
        if kind == "tensor" and self.name.startswith("pld."):
            return "DistributedTensor or a plain TensorType"
        return _KIND_TEXT.get(kind, kind)

    def _check_members(self, what: str, arg: Expr) -> None:
        """Extents and offsets are integers."""
        for index, member in enumerate(arg.elements if isinstance(arg, MakeTuple) else ()):
            if type(member) is ConstInt:
                continue
            kind = member.type
            if not (isinstance(kind, ScalarType) and kind.dtype.is_int()):
                got = str(kind.dtype) if isinstance(kind, ScalarType) else type(kind).__name__
                got = f"{member.value} ({got})" if isinstance(member, ConstFloat) else got
                raise ValueError(f"{self.name}: {what} {index} must be an integer scalar, but got {got}")

    def _arity(self, low: int, variadic: bool) -> str:
        high = len(self.params)
        if not high:
            return "takes no positional arguments"
        names = ", ".join(p.name for p in self.params)
        count = f"at least {low}" if variadic else f"exactly {low}" if low == high else f"{low} to {high}"
        return f"requires {low if low == high else count} args: {count} positional arguments ({names})"

    def _check_attrs(self, kwargs: dict[str, Any]) -> None:
        attrs = self.attrs
        for name, value in kwargs.items():
            spec = attrs.get(name)
            if spec is None:
                raise ValueError(
                    f"Unknown kwarg '{name}' for operator '{self.name}'; it takes {', '.join(sorted(attrs))}"
                )
            if not _attr_accepts(spec.type, value):
                raise TypeError(
                    f"Kwarg '{name}' for operator '{self.name}' has incompatible type: "
                    f"expected {'|'.join(t.__name__ for t in spec.type)}, got {type(value).__name__}"
                )
        for name in self.required_attrs:
            if name not in kwargs:
                raise ValueError(f"{self.name} requires a '{name}' kwarg")


def _attr_accepts(types: tuple[type, ...], value: Any) -> bool:
    if isinstance(value, bool):
        return bool in types
    return isinstance(value, types) or (float in types and isinstance(value, int))


_ATTR_TYPES: dict[str, type] = {
    "int": int,
    "bool": bool,
    "str": str,
    "float": float,
    "tuple": tuple,
    "DataType": DataType,
    "PadValue": PadValue,
    "MemorySpace": MemorySpace,
    "TileLayout": TileLayout,
    "TensorLayout": TensorLayout,
    "CompactMode": CompactMode,
    "CachePolicy": CachePolicy,
    "Expr": Expr,
    "list": list,
}

_KIND_TEXT = {
    "tile": "TileType of rank 1 or more",
    "tensor": "TensorType",
    "scalar": "scalar (ScalarType)",
    "shape": "tuple, written as a list or a shape tuple",
    "indices": "tuple, written as an index or a list of indices",
    "array": "ArrayType",
}

_SINGLE_KINDS: dict[str, Callable[[Expr], bool]] = {
    "tile": lambda e: isinstance(e.type, TileType) and len(e.type.shape) > 0,
    "tensor": lambda e: isinstance(e.type, TensorType),
    "scalar": lambda e: isinstance(e.type, ScalarType),
    "shape": lambda e: isinstance(e, MakeTuple) or isinstance(e.type, TupleType),
    "indices": lambda e: isinstance(e, MakeTuple) or isinstance(e.type, TupleType),
    "tuple": lambda e: isinstance(e, MakeTuple) or isinstance(e.type, TupleType),
    "array": lambda e: isinstance(e.type, ArrayType),
    "memref": lambda e: True,
    "handle": lambda e: True,
}


class _Kinds(dict):
    """Kind text -> predicate, with alternatives joined by ``|``."""

    def __missing__(self, kind: str) -> Callable[[Expr], bool]:
        tests = [_SINGLE_KINDS[k] for k in kind.split("|")]
        found = tests[0] if len(tests) == 1 else lambda e: any(t(e) for t in tests)
        self[kind] = found
        return found


KINDS = _Kinds()

_OPS: dict[str, OpDef] = {}
_loaded = False

_KIND_NAMES = {
    "Tile": "tile",
    "Tensor": "tensor",
    "Scalar": "scalar",
    "Element": "scalar",
    "Shape": "shape",
    "Indices": "indices",
    "Tuple": "tuple",
    "MemRefOperand": "memref",
    "Handle": "handle",
    "Array": "array",
}


def _read_signature(
    signature: inspect.Signature, keep: tuple[str, ...], required: tuple[str, ...]
) -> tuple[tuple[OpParam, ...], dict[str, AttrSpec]]:
    params: list[OpParam] = []
    attrs: dict[str, AttrSpec] = {}
    for parameter in signature.parameters.values():
        text = str(parameter.annotation).replace(" | None", "")
        has_default = parameter.default is not inspect.Parameter.empty
        match = re.fullmatch(r"Attr\[(.*)\]", text)
        if match:
            types = tuple(_ATTR_TYPES[t.strip()] for t in match.group(1).split("|"))
            needed = not has_default or parameter.name in required
            default = parameter.default if has_default else None
            attrs[parameter.name] = AttrSpec(parameter.name, types, needed, default, needed or parameter.name in keep)
            continue
        kind = "|".join(_KIND_NAMES[k.strip()] for k in text.split("|"))
        variadic = parameter.kind is inspect.Parameter.VAR_POSITIONAL
        params.append(OpParam(parameter.name, kind, has_default or variadic, variadic, "Element" in text))
    return tuple(params), attrs


def _operands_first(signature: inspect.Signature, attrs: dict[str, AttrSpec]) -> bool:
    """True when no operand follows an attribute, so that operands can be passed by position."""
    seen_attr = False
    for name in signature.parameters:
        seen_attr = seen_attr or name in attrs
        if seen_attr and name not in attrs:
            return False
    return True


def op(
    name: str,
    *,
    family: str = "",
    level: str = "core",
    front: Callable[..., tuple] | None = None,
    keep: tuple[str, ...] = (),
    required: tuple[str, ...] = (),
    memory: MemorySpec | None = None,
    **facts: Any,
) -> Callable[[Callable[..., Type]], Callable[..., Type]]:
    """Register the decorated type rule as operator ``name``.

    The rule's signature is the operator's: ``Tile``, ``Tensor``, ``Scalar``, ``Shape``, ... parameters are operands
    in IR order (with a default: optional), ``Attr[T]`` parameters are keyword attributes. The rule gets operand
    *expressions* and attribute values and returns the result type. One rule may be decorated several times.

    Args:
        name: IR name such as ``"tile.add"``.
        family: chapter of the reference.
        level: ``"core"`` or ``"extended"``.
        front: public Python form when it differs from the rule's signature; returns ``(args, kwargs)``.
        keep: attributes the Python surface stores even when equal to their default.
        required: attributes with a Python default that an IR call must nevertheless carry.
        memory: memory spec.
        facts: other fields of :class:`OpDef` (effects, traits, ``pto``, ``torch``, ...). ``no_kwargs`` refuses the
            unknown attributes that operators without declared ones otherwise keep; ``positional_attrs`` lets the
            Python function take keyword-only attributes by position.
    """

    def register(rule: Callable[..., Type]) -> Callable[..., Type]:
        if name in _OPS:
            raise ValueError(f"operator '{name}' is registered twice")
        signature = inspect.signature(rule)
        params, attrs = _read_signature(signature, keep, required)
        facts.setdefault("doc", inspect.getdoc(rule) or "")
        leaf = name.rsplit(".", 1)[-1]
        python_name = facts.pop("python_name", leaf + "_" if leaf in ("and", "or", "not") else leaf)
        _OPS[name] = OpDef(
            name=name, family=family, level=level, params=params, attrs=attrs, rule=rule, front=front,
            python_name=python_name, memory=memory, min_operands=sum(not p.optional for p in params),
            required_attrs=tuple(n for n, s in attrs.items() if s.required),
            signature=signature, operands_first=_operands_first(signature, attrs), **facts,
        )  # fmt: skip
        return rule

    return register


def _load() -> None:
    global _loaded
    if not _loaded:
        _loaded = True
        for module in FAMILIES:
            importlib.import_module(f"pypto.ops.{module}")


def find_op(name: str) -> OpDef | None:
    """The definition of operator ``name``, None when there is none."""
    _load()
    return _OPS.get(name)


def get_op(name: str) -> OpDef:
    """The definition of operator ``name``; ``ValueError`` when there is none."""
    found = find_op(name)
    if found is None:
        raise ValueError(f"operator '{name}' is not registered")
    return found


def is_op_registered(name: str) -> bool:
    """True when operator ``name`` exists."""
    return find_op(name) is not None


def all_ops() -> Iterable[OpDef]:
    """Every definition, in reference order."""
    _load()
    return tuple(_OPS.values())


_op_refs: dict[str, Op] = {}


def op_ref(name: str) -> Op:
    """The shared call target of operator ``name``."""
    found = _op_refs.get(name)
    if found is None:
        found = _op_refs[name] = Op(name)
    return found


def create_op_call(
    name: str, args: Iterable[Expr], kwargs: dict[str, Any] | Span | None = None, span: Span | None = None
) -> Call:
    """A call of operator ``name`` with its deduced type; ``(name, args, span)`` is accepted too.

    Raises:
        ValueError: unknown operator, wrong operands, unknown or missing kwarg, or a violated rule of the operator.
        TypeError: a kwarg of the wrong type.
    """
    if isinstance(kwargs, Span):
        kwargs, span = None, kwargs
    span = UNKNOWN_SPAN if span is None else span
    args = tuple(args)
    kwargs = {key: kwarg_value(value) for key, value in kwargs.items()} if kwargs else {}
    type_ = get_op(name).deduce(args, kwargs, span)
    return make(Call, op_ref(name), args, kwargs, {}, type_, span)


def kwarg_value(value: Any) -> Any:
    """IR form of an attribute value: IntEnum members travel as plain ints."""
    return int(value) if isinstance(value, enum.IntEnum) else value
