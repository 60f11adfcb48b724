"""Structural equality, its explanation, and the hash that agrees with it.

Variables are compared through a bijection. A defining field (``DEFS``) always extends it, any other field only when
auto-mapping is on; otherwise an unmapped variable is equal to itself alone. An object is equal to itself, and a
variable met on both sides is mapped to itself, so ``x + y`` is not ``x + x``. Both walks keep their own stack: the
depth of an expression is limited by memory only.

Two things do not count: the placement of a value (the MemRef of its type; ``shares_memref_with`` asks that question),
and which of INDEX and INT64 an integer constant or a loop variable has.
"""

from __future__ import annotations

from enum import Enum
from typing import Any, NamedTuple

from pypto.errors import user_error
from pypto.ir import expr as E
from pypto.ir.dtype import DataType
from pypto.ir.memref import MemRef, WindowBuffer
from pypto.ir.node import IRNode, Node, NodeTuple
from pypto.ir.program import Program
from pypto.ir.stmt import CommDomainScopeStmt, ForStmt, ScopeStmt, SeqStmts, WhileStmt
from pypto.ir.types import ArrayType, ScalarType, ShapedType, TupleType, Type

_INTERCHANGEABLE = (DataType.INDEX, DataType.INT64)
_TUPLES = (tuple, NodeTuple)
_VARS = (E.Var, E.IterArg, WindowBuffer)

# How a field is walked: with the mode of its parent, as a definition, as the loop variable, or as a scope's attrs.
_USUAL, _DEF, _LOOP_VAR, _SCOPE_ATTRS = range(4)


class _Plan(NamedTuple):
    """The compared fields of a node class, last one first because the walks push them on a stack."""

    fields: tuple[tuple[str, int, Any], ...]  # name, how, name in a path (None: the parent's path stands)


_PLANS: dict[type, _Plan] = {}


def _plan(cls: type) -> _Plan:
    plan = _PLANS.get(cls)
    if plan is None:
        names = [name for name in cls.__struct_fields__ if name not in cls.IGNORED]
        if issubclass(cls, MemRef):
            names.remove("type")
        elif issubclass(cls, ShapedType) and "memref" in names:
            names.remove("memref")
        if cls is WhileStmt:  # the condition may use the carries
            names = ["iter_args", "condition", *(n for n in names if n not in ("iter_args", "condition"))]
        fields = []
        for name in reversed(names):
            how = _DEF if name in cls.DEFS else _USUAL
            if cls is ForStmt and name == "loop_var":
                how = _LOOP_VAR
            elif cls is CommDomainScopeStmt and name == "slots":
                how = _USUAL  # two windows with equal fields are two windows
            elif name == "attrs" and issubclass(cls, ScopeStmt):
                how = _SCOPE_ATTRS
            transparent = name == "type" or cls in (SeqStmts, Program)
            fields.append((name, how, None if transparent else name))
        plan = _PLANS[cls] = _Plan(tuple(fields))
    return plan


#: Values without variables inside: the same object needs no walk.
_LEAVES: set[type] = {
    type(None), int, str, bool, DataType, ScalarType, E.ConstInt, E.ConstFloat, E.ConstBool, E.Op, E.GlobalVar,
}  # fmt: skip


class _Mismatch(NamedTuple):
    path: Any  # linked components, innermost first
    reason: str
    sides: tuple[Any, Any] | None = None


def structural_equal(lhs: Any, rhs: Any, enable_auto_mapping: bool = False) -> bool:
    """Whether two nodes or types mean the same, whatever their spans, comments and names are.

    With ``enable_auto_mapping`` free variables may be renamed consistently, else they must be the same objects.
    """
    if lhs is rhs:
        return True
    return _first_mismatch(lhs, rhs, enable_auto_mapping) is None


def assert_structural_equal(lhs: Any, rhs: Any, enable_auto_mapping: bool = False) -> None:
    """Raise ``ValueError`` naming the first difference: its path, both sides where they are nodes, and the reason."""
    if lhs is rhs:
        return
    found = _first_mismatch(lhs, rhs, enable_auto_mapping)
    if found is not None:
        raise user_error(_explain(found), condition="structural_equal(lhs, rhs)")


