"""Subscripts: element reads, windows of tensors and tiles, tuple and array elements, window writes."""

from __future__ import annotations

import ast
import warnings
from dataclasses import dataclass

from pypto.ir import scalar_ops
from pypto.ir.expr import ConstInt, Expr, TupleGetItemExpr, const_index
from pypto.ir.types import ArrayType, ScalarType, TensorType, TileType, TupleType, same_dims
from pypto.language.parser.base import ParserBase
from pypto.language.parser.diagnostics import ParserSyntaxError, ParserTypeError
from pypto.language.parser.extents import difference
from pypto.language.parser.type_consistency import kind_name


@dataclass
class Axis:
    """One subscript: ``index`` for a scalar, ``lower``/``upper`` for a slice (None = omitted)."""

    node: ast.expr | None
    index: Expr | None = None
    lower: Expr | None = None
    upper: Expr | None = None


class SubscriptsMixin(ParserBase):
    """Parses subscript expressions and subscript assignments."""

    def parse_subscript(self, node: ast.Subscript) -> Expr:
        """``t[0]``, ``arr[i]``, ``A[i, j]``, ``A[0:16, :]``."""
        from pypto.language.parser.names import MISSING

        outer = self.closure_value(node)
        if outer is not MISSING:
            return self.value_to_expr(outer, node)
        base = self.parse_expression(node.value)
        kind = base.type
        if isinstance(kind, TupleType):
            return self._tuple_element(base, kind, node)
        if isinstance(kind, ArrayType):
            index = self.parse_expression(node.slice)
            return self.call_public("pl.array.get_element", [base, index], {}, node)
        if not isinstance(kind, (TensorType, TileType)):
            raise self.fail(
                ParserTypeError, f"Subscript requires Tuple, Tensor, Tile, or Array, got {kind_name(kind)}", node
            )
        axes = self._axes(node, kind)
        if all(a.index is not None for a in axes):
            where = "tensor" if isinstance(kind, TensorType) else "tile"
            return self.call_public(f"pl.{where}.read", [base, [a.index for a in axes]], {}, node)
        if isinstance(kind, TensorType):
            return self._tensor_window(base, kind, axes, node)
        return self._tile_window(base, kind, axes, node)

    def _tuple_element(self, base: Expr, kind: TupleType, node: ast.Subscript) -> Expr:
        found, index = self.evaluator.try_eval_expr(node.slice)
        if not found or not isinstance(index, int) or isinstance(index, bool):
            raise self.fail(ParserTypeError, "A tuple index must be a constant integer", node.slice)
        position = index + len(kind.types) if index < 0 else index
        if not 0 <= position < len(kind.types):
            raise self.fail(
                ParserSyntaxError,
                f"TupleGetItemExpr index {index} out of bounds for tuple with {len(kind.types)} elements",
                node,
            )
        return TupleGetItemExpr(base, position, self.span(node))

    def _axes(self, node: ast.Subscript, kind: TensorType | TileType) -> list[Axis]:
        nodes = list(node.slice.elts) if isinstance(node.slice, ast.Tuple) else [node.slice]
        what = "tensor" if isinstance(kind, TensorType) else "tile"
        rank = len(kind.shape)
        if len(nodes) > rank:
            raise self.fail(
                ParserTypeError, f"{what.capitalize()} subscript has {len(nodes)} indices but the {what} is {rank}D",
                node, hint=f"Use at most {rank} indices",
            )  # fmt: skip
        axes = [self._axis(n, what) for n in nodes]
        for position, (axis, extent) in enumerate(zip(axes, kind.shape)):
            if isinstance(axis.index, ConstInt) and isinstance(extent, ConstInt) and axis.index.value >= extent.value:
                raise self.fail(
                    ParserTypeError,
                    f"Index {axis.index.value} is out of range for axis {position} of a {what} with "
                    f"{extent.value} element(s)",
                    axis.node,
                )
            if axis.index is not None and not isinstance(axis.index.type, ScalarType):
                raise self.fail(
                    ParserSyntaxError,
                    f"{what.capitalize()} subscript index element {position} must be ScalarType, got "
                    f"{type(axis.index.type).__name__}",
                    axis.node,
                )
        return axes + [Axis(None) for _ in range(rank - len(axes))]

    def _axis(self, node: ast.expr, what: str) -> Axis:
        if isinstance(node, ast.Slice):
            if node.step is not None:
                raise self.unsupported(f"Slice step is not supported in {what} subscript", node.step)
            lower = None if node.lower is None else self._index(node.lower)
            upper = None if node.upper is None else self._index(node.upper)
            return Axis(node, None, lower, upper)
        return Axis(node, self._index(node))

    def _index(self, node: ast.expr) -> Expr:
        value = self.parse_expression(node)
        if isinstance(value.type, ScalarType) and not value.type.dtype.is_int():
            raise self.fail(ParserTypeError, f"A subscript must be an integer, got {value.type.dtype}", node)
        if isinstance(value, ConstInt) and value.value < 0:
            raise self.fail(
                ParserTypeError, "Subscript index must be non-negative", node,
                hint="Count from the begin; negative indices are not supported",
            )  # fmt: skip
        return value

    # -- reads ---------------------------------------------------------------------------------------------------

    def _tensor_window(self, base: Expr, kind: TensorType, axes: list[Axis], node: ast.Subscript) -> Expr:
        shape: list[Expr] = []
        offset: list[Expr] = []
        for axis, extent in zip(axes, kind.shape):
            size, start = self._window(axis, extent, node)
            if isinstance(size, ConstInt) and size.value <= 0 and axis.node is not None:
                raise self.unsupported(
                    "The slice is empty: its upper bound must lie above the lower one", axis.node,
                    hint="Write x[begin:end] with end > begin",
                )  # fmt: skip
            shape.append(size)
            offset.append(start)
        dropped = [k for k, a in enumerate(axes) if a.index is not None]
        args = [base, shape, offset, *([[], dropped] if dropped else [])]
        return self.call_public("pl.tensor.slice", args, {}, node)

    def _window(self, axis: Axis, extent: Expr, node: ast.AST) -> tuple[Expr, Expr]:
        """(size, start) of one axis."""
        if axis.index is not None:
            return const_index(1), axis.index
        start = axis.lower if axis.lower is not None else const_index(0)
        stop = axis.upper if axis.upper is not None else extent
        return difference(stop, start, self.span(node)), start

    def _tile_window(self, base: Expr, kind: TileType, axes: list[Axis], node: ast.Subscript) -> Expr:
        shape: list[Expr] = []
        offset: list[Expr] = []
        valid: list[Expr] = []
        narrowed = not same_dims(kind.valid_shape, kind.shape)
        for axis, extent, live in zip(axes, kind.shape, kind.valid_shape):
            size, start, bound = self._tile_axis(axis, extent, node)
            narrowed = narrowed or bound is not None
            shape.append(size)
            offset.append(start)
            valid.append(self._valid_extent(size, start, bound, extent, live, node))
        dropped = [k for k, a in enumerate(axes) if a.index is not None]
        rank = len(axes) - len(dropped)
        if rank < 2:
            warnings.warn(
                f"tile subscript '{ast.unparse(node)}' gives a {rank}D result, auto-promoting to 2D shape",
                UserWarning,
                stacklevel=2,
            )
        args: list = [base, shape, offset]
        if narrowed or dropped:
            args.append(valid if narrowed else [])
        if dropped:
            args.append(dropped)
        return self.call_public("pl.tile.slice", args, {}, node)

    def _tile_axis(self, axis: Axis, extent: Expr, node: ast.AST) -> tuple[Expr, Expr, Expr | None]:
        """(static size, start, runtime upper bound or None) of one axis of a tile."""
        if axis.index is not None:
            return const_index(1), axis.index, None
        start = axis.lower if axis.lower is not None else const_index(0)
        if axis.lower is not None and not isinstance(start, ConstInt):
            if axis.upper is not None:
                size = difference(axis.upper, start, self.span(node))
                if isinstance(size, ConstInt) and size.value > 0:
                    return size, start, None
            raise self.unsupported(
                "Dynamic lower bounds are not supported in a tile slice", axis.node,
                hint="Use pl.tile.slice(t, shape, offsets) with a static shape",
            )  # fmt: skip
        if not isinstance(extent, ConstInt):
            return difference(axis.upper if axis.upper is not None else extent, start, self.span(node)), start, None
        first = start.value if isinstance(start, ConstInt) else 0
        stop, bound = extent.value, None
        if isinstance(axis.upper, ConstInt):
            stop = min(axis.upper.value, extent.value)
        elif axis.upper is not None:
            bound = axis.upper
        if stop - first <= 0:
            raise self.unsupported("A tile slice needs a positive static extent", axis.node)
        return const_index(stop - first), start, bound

    def _valid_extent(
        self, size: Expr, start: Expr, bound: Expr | None, extent: Expr, live: Expr, node: ast.AST
    ) -> Expr:
        """How much of a window of ``size`` from ``start`` holds data."""
        span = self.span(node)
        whole = isinstance(start, ConstInt) and start.value == 0
        if bound is not None:
            data = difference(bound, start, span)
            limited = scalar_ops.min_(data, size, span)
            return scalar_ops.max_(limited, const_index(0), span) if not whole else limited
        if live is extent or (
            isinstance(live, ConstInt) and isinstance(extent, ConstInt) and live.value == extent.value
        ):
            return size
        if whole and isinstance(size, ConstInt) and isinstance(extent, ConstInt) and size.value == extent.value:
            return live
        data = difference(live, start, span)
        if isinstance(data, ConstInt) and isinstance(size, ConstInt):
            return const_index(max(0, min(data.value, size.value)))
        limited = scalar_ops.min_(data, size, span)
        return limited if whole else scalar_ops.max_(limited, const_index(0), span)

    # -- writes --------------------------------------------------------------------------------------------------

    def parse_subscript_write(self, target: ast.Subscript, value: Expr, node: ast.stmt) -> None:
        """``dst[window] = src`` rebinds ``dst`` to the assembled value; ``arr[i] = v`` to the updated array."""
        if not isinstance(target.value, ast.Name):
            raise self.unsupported(
                "The target of a subscript write must be a plain name", target, hint="Write one window per statement"
            )
        dst = self.parse_expression(target.value)
        name = target.value.id
        if self.strict_ssa:
            raise self.unsupported(
                "A subscript write rebinds its target and is only supported before SSA conversion", target,
                hint="Drop strict_ssa=True or use pl.assemble with a new name",
            )  # fmt: skip
        if isinstance(dst.type, ArrayType):
            index = self.parse_expression(target.slice)
            result = self.call_public("pl.array.update_element", [dst, index, value], {}, node)
        elif isinstance(dst.type, (TensorType, TileType)):
            result = self._write_window(dst, target, value, node)
        else:
            raise self.fail(
                ParserTypeError, f"Subscript write requires a Tensor, Tile or Array, got {kind_name(dst.type)}", target
            )
        self.bind_name(name, result, None, node, in_place=True)

    def _write_window(self, dst: Expr, target: ast.Subscript, value: Expr, node: ast.stmt) -> Expr:
        kind = dst.type
        where = "tensor" if isinstance(kind, TensorType) else "tile"
        axes = self._axes(target, kind)
        if isinstance(value.type, ScalarType):
            raise self.unsupported(
                "Element-write is not supported as a subscript assignment", target,
                hint=f"Use pl.write({ast.unparse(target.value)}, [i, j], value)",
            )  # fmt: skip
        if not isinstance(value.type, TensorType if isinstance(kind, TensorType) else TileType):
            raise self.fail(
                ParserTypeError,
                f"Subscript write into a {kind_name(kind)} needs a {kind_name(kind)} value, "
                f"got {kind_name(value.type)}",
                target,
                hint="Move between memories with pl.load(tensor, ...) and pl.store(tile, offsets, tensor)",
            )
        windows = [self._window(axis, extent, target) for axis, extent in zip(axes, kind.shape)]
        sizes = [size for size, _ in windows]
        kept = [k for k, a in enumerate(axes) if a.index is None]
        source = self._source(value, sizes, kept, len(axes), where, target)
        return self.call_public(f"pl.{where}.assemble", [dst, source, [start for _, start in windows]], {}, node)

    def _source(
        self, value: Expr, sizes: list[Expr], kept: list[int], rank: int, where: str, node: ast.Subscript
    ) -> Expr:
        """The value with the rank of the target: checked against the window, unit axes inserted where needed."""
        kind = value.type
        shape, valid = list(kind.shape), list(kind.valid_shape)
        floor = 2 - len(kept) if where == "tile" and len(kept) < 2 and len(shape) == 2 else 0
        lead = floor if all(isinstance(d, ConstInt) and d.value == 1 for d in shape[:floor]) else 0
        if len(shape) - lead != len(kept):
            raise self.fail(
                ParserTypeError,
                f"Subscript-write source must be {len(kept)}D to match the window, got {len(shape)}D",
                node,
            )
        for axis, position in enumerate(kept):
            self._check_extent(axis, sizes[position], shape[axis + lead], valid[axis + lead], node)
        if len(shape) == rank:
            return value
        lifted: list[Expr] = []
        lifted_valid: list[Expr] = []
        source = iter(zip(shape[lead:], valid[lead:]))
        for position in range(rank):
            extent, live = next(source) if position in kept else (const_index(1), const_index(1))
            lifted.append(extent)
            lifted_valid.append(live)
        args: list = [value, lifted]
        if where == "tensor" and not same_dims(shape, valid):
            args.append(lifted_valid)
        return self.call_public(f"pl.{where}.reshape", args, {}, node)

    def _check_extent(self, axis: int, window: Expr, extent: Expr, valid: Expr, node: ast.AST) -> None:
        if not (isinstance(window, ConstInt) and isinstance(extent, ConstInt)):
            return
        if window.value == extent.value or not isinstance(valid, ConstInt):
            return
        if valid.value == window.value and window.value < extent.value:
            return
        raise self.fail(
            ParserTypeError,
            f"Subscript-write shape mismatch on source axis {axis}: window expects {window.value} elements, "
            f"source has {extent.value}",
            node,
        )
