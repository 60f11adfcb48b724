"""The optional slots of tensor and tile annotations: layouts, views, memory spaces."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from pypto.ir.dtype import DataType
from pypto.ir.enums import CompactMode, MemorySpace, PadValue, TensorLayout, TileLayout
from pypto.ir.expr import Var
from pypto.ir.memref import MemRef
from pypto.ir.types import TensorView, TileView, implicit_layout, scalar_type

if TYPE_CHECKING:
    from pypto.language.parser.type_resolver import TypeResolver

_TILE_VIEW_KEYS = ("valid_shape", "stride", "start_offset", "blayout", "slayout", "fractal", "pad", "compact")
_TENSOR_VIEW_KEYS = ("stride", "layout", "valid_shape", "pad")


def _leaf(node: ast.expr) -> str | None:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else None


class ViewResolver:
    """Resolves the slots after shape and dtype for a :class:`TypeResolver`."""

    def __init__(self, types: TypeResolver):
        self.types = types

    def tensor_slot(self, node: ast.expr) -> TensorView | MemRef | None:
        """Third slot of a tensor: a layout, a view, or a memory descriptor."""
        if isinstance(node, ast.Call) and _leaf(node.func) == "TensorView":
            return self._tensor_view(node)
        if self.types.memrefs.is_memref(node):
            return self.types.resolve_memref(node)
        name = _leaf(node)
        if name not in TensorLayout.__members__:
            found, value = self.types.evaluator.try_eval_expr(node)
            if found and isinstance(value, TensorView):
                return value
        layout = self.types.enum_member(node, TensorLayout, "layout", hide=("DN",))
        if layout is TensorLayout.DN:
            raise self.types.fail(
                f"pl.Tensor[..., {ast.unparse(node)}] is not supported: a layout-only DN annotation would give the "
                "tensor two coordinate systems, its logical one and the row-major one of the caller",
                node,
                hint="Write the row-major shape and use a_trans=/b_trans= or pl.transpose at the use, or a full "
                "pl.TensorView(stride=[...], layout=pl.TensorLayout.DN)",
            )
        return TensorView(layout=layout)

    def _tensor_view(self, node: ast.Call) -> TensorView:
        keys = self._keywords(node, "TensorView", _TENSOR_VIEW_KEYS)
        values: dict[str, Any] = {}
        for name in ("stride", "valid_shape"):
            if name in keys:
                values[name] = self._dims(keys[name])
        if "layout" in keys:
            values["layout"] = self.types.enum_member(keys["layout"], TensorLayout, "layout")
        if "pad" in keys:
            values["pad"] = self.types.enum_member(keys["pad"], PadValue, "pad value")
        try:
            return TensorView(**values)
        except ValueError as error:
            raise self.types.fail(str(error), node, hint="Add layout=pl.TensorLayout.ND") from error

    def tile_slots(self, nodes: list[ast.expr]) -> tuple[MemorySpace | None, MemRef | None, ast.expr | None]:
        """(memory space, memref, view expression) of a tile, written in any order."""
        space = memref = view = None
        for node in nodes:
            name = _leaf(node)
            if isinstance(node, ast.Call) and _leaf(node.func) == "TileView":
                view = self._once(view, node, "pl.TileView")
            elif self.types.memrefs.is_memref(node):
                memref = self._once(memref, self.types.resolve_memref(node), "pl.MemRef", node)
            elif self._memory_space(node) is not None:
                space = self._once(space, self._memory_space(node), "memory space", node)
            elif name in TensorLayout.__members__:
                raise self.types.fail(
                    f"pl.Tile does not accept layouts like pl.{name}",
                    node,
                    hint="Use pl.TileView(blayout=..., slayout=...) or leave the view out",
                )
            elif isinstance(self._closure(node), TileView):
                view = self._once(view, node, "pl.TileView")
            else:
                raise self.types.fail(
                    f"Unsupported argument of pl.Tile[...]: {ast.unparse(node)}",
                    node,
                    hint="After shape and dtype come at most a pl.MemRef, a memory space and a pl.TileView",
                )
        return space, memref, view

    def tile_view(self, node: ast.expr | None, shape: list, space: MemorySpace | None) -> TileView | None:
        """The view; fields that are not written take the implicit values of shape and space."""
        if node is None:
            return None
        if not isinstance(node, ast.Call):
            return self._closure(node)
        keys = self._keywords(node, "TileView", _TILE_VIEW_KEYS)
        blayout, slayout, fractal = implicit_layout(shape, space)
        values: dict[str, Any] = {"blayout": blayout, "slayout": slayout, "fractal": fractal}
        for name in ("valid_shape", "stride"):
            if name in keys:
                values[name] = self._dims(keys[name])
        if "start_offset" in keys:
            values["start_offset"] = self.types.parse_dim(keys["start_offset"])
        for name in ("blayout", "slayout"):
            if name in keys:
                values[name] = self.types.enum_member(keys[name], TileLayout, "tile layout")
        if "fractal" in keys:
            values["fractal"] = self.types.evaluator.eval_expr(keys["fractal"])
        if "pad" in keys:
            values["pad"] = self.types.enum_member(keys["pad"], PadValue, "pad value")
        if "compact" in keys:
            values["compact"] = self.types.enum_member(keys["compact"], CompactMode, "compact mode")
        return TileView(**values)

    def _dims(self, node: ast.expr) -> list:
        if self.types.standalone and isinstance(node, (ast.List, ast.Tuple)):
            return self.types._build_dims([self._standalone_dim(element) for element in node.elts])
        return self.types._build_dims(self.types._parse_shape(node))

    def _standalone_dim(self, node: ast.expr) -> Any:
        """An extent of a printed view that is read without its function: its symbols have no declaration."""
        if isinstance(node, ast.Name) and node.id not in self.types.evaluator.closure_vars:
            return self.types.param_symbols.setdefault(node.id, Var(node.id, scalar_type(DataType.INDEX)))
        return self.types.parse_dim(node)

    def _keywords(self, node: ast.Call, name: str, known: tuple[str, ...]) -> dict[str, ast.expr]:
        if node.args:
            raise self.types.fail(f"pl.{name}(...) does not accept positional arguments in an annotation", node)
        for keyword in node.keywords:
            if keyword.arg not in known:
                raise self.types.fail(
                    f"Unknown {name} keyword '{keyword.arg}'", node, hint=f"Keywords: {', '.join(known)}"
                )
        return {k.arg or "": k.value for k in node.keywords}

    def _memory_space(self, node: ast.expr) -> MemorySpace | None:
        if isinstance(node, ast.Attribute) and _leaf(node.value) in ("Mem", "MemorySpace"):
            return self.types.enum_member(node, MemorySpace, "memory space")
        value = self._closure(node)
        return value if isinstance(value, MemorySpace) else None

    def _closure(self, node: ast.expr) -> Any:
        if not isinstance(node, (ast.Name, ast.Attribute)):
            return None
        found, value = self.types.evaluator.try_eval_expr(node)
        return value if found else None

    def _once(self, old: Any, new: Any, what: str, node: ast.AST | None = None) -> Any:
        if old is not None:
            raise self.types.fail(f"pl.Tile[...] got more than one {what}", node or new)
        return new