def _first_mismatch(lhs: Any, rhs: Any, auto: bool) -> _Mismatch | None:
    if lhs is None or rhs is None:
        return _Mismatch(None, "Node presence mismatch", (lhs, rhs))
    forward: dict[E.Var, E.Var] = {}
    backward: dict[E.Var, E.Var] = {}
    leaves = _LEAVES
    stack: list[tuple] = [(lhs, rhs, auto, None, False)]
    pop, push = stack.pop, stack.append
    while stack:
        a, b, mapping, path, is_loop_var = pop()
        cls = type(a)
        if a is b:
            if mapping and cls in _VARS and a not in forward and a not in backward:
                forward[a] = backward[a] = a
            continue
        if cls is not type(b) and not (cls in _TUPLES and type(b) in _TUPLES):
            found = _kinds_differ(a, b, path)
            if found is not None:
                return found
            continue
        if cls is NodeTuple or cls is tuple or cls is list:
            if len(a) != len(b):
                return _Mismatch(path, f"Vector size mismatch ({len(a)} items != {len(b)} items)")
            for index in range(len(a) - 1, -1, -1):
                push((a[index], b[index], mapping, (path, index), False))
            continue
        if cls is E.ConstInt:
            if a.value != b.value:
                return _Mismatch((path, "value"), f"int64_t value mismatch ({a.value} != {b.value})")
            if a.dtype != b.dtype and not (a.dtype in _INTERCHANGEABLE and b.dtype in _INTERCHANGEABLE):
                return _Mismatch(path, f"ScalarType dtype mismatch ({a.dtype} != {b.dtype})")
            continue
        if cls in _VARS:
            image = forward.get(a)
            if image is not None or b in backward:
                if image is not b:
                    return _Mismatch(path, _inconsistent(a, b, image, backward.get(b)), (a, b))
                continue
            if not mapping:
                return _Mismatch(path, "Variable pointer mismatch (without auto-mapping)", (a, b))
            forward[a] = b
            backward[b] = a
            if is_loop_var and _both_counters(a.type, b.type):
                continue
            for name, _, label in _plan(cls).fields:
                push((getattr(a, name), getattr(b, name), mapping, path if label is None else (path, label), False))
            continue
        if isinstance(a, Node):
            if isinstance(a, E.Op):
                if a.name != b.name:
                    return _Mismatch(path, f"Op name mismatch ('{a.name}' != '{b.name}')")
                continue
            if isinstance(a, Type):
                found = _plain_type_fields(a, b, path)
                if found is not None:
                    return found
            elif cls is Program:
                found = _push_functions(a, b, mapping, push)
                if found is not None:
                    return found
                continue
            for name, how, label in _plan(cls).fields:
                x, y = getattr(a, name), getattr(b, name)
                if x is y and type(x) in leaves:
                    continue
                where = path if label is None else (path, label)
                if how is _USUAL:
                    push((x, y, mapping, where, False))
                elif how is _SCOPE_ATTRS:
                    found = _push_map(x, y, mapping, where, push, "task_id_var")
                    if found is not None:
                        return found
                else:
                    push((x, y, True, where, how is _LOOP_VAR))
            continue
        if cls is dict:
            found = _push_map(a, b, mapping, path, push)
            if found is not None:
                return found
        elif a != b:
            return _plain(a, b, path)
    return None


def _kinds_differ(a: Any, b: Any, path: Any) -> _Mismatch | None:
    """The mismatch of two values of different classes, or None when they only differ in representation."""
    if a is None or b is None:
        nodes = isinstance(a, IRNode) or isinstance(b, IRNode)
        return _Mismatch(path, "Optional field presence mismatch", (a, b) if nodes else None)
    if isinstance(a, E.Op) and isinstance(b, E.Op):
        return None if a.name == b.name else _Mismatch(path, f"Op name mismatch ('{a.name}' != '{b.name}')")
    if isinstance(a, Type) and isinstance(b, Type):
        return _Mismatch(path, f"Type name mismatch ({type(a).__name__} != {type(b).__name__})", (a, b))
    if isinstance(a, Node) or isinstance(b, Node):
        return _Mismatch(path, f"Node type mismatch ({type(a).__name__} != {type(b).__name__})", (a, b))
    if isinstance(a, int) and isinstance(b, int) and not isinstance(a, bool) and not isinstance(b, bool) and a == b:
        return None  # an int and an IntEnum member
    return _Mismatch(path, f"value mismatch ({a!r} != {b!r}: {type(a).__name__} != {type(b).__name__})")


def _both_counters(a: Type, b: Type) -> bool:
    return (
        type(a) is ScalarType and type(b) is ScalarType and a.dtype in _INTERCHANGEABLE and b.dtype in _INTERCHANGEABLE
    )


def _inconsistent(a: E.Var, b: E.Var, image: E.Var | None, origin: E.Var | None) -> str:
    if image is not None:
        return f"Variable mapping inconsistent ('{a.name_hint}' is mapped to '{image.name_hint}', not '{b.name_hint}')"
    return f"Variable mapping inconsistent ('{b.name_hint}' is the image of '{origin.name_hint}', not '{a.name_hint}')"


def _plain_type_fields(a: Type, b: Type, path: Any) -> _Mismatch | None:
    """Differences of a type that are reported with the name of the type."""
    name = type(a).__name__
    if isinstance(a, (ScalarType, ShapedType)) and a.dtype != b.dtype:
        return _Mismatch(path, f"{name} dtype mismatch ({a.dtype} != {b.dtype})")
    if isinstance(a, ShapedType) and not isinstance(a, ArrayType) and len(a.shape) != len(b.shape):
        return _Mismatch(path, f"{name} shape rank mismatch ({len(a.shape)} != {len(b.shape)})")
    if isinstance(a, TupleType) and len(a.types) != len(b.types):
        return _Mismatch(path, f"TupleType size mismatch ({len(a.types)} != {len(b.types)})")
    return None


