"""Nodes as bytes: a versioned MessagePack table in which every object is written once and refers to earlier ones.

The document is ``{"format", "version", "spans", "nodes", "root"}``. ``nodes`` holds rows in dependency order: a type is
a map of its fields, a node the list ``[class name, span index, field...]`` with the fields in the order of
:data:`SCHEMAS`. References are row numbers, always smaller than the row's own, so reading needs no recursion and cannot
loop. Sharing, spans, comments and attributes survive; ``unique_id`` does not.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from enum import Enum
from typing import Any

import msgspec

from pypto.errors import InternalError
from pypto.ir import enums
from pypto.ir import expr as E
from pypto.ir import stmt as S
from pypto.ir import types as T
from pypto.ir.dtype import DataType
from pypto.ir.memref import MemRef, WindowBuffer
from pypto.ir.node import IRNode, StructMeta
from pypto.ir.program import Function, Program
from pypto.ir.span import UNKNOWN_SPAN, Span

FORMAT = "pypto-ir"
VERSION = 1


class SerializationError(ValueError, RuntimeError):
    """Bytes that are no serialised node of this version."""


# How a field is written: a reference to an expression, statement or function, lists of those, a type, ...
_EXPR, _STMT, _EXPRS, _STMTS, _TYPE, _TYPES, _ATTRS, _OP, _DTYPE, _VALUE, _FUNCTIONS, _MIXED = range(12)
_REFERENCES = {_EXPR: E.Expr, _STMT: S.Stmt, _EXPRS: E.Expr, _STMTS: S.Stmt, _TYPE: T.Type, _TYPES: T.Type}
_LISTS = (_EXPRS, _STMTS, _TYPES)

_KINDS: dict[str, Any] = {
    **dict.fromkeys(
        ("var", "value", "condition", "loop_var", "start", "stop", "step", "expr", "left", "right", "operand", "tuple",
         "initValue", "base_", "byte_offset_", "slot_index_", "base", "size", "core_num", "predicate"), _EXPR),
    **dict.fromkeys(("then_body", "else_body", "body"), _STMT),
    **dict.fromkeys(("return_vars", "iter_args", "args", "deps", "elements", "params", "slots"), _EXPRS),
    "devices": _MIXED,
    "stmts": _STMTS, "type": _TYPE, "return_types": _TYPES, "attrs": _ATTRS, "kwargs": _ATTRS, "op": _OP,
    "dtype": _DTYPE, "functions": _FUNCTIONS, "split": enums.SplitMode, "kind": enums.ForKind, "level": enums.Level,
    "role": enums.Role, "func_type": enums.FunctionType, "language": enums.InlineLanguage,
    "param_directions": enums.ParamDirection,
}  # fmt: skip
_OVERRIDES: dict[tuple[type, str], Any] = {
    (E.ConstInt, "value"): _VALUE, (E.ConstFloat, "value"): _VALUE, (E.ConstBool, "value"): _VALUE,
    (S.YieldStmt, "value"): _EXPRS, (S.ReturnStmt, "value"): _EXPRS, (S.InlineStmt, "body"): _VALUE,
}  # fmt: skip
_NODE_CLASSES = (
    E.Var, E.IterArg, MemRef, WindowBuffer, E.ConstInt, E.ConstFloat, E.ConstBool, E.Call, E.Submit, E.MakeTuple,
    E.TupleGetItemExpr, *E.BINARY_CLASSES, *E.UNARY_CLASSES, S.AssignStmt, S.IfStmt, S.ForStmt, S.WhileStmt, S.SeqStmts,
    S.YieldStmt, S.ReturnStmt, S.EvalStmt, S.BreakStmt, S.ContinueStmt, S.InlineStmt, *S.SCOPE_CLASSES, Function,
    Program,
)  # fmt: skip
_TYPE_CLASSES = (
    T.UnknownType, T.PtrType, T.MemRefType, T.WindowBufferType, T.CommCtxType, T.PrefetchAsyncContextType,
    T.AsyncEventType, T.AsyncSessionType, T.VoidType, T.ScalarType, T.TensorType, T.DistributedTensorType, T.TileType,
    T.ArrayType, T.TupleType, T.BufferType, T.MultiBufferType,
)  # fmt: skip

#: Node class -> ((field, how it is written), ...); the span stands apart.
SCHEMAS: dict[type, tuple[tuple[str, Any], ...]] = {
    cls: tuple(
        (name, _OVERRIDES.get((cls, name), _KINDS.get(name, _VALUE)))
        for name in cls.__struct_fields__
        if name not in ("span", "unique_id")
    )
    for cls in _NODE_CLASSES
}
_BY_NAME = {cls.__name__: cls for cls in _NODE_CLASSES}
_TYPES_BY_NAME = {cls.__name__: cls for cls in _TYPE_CLASSES}
_ENUMS_BY_NAME = {cls.__name__: cls for cls in vars(enums).values() if isinstance(cls, type) and issubclass(cls, Enum)}


# -- writing --------------------------------------------------------------------------------------------------------


def serialize(node: IRNode) -> bytes:
    """The bytes of a node and everything it refers to.

    Raises:
        TypeError: ``node`` is no node (a bare type, say), or an attribute holds a value that cannot be written.
    """
    if not isinstance(node, IRNode) or type(node) not in SCHEMAS:
        raise TypeError(f"serialize takes an IR node, got {type(node).__name__}")
    return _Writer().document(node)


class _Writer:
    def __init__(self) -> None:
        self._rows: list[Any] = []
        self._index: dict[int, int] = {}
        self._spans: dict[Span, int] = {}

    def document(self, root: IRNode) -> bytes:
        index, rows, stack = self._index, self._rows, [root]
        while stack:
            current = stack.pop()
            if current is None:  # everything that the object below refers to is written
                current = stack.pop()
                index[id(current)] = len(rows)
                rows.append(self._type(current) if isinstance(current, T.Type) else self._node(current))
            elif id(current) not in index:
                index[id(current)] = -1
                stack += (current, None)
                stack.extend(reversed(_children(current)))
        spans = [list(_span_fields(span)) for span in self._spans]
        document = {"format": FORMAT, "version": VERSION, "spans": spans, "nodes": self._rows, "root": index[id(root)]}
        return msgspec.msgpack.encode(document)

    def _ref(self, value: Any) -> int | None:
        return None if value is None else self._index[id(value)]

    def _node(self, node: IRNode) -> list[Any]:
        cls = type(node)
        row = [cls.__name__, self._spans.setdefault(node.span, len(self._spans))]
        for name, kind in SCHEMAS[cls]:
            value = getattr(node, name)
            if kind is _EXPR or kind is _TYPE or kind is _STMT:
                row.append(self._ref(value))
            elif kind in _LISTS:
                row.append([self._index[id(item)] for item in value])
            elif kind is _VALUE:
                row.append(value)
            elif kind is _DTYPE:
                row.append(value.code())
            elif kind is _ATTRS:
                row.append({key: self._value(item) for key, item in value.items()})
            elif kind is _MIXED:
                row.append([self._value(item) for item in value])
            elif kind is _OP:
                row.append([value.name, isinstance(value, E.GlobalVar)])
            elif kind is _FUNCTIONS:
                row.append({key.name: self._index[id(function)] for key, function in value.items()})
            elif isinstance(value, list):
                row.append([item.name for item in value])
            else:
                row.append(None if value is None else value.name)
        return row

    def _type(self, kind: T.Type) -> dict[str, Any]:
        row: dict[str, Any] = {"type_kind": type(kind).__name__}
        for name in kind.__struct_fields__:
            value = getattr(kind, name)
            if value is not None:
                row[name] = self._type_field(value)
        return row

    def _type_field(self, value: Any) -> Any:
        if isinstance(value, (T.TensorView, T.TileView)):
            return {name: self._type_field(getattr(value, name)) for name in value.__struct_fields__}
        if isinstance(value, (T.Type, IRNode)):
            return self._index[id(value)]
        if isinstance(value, tuple):
            return [self._type_field(item) for item in value]
        if isinstance(value, DataType):
            return value.code()
        return value.name if isinstance(value, Enum) else value

    def _value(self, value: Any) -> Any:
        """An attribute value: plain ones as they are, others as ``[tag, ...]``."""
        if isinstance(value, Enum):
            return ["e", type(value).__name__, value.name]
        if value is None or isinstance(value, (bool, int, float, str)):
            return value
        if isinstance(value, DataType):
            return ["d", value.code()]
        if isinstance(value, (T.Type, IRNode)):
            return ["n", self._index[id(value)]]
        if isinstance(value, (list, tuple)):
            return ["l", [self._value(item) for item in value]]
        if isinstance(value, dict):
            return ["m", {key: self._value(item) for key, item in value.items()}]
        raise TypeError(f"an attribute value of class {type(value).__name__} cannot be serialised")


def _span_fields(span: Span) -> Iterator[Any]:
    return (getattr(span, name) for name in span.__struct_fields__)


def _children(item: Any) -> list[Any]:
    """Nodes and types that an object refers to directly."""
    found: list[Any] = []
    if isinstance(item, T.Type):
        for name in item.__struct_fields__:
            _collect(getattr(item, name), found)
        return found
    for name, kind in SCHEMAS[type(item)]:
        value = getattr(item, name)
        if kind is _EXPR or kind is _TYPE or kind is _STMT:
            if value is not None:
                found.append(value)
        elif kind in _LISTS:
            found.extend(value)
        elif kind is _ATTRS or kind is _MIXED:
            if value:
                _collect(value, found)
        elif kind is _FUNCTIONS:
            found.extend(value.values())
    return found


def _collect(value: Any, found: list[Any]) -> None:
    if isinstance(value, (T.Type, IRNode)):
        found.append(value)
    elif isinstance(value, (T.TensorView, T.TileView)):
        for name in value.__struct_fields__:
            _collect(getattr(value, name), found)
    elif isinstance(value, (list, tuple)):
        for item in value:
            _collect(item, found)
    elif isinstance(value, dict):
        for item in value.values():
            _collect(item, found)


# -- reading --------------------------------------------------------------------------------------------------------


def deserialize(data: bytes) -> IRNode:
    """The node that :func:`serialize` wrote. Nothing but IR objects is ever built from the bytes.

    Raises:
        SerializationError: (a ValueError and a RuntimeError) the bytes are no document of this version, or damaged.
        TypeError: a node class that does not exist.
        InternalError: a map that lacks its parts.
    """
    try:
        document = msgspec.msgpack.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, MemoryError, OverflowError) as error:
        raise SerializationError(f"not a serialised IR node: {error}") from None
    if not isinstance(document, dict):
        raise SerializationError("not a serialised IR node: the document is no map")
    if document.get("format") != FORMAT:
        if isinstance(document.get("type"), str) and document["type"] not in _BY_NAME:
            raise TypeError(f"Unknown IR node type in deserialization: {document['type']}")
        raise InternalError("a serialised IR node needs its format, nodes and root")
    if document.get("version") != VERSION:
        raise SerializationError(f"serialised IR of version {document.get('version')!r}, this build reads {VERSION}")
    return _Reader(document).root()


class _Reader:
    def __init__(self, document: dict[str, Any]):
        self._document = document
        self._objects: list[Any] = []
        self._spans: list[Span] = []

    def root(self) -> IRNode:
        rows, spans, root = (self._document.get(key) for key in ("nodes", "spans", "root"))
        if not isinstance(rows, list) or not isinstance(spans, list):
            raise SerializationError("damaged serialised IR: no table of nodes")
        self._spans = [self._span(fields) for fields in spans]
        for number, row in enumerate(rows):
            try:
                self._objects.append(self._object(row))
            except (
                TypeError,
                ValueError,
                KeyError,
                AttributeError,
                IndexError,
                RecursionError,
                InternalError,
            ) as error:
                if isinstance(error, _UnknownNodeError):
                    raise TypeError(str(error)) from None
                raise SerializationError(f"damaged serialised IR: row {number}: {error}") from None
        return self._ref(root, IRNode)

    def _object(self, row: Any) -> Any:
        if isinstance(row, dict):
            return self._type(row)
        if not isinstance(row, list) or len(row) < 2:
            raise SerializationError("a row is neither a node nor a type")
        cls = _BY_NAME.get(row[0]) if isinstance(row[0], str) else None
        if cls is None:
            raise _UnknownNodeError(f"Unknown IR node type in deserialization: {row[0]}")
        schema = SCHEMAS[cls]
        if len(row) - 2 > len(schema):
            raise SerializationError(f"{cls.__name__} has {len(row) - 2} fields, expected at most {len(schema)}")
        span = self._spans[_natural(row[1])]
        fields = {name: self._field(kind, value) for (name, kind), value in zip(schema, row[2:])}
        if issubclass(cls, E.Var):
            fields["unique_id"] = E._next_id()
        return StructMeta.__call__(cls, span=span, **fields)

    def _field(self, kind: Any, value: Any) -> Any:
        if kind is _EXPR or kind is _STMT or kind is _TYPE:
            return None if value is None else self._ref(value, _REFERENCES[kind])
        if kind in _LISTS:
            items = [self._ref(item, _REFERENCES[kind]) for item in value]
            return items if kind is _TYPES else tuple(items)
        if kind is _VALUE:
            return value
        if kind is _DTYPE:
            return DataType.from_code(value)
        if kind is _ATTRS:
            return {_text(key): self._value(item) for key, item in value.items()}
        if kind is _MIXED:
            return tuple(self._value(item) for item in value)
        if kind is _OP:
            name, is_global = value
            return (E.GlobalVar if is_global else E.Op)(_text(name))
        if kind is _FUNCTIONS:
            return {E.GlobalVar(_text(key)): self._ref(item, Function) for key, item in value.items()}
        if isinstance(value, list):
            return [kind[name] for name in value]
        return None if value is None else kind[value]

    def _type(self, row: dict[str, Any]) -> T.Type:
        name = row.pop("type_kind", None)
        cls = _TYPES_BY_NAME.get(name) if isinstance(name, str) else None
        if cls is None:
            raise _UnknownNodeError(f"Unknown IR type in deserialization: {name}")
        if not cls.__struct_fields__:
            return cls.get()
        fields = {key: self._type_field(cls, key, value) for key, value in row.items() if key in cls.__struct_fields__}
        if cls is T.ScalarType:
            return T.scalar_type(fields["dtype"])
        return cls(**fields)

    def _type_field(self, cls: type, name: str, value: Any) -> Any:
        if name in ("tensor_view", "tile_view"):
            return self._view(T.TensorView if name == "tensor_view" else T.TileView, value)
        if name == "dtype":
            return DataType.from_code(value)
        if name in ("memory_space", "space"):
            return enums.MemorySpace[value]
        if cls is T.BufferType or name == "slot_count":
            return tuple(value) if isinstance(value, list) else value
        if name == "types":
            return tuple(self._ref(item, T.Type) for item in value)
        if name == "buffer_type":
            return self._ref(value, T.BufferType)
        wanted = {"memref": MemRef, "window_buffer": WindowBuffer}.get(name, E.Expr)
        return tuple(self._ref(item, wanted) for item in value) if isinstance(value, list) else self._ref(value, wanted)

    def _view(self, cls: type, row: dict[str, Any]) -> Any:
        readers: dict[str, Callable[[Any], Any]] = {
            "layout": enums.TensorLayout.__getitem__, "blayout": enums.TileLayout.__getitem__,
            "slayout": enums.TileLayout.__getitem__, "pad": enums.PadValue.__getitem__,
            "compact": enums.CompactMode.__getitem__, "fractal": _natural,
        }  # fmt: skip
        fields = {}
        for name, value in row.items():
            if name not in cls.__struct_fields__ or value is None:
                continue
            if name in readers:
                fields[name] = readers[name](value)
            elif isinstance(value, list):
                fields[name] = tuple(self._ref(item, E.Expr) for item in value)
            else:
                fields[name] = self._ref(value, E.Expr)
        return cls(**fields)

    def _value(self, value: Any) -> Any:
        if not isinstance(value, list):
            return value
        match value:
            case ["e", str(name), str(member)]:
                return _ENUMS_BY_NAME[name][member]
            case ["d", int(code)]:
                return DataType.from_code(code)
            case ["n", int(index)]:
                return self._ref(index, (IRNode, T.Type))
            case ["l", list(items)]:
                return [self._value(item) for item in items]
            case ["m", dict(items)]:
                return {_text(key): self._value(item) for key, item in items.items()}
        raise SerializationError("an attribute value of an unknown form")

    def _ref(self, index: Any, wanted: Any) -> Any:
        number = _natural(index)
        if number >= len(self._objects):
            raise SerializationError(f"a reference to row {number}, which is not read yet")
        found = self._objects[number]
        if not isinstance(found, wanted):
            raise SerializationError(f"row {number} is a {type(found).__name__}, which does not fit here")
        return found

    @staticmethod
    def _span(fields: Any) -> Span:
        match fields:
            case [str(name), int(line), int(column), int(end_line), int(end_column)]:
                span = Span(name, line, column, end_line, end_column)
                return UNKNOWN_SPAN if span == UNKNOWN_SPAN else span
        raise SerializationError("damaged serialised IR: a span of an unknown form")


class _UnknownNodeError(TypeError):
    pass


def _natural(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise SerializationError(f"expected a row number, got {value!r}")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise SerializationError(f"expected a name, got {value!r}")
    return value


# -- files ----------------------------------------------------------------------------------------------------------


def serialize_to_file(node: IRNode, path: str | os.PathLike) -> None:
    """Write :func:`serialize` of ``node``; ValueError when the file cannot be written."""
    data = serialize(node)
    try:
        with open(path, "wb") as file:
            file.write(data)
    except OSError as error:
        raise ValueError(f"Failed to open file for writing: {os.fspath(path)} ({error.strerror})") from None


def deserialize_from_file(path: str | os.PathLike) -> IRNode:
    """Read :func:`deserialize` of a file; ValueError when the file cannot be read."""
    try:
        with open(path, "rb") as file:
            data = file.read()
    except OSError as error:
        raise ValueError(f"Failed to open file for reading: {os.fspath(path)} ({error.strerror})") from None
    return deserialize(data)
