"""Base of every IR object: frozen structs, overloaded constructors, field classes.

A node class is a frozen ``msgspec.Struct``: construction is one C call and assigning an attribute raises
``AttributeError``. Two class attributes say what its fields mean to comparison, hashing, serialisation and
traversal: ``DEFS`` (fields that bind variables) and ``IGNORED`` (never compared); every other field is compared.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import msgspec
from msgspec.structs import force_setattr

StructMeta = type(msgspec.Struct)


class OverloadedMeta(StructMeta):
    """Lets a node class accept the public constructor forms through a ``_normalize`` static method.

    ``_normalize(*args, **kwargs)`` returns the tuple of field values. ``make(cls, *fields)`` builds directly.
    """

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        return StructMeta.__call__(cls, *cls._normalize(*args, **kwargs))


def make(cls: type, *fields: Any) -> Any:
    """Build a node of an overloaded class from its field values in declaration order, skipping the public forms."""
    return StructMeta.__call__(cls, *fields)


class NodeTuple(tuple):
    """A stored sequence: immutable and hashable like a tuple, and equal to a list of equal elements.

    The public contract calls these fields lists, and visitors of users ask ``isinstance(value, list)`` before they
    descend: a stored sequence answers yes to both ``list`` and ``tuple``.
    """

    __slots__ = ()

    @property
    def __class__(self) -> type:  # type: ignore[override]
        return list

    def __reduce__(self) -> tuple:
        return NodeTuple, (tuple(self),)

    def __eq__(self, other: object) -> bool:
        return tuple.__eq__(self, tuple(other) if type(other) is list else other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = tuple.__hash__

    def __add__(self, other: Any) -> NodeTuple:
        return NodeTuple(tuple.__add__(self, tuple(other))) if isinstance(other, (list, tuple)) else NotImplemented

    def __radd__(self, other: Any) -> Any:
        return type(other)((*other, *self)) if isinstance(other, (list, tuple)) else NotImplemented


class Node(msgspec.Struct, frozen=True, eq=False, gc=False):
    """Base of types, expressions, statements, functions and programs."""

    DEFS: ClassVar[tuple[str, ...]] = ()
    IGNORED: ClassVar[tuple[str, ...]] = ("span", "leading_comments")

    def as_python(self, prefix: str = "pl", concise: bool = False, format: bool = True) -> str:
        """The text of this node in the tile language."""
        from pypto.ir.printer import python_print

        return python_print(self, prefix=prefix, concise=concise, format=format)

    def __str__(self) -> str:
        return self.as_python()

    def __repr__(self) -> str:
        return f"<ir.{type(self).__name__}>"

    def same_as(self, other: object) -> bool:
        """Identity."""
        return self is other


class IRNode(Node):
    """Base of expressions, statements, functions and programs: the objects with a source span."""


def freeze(node: Node, field: str, convert: Callable[[Any], Any] = NodeTuple) -> None:
    """In ``__post_init__``: store ``convert(value)`` for a field that was given in another form."""
    force_setattr(node, field, convert(getattr(node, field)))


def replace(node: Any, **changes: Any) -> Any:
    """A copy of ``node`` with some fields changed (fields by their stored names); a copied Var gets a new id."""
    fields = {
        n: changes.pop(n) if n in changes else getattr(node, n) for n in node.__struct_fields__ if n != "unique_id"
    }
    if changes:
        raise TypeError(f"{type(node).__name__} has no field {', '.join(changes)}")
    return StructMeta.__call__(type(node), **fields)