def _push_functions(a: Program, b: Program, mapping: bool, push: Any) -> _Mismatch | None:
    if len(a.functions) != len(b.functions):
        return _Mismatch(None, f"Map size mismatch ({len(a.functions)} items != {len(b.functions)} items)")
    pairs = list(zip(a.functions.items(), b.functions.items()))
    for (key, _), (other, _) in pairs:
        if key.name != other.name:
            return _Mismatch(None, f"Map key mismatch ('{key.name}' != '{other.name}')")
    for (key, function), (_, other) in reversed(pairs):
        push((function, other, mapping, (None, f"['{key.name}']"), False))
    return None


def _push_map(a: dict, b: dict, mapping: bool, path: Any, push: Any, definition: str = "") -> _Mismatch | None:
    if len(a) != len(b):
        return _Mismatch(path, f"Kwargs size mismatch ({len(a)} != {len(b)})")
    for key in sorted(a, reverse=True):
        if key not in b:
            return _Mismatch(path, f"Kwargs key mismatch ('{key}' is missing on the right-hand side)")
        push((a[key], b[key], mapping or key == definition, (path, f"['{key}']"), False))
    return None


def _plain(a: Any, b: Any, path: Any) -> _Mismatch:
    if isinstance(a, Enum):
        return _Mismatch(path, f"{type(a).__name__} mismatch ({a.name} != {b.name})")
    if isinstance(a, DataType):
        return _Mismatch(path, f"ScalarType dtype mismatch ({a} != {b})")
    kind = {int: "int64_t", float: "double", bool: "bool", str: "string"}.get(type(a), type(a).__name__)
    return _Mismatch(path, f"{kind} value mismatch ({a!r} != {b!r})")


# -- explanation --------------------------------------------------------------------------------------------------


def _path_text(path: Any) -> str:
    parts = []
    while path is not None:
        path, part = path
        parts.append(part)
    text = ""
    for part in reversed(parts):
        if isinstance(part, int):
            text += f"[{part}]"
        elif part.startswith("["):
            text += part
        else:
            text += f".{part}" if text else part
    return text


def _explain(found: _Mismatch) -> str:
    where = _path_text(found.path)
    lines = ["Structural equality assertion failed" + (f" at: {where}" if where else "")]
    if found.sides is not None:
        for title, side in zip(("Left-hand side:", "Right-hand side:"), found.sides):
            lines += ["", title, *(f"  {line}" for line in _side_text(side).splitlines())]
    lines += ["", f"Reason: {found.reason}"]
    return "\n".join(lines)


def _side_text(side: Any) -> str:
    if side is None:
        return "(null)"
    if isinstance(side, Node):
        from pypto.ir.printer import python_print

        return python_print(side, format=False)
    return repr(side)


# -- hash ---------------------------------------------------------------------------------------------------------


def structural_hash(node: Any, enable_auto_mapping: bool = False) -> int:
    """A hash that is equal for structurally equal nodes or types of one mode; stable within a process.

    The one exception: two loops that share the object of their body and redefine one loop's variable in it. They are
    equal, because a shared object is, although the variable means another thing on each side.
    """
    if type(node) is ScalarType:
        return hash(node)
    numbers: dict[E.Var, int] = {}
    tokens: list[Any] = []
    emit = tokens.append
    stack: list[tuple] = [(node, enable_auto_mapping, _USUAL)]
    pop, push = stack.pop, stack.append
    while stack:
        value, mapping, how = pop()
        cls = type(value)
        if cls is E.ConstInt:
            emit(value.value)
            emit(DataType.INDEX if value.dtype in _INTERCHANGEABLE else value.dtype)
        elif cls is NodeTuple or cls is tuple or cls is list:
            emit(len(value))
            for item in reversed(value):
                push((item, mapping, how))
        elif cls in _VARS:
            number = numbers.get(value)
            if number is not None:
                emit(number)
            elif not mapping:
                emit(value.unique_id)
            else:
                numbers[value] = len(numbers)
                emit(cls)
                if how is _LOOP_VAR and _both_counters(value.type, value.type):
                    continue
                for name, _, _ in _plan(cls).fields:
                    push((getattr(value, name), mapping, _USUAL))
        elif isinstance(value, Node):
            if isinstance(value, E.Op):
                emit(value.name)
                continue
            emit(cls)
            if cls is Program:
                for key, function in reversed(value.functions.items()):
                    push((function, mapping, _USUAL))
                    push((key, mapping, _USUAL))
                continue
            for name, role, _ in _plan(cls).fields:
                child = getattr(value, name)
                if role is _SCOPE_ATTRS:
                    _push_hash_map(child, mapping, push, "task_id_var")
                else:
                    push((child, mapping or role is not _USUAL, role))
        elif cls is dict:
            _push_hash_map(value, mapping, push)
        else:
            emit(value)
    return hash(tuple(tokens))


def _push_hash_map(value: dict, mapping: bool, push: Any, definition: str = "") -> None:
    for key in sorted(value, reverse=True):
        defines = key == definition
        push((value[key], mapping or defines, _DEF if defines else _USUAL))
        push((key, mapping, _USUAL))
