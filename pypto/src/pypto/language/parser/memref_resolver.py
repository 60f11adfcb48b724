"""``pl.MemRef`` in annotations: regions of allocations, and declarations of new ones."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from pypto.ir.dtype import DataType
from pypto.ir.enums import MemorySpace
from pypto.ir.expr import ConstInt, Expr, Var, const_index
from pypto.ir.memref import MemRef
from pypto.ir.types import PtrType

if TYPE_CHECKING:
    from pypto.language.parser.type_resolver import TypeResolver


def _leaf(node: ast.expr) -> str | None:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else None


class MemRefResolver:
    """Allocations of one function: one pointer per name, one descriptor per region."""

    def __init__(self, types: TypeResolver):
        self.types = types
        self.pointers: dict[str, Var] = {}
        self.regions: dict[tuple, MemRef] = {}
        self.declared: dict[str, MemRef] = {}
        self.names: dict[int, str] = {}

    def is_memref(self, node: ast.expr) -> bool:
        """Is this expression a memory descriptor?"""
        if isinstance(node, ast.Subscript):
            return self.is_memref(node.value)
        if isinstance(node, ast.Call):
            return _leaf(node.func) == "MemRef"
        return isinstance(node, ast.Name) and isinstance(self._closure(node), MemRef)

    def resolve(self, node: ast.expr) -> MemRef:
        """The descriptor; ParserTypeError when it is malformed."""
        if isinstance(node, ast.Subscript):
            return self._slot(self.resolve(node.value), node.slice)
        if isinstance(node, ast.Name):
            return self._declared_name(node)
        if not isinstance(node, ast.Call):
            raise self.types.fail(f"'{ast.unparse(node)}' is not a pl.MemRef", node)
        args, keywords = node.args, {k.arg or "": k.value for k in node.keywords}
        unknown = set(keywords) - {"slots"}
        if unknown or (keywords and len(args) not in (0, 1, 3)):
            raise self.types.fail(f"pl.MemRef got unexpected keyword arguments {sorted(unknown or keywords)}", node)
        match len(args):
            case 0 | 1:
                return self._declaration(node, args, keywords)
            case 3 if isinstance(args[0], ast.Constant) and isinstance(args[0].value, int):
                return self._legacy(node, None, args)
            case 3:
                return self._region(args, self._int(keywords["slots"], "slots") if keywords else 1)
            case 4:
                space = self.types.enum_member(args[0], MemorySpace, "memory space")
                return self._legacy(node, space, args[1:])
        raise self.types.fail("pl.MemRef takes a name, or a base, a byte offset and a size", node)

    def _region(self, args: list[ast.expr], slots: int = 1) -> MemRef:
        base = self._pointer(args[0])
        offset = self._offset(args[1])
        size = self._int(args[2], "size")
        place = (offset.value, offset.dtype) if isinstance(offset, ConstInt) else id(offset)
        key = (id(base), place, size, slots)
        if key not in self.regions:
            self.regions[key] = MemRef(base, offset, size, slots=slots)
        return self.regions[key]

    def _pointer(self, node: ast.expr) -> Var:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            return self._named_pointer(node.value)
        if isinstance(node, ast.Name):
            value = self.types.scope_lookup(node.id)
            if isinstance(value, Var):
                return value
            return self._named_pointer(node.id)
        raise self.types.fail(f"The base of a pl.MemRef must be a name, got {ast.unparse(node)}", node)

    def _named_pointer(self, name: str) -> Var:
        if name not in self.pointers:
            self.pointers[name] = Var(name, PtrType.get())
        return self.pointers[name]

    def _legacy(self, node: ast.Call, space: MemorySpace | None, args: list[ast.expr]) -> MemRef:
        address, size, number = (self._int(a, what) for a, what in zip(args, ("address", "size", "id")))
        key = ("legacy", space, address, size, number)
        if key not in self.regions:
            if space is None:
                self.regions[key] = MemRef(address, size, number)
            else:
                self.regions[key] = MemRef(space, ConstInt(address, DataType.INT64), size, number)
        return self.regions[key]

    def _declaration(self, node: ast.Call, args: list[ast.expr], keywords: dict[str, ast.expr]) -> MemRef:
        if not args:
            raise self.types.fail(
                "An inline pl.MemRef() needs a name", node, hint='Write pl.MemRef("name"), or declare it outside'
            )
        name = args[0].value if isinstance(args[0], ast.Constant) else None
        if not isinstance(name, str):
            raise self.types.fail("The name of a pl.MemRef must be a string literal", node)
        slots = self._int(keywords["slots"], "slots") if "slots" in keywords else 1
        if slots < 1:
            raise self.types.fail("pl.MemRef slots must be a positive integer", node)
        known = self.declared.get(name)
        if known is None:
            known = self.declared[name] = MemRef(name, slots=slots)
        elif known.slot_count_ != slots or name in self.names.values():
            raise self.types.fail(f"Two pl.MemRef declarations both resolve to the name '{name}'", node)
        return known

    def _declared_name(self, node: ast.Name) -> MemRef:
        declaration = self._closure(node)
        name = declaration.name_hint or node.id
        earlier = self.names.setdefault(id(declaration), name if declaration.name_hint else node.id)
        if earlier != name:
            raise self.types.fail(
                f"The pl.MemRef declaration '{name}' is also referenced as '{earlier}'", node,
                hint="Use one name for one allocation",
            )  # fmt: skip
        known = self.declared.get(name)
        if known is None:
            known = MemRef(name, slots=declaration.slot_count_)
            self.declared[name] = known
            self.declared[f"#{name}"] = declaration
        elif self.declared.get(f"#{name}") is not declaration:
            raise self.types.fail(f"Two pl.MemRef declarations both resolve to the name '{name}'", node)
        return known

    def _slot(self, memref: MemRef, node: ast.expr) -> MemRef:
        if memref.slot_count_ == 1:
            raise self.types.fail(
                "A pl.MemRef with a single slot cannot be subscripted", node, hint="Declare it with slots=N (N > 1)"
            )
        index = self.types.parse_dim(node)
        index = index.value if isinstance(index, ConstInt) else index
        key = ("slot", id(memref), index if isinstance(index, int) else id(index))
        if key not in self.regions:
            if isinstance(index, int) and not 0 <= index < memref.slot_count_:
                raise self.types.fail(
                    f"Slot {index} is out of range for a pl.MemRef with {memref.slot_count_} slots", node
                )
            slot = const_index(index) if isinstance(index, int) else index
            self.regions[key] = MemRef(
                memref.base_, memref.byte_offset_, memref.size_, is_pinned=memref.is_pinned_,
                slots=memref.slot_count_, slot=slot,
            )  # fmt: skip
        return self.regions[key]

    def _offset(self, node: ast.expr) -> Expr:
        if isinstance(node, ast.Call) and _leaf(node.func) == "const" and len(node.args) == 2:
            return ConstInt(self._int(node.args[0], "byte offset"), self.types.resolve_dtype(node.args[1]))
        found, value = self.types.evaluator.try_eval_expr(node)
        if found and isinstance(value, int):
            return const_index(value)
        if self.types.parse_expression is None:
            raise self.types.fail(f"Cannot resolve byte offset '{ast.unparse(node)}'", node)
        return self.types.parse_expression(node)

    def _int(self, node: ast.expr, what: str) -> int:
        value = self.types.evaluator.eval_expr(node)
        if not isinstance(value, int) or isinstance(value, bool):
            raise self.types.fail(f"The {what} of a pl.MemRef must be an integer", node)
        return value

    def _closure(self, node: ast.Name) -> Any:
        return self.types.evaluator.closure_vars.get(node.id)
