"""What the strides and the layout tag of a tensor view mean, and which views are canonical."""

from __future__ import annotations

from collections.abc import Sequence

from pypto.errors import user_error
from pypto.ir.dtype import DataType
from pypto.ir.enums import TensorLayout
from pypto.ir.expr import ConstInt, Expr, Mul
from pypto.ir.types import TensorView, dims

DYNAMIC = -1


def _product(a: Expr, b: Expr) -> Expr:
    if type(a) is ConstInt and type(b) is ConstInt:
        return ConstInt(a.value * b.value, DataType.INDEX, a.span)
    if type(a) is ConstInt and a.value == 1:
        return b
    if type(b) is ConstInt and b.value == 1:
        return a
    return Mul(a, b, DataType.INDEX, a.span)


def build_logical_strides_from_layout(shape: Sequence[Expr | int], layout: TensorLayout) -> list[Expr]:
    """Packed strides in elements; ``[]`` for rank 0.

    ND is row-major. DN keeps the two innermost dimensions column-major and the outer ones row-major.

    Raises:
        ValueError: a layout without flat strides (NZ), or DN with a rank below 2.
    """
    shape = dims(shape)
    rank = len(shape)
    if layout not in (TensorLayout.ND, TensorLayout.DN):
        raise user_error(f"layout {layout.name} has no flat strides (NZ layouts belong to tiles)")
    if rank == 0:
        return []
    one = ConstInt(1, DataType.INDEX)
    strides: list[Expr] = [one] * rank
    if layout is TensorLayout.ND:
        first = rank - 2
    else:
        if rank < 2:
            raise user_error(f"layout DN needs rank >= 2, got {rank}")
        strides[-1] = shape[-2]
        if rank > 2:
            strides[-3] = _product(shape[-2], shape[-1])
        first = rank - 4
    for axis in range(first, -1, -1):
        strides[axis] = _product(strides[axis + 1], shape[axis + 1])
    return strides


def check_canonical_view(
    shape: Sequence[Expr | int], stride: Sequence[Expr | int], layout: TensorLayout, relaxed_symbolic: bool = True
) -> tuple[bool, str]:
    """Whether ``stride`` is packed for ``layout``, or wider as in a sub-view.

    Args:
        shape: extents.
        stride: element steps.
        layout: the tag to check against.
        relaxed_symbolic: accept relations between symbolic values that cannot be decided.

    Returns:
        ``(True, "")``, or False with the reason.
    """
    shape, stride = dims(shape), dims(stride)
    rank = len(shape)
    if layout not in (TensorLayout.ND, TensorLayout.DN):
        return False, f"layout {layout.name}: NZ layouts have no canonical tensor strides"
    if rank == 0 and not stride:
        return True, ""
    if not stride:
        return False, "stride is empty: it must be spelled out"
    if len(stride) != rank:
        return False, f"stride has rank {len(stride)}, the shape has rank {rank}"
    if layout is TensorLayout.ND:
        if not _is_one(stride[-1]):
            return False, "ND needs innermost stride 1"
        return _check_outer(shape, stride, rank - 2, relaxed_symbolic)
    if rank < 2:
        return False, f"DN needs rank >= 2, got {rank}"
    if not _is_one(stride[-2]):
        return False, "DN needs stride[-2] == 1"
    known = _less(stride[-1], shape[-2])
    if known:
        return False, "DN needs stride[-1] >= shape[-2]"
    if known is None and not relaxed_symbolic:
        return False, "DN: stride[-1] against shape[-2] is symbolic"
    if rank > 2:
        known = _less(stride[-3], _product(stride[-1], shape[-1]))
        if known:
            return False, f"stride[{rank - 3}] is smaller than packed"
        if known is None and not relaxed_symbolic:
            return False, f"stride[{rank - 3}] is symbolic"
    return _check_outer(shape, stride, rank - 4, relaxed_symbolic)


def _check_outer(shape: Sequence[Expr], stride: Sequence[Expr], first: int, relaxed: bool) -> tuple[bool, str]:
    for axis in range(first, -1, -1):
        known = _less(stride[axis], _product(stride[axis + 1], shape[axis + 1]))
        if known:
            return False, f"stride[{axis}] is smaller than packed"
        if known is None and not relaxed:
            return False, f"stride[{axis}] is symbolic"
    return True, ""


def _is_one(expr: Expr) -> bool:
    return type(expr) is ConstInt and expr.value == 1


def _less(a: Expr, b: Expr) -> bool | None:
    """``a < b``; None when it is not decided by constants."""
    return a.value < b.value if type(a) is ConstInt and type(b) is ConstInt else None


def is_canonical_view(
    shape: Sequence[Expr | int], stride: Sequence[Expr | int], layout: TensorLayout, relaxed_symbolic: bool = True
) -> bool:
    """The answer of :func:`check_canonical_view` without the reason."""
    return check_canonical_view(shape, stride, layout, relaxed_symbolic)[0]


def derive_layout_from_strides(shape: Sequence[Expr | int], stride: Sequence[Expr | int]) -> TensorLayout | None:
    """ND or DN, whichever the strides are canonical for (ND first); None for neither and for rank 0."""
    if not shape or len(shape) != len(stride):
        return None
    for layout in (TensorLayout.ND, TensorLayout.DN):
        if is_canonical_view(shape, stride, layout):
            return layout
    return None


def canonicalize_view(shape: Sequence[Expr | int], layout: TensorLayout) -> TensorView:
    """The packed view of a shape; ValueError as in :func:`build_logical_strides_from_layout`."""
    return TensorView(build_logical_strides_from_layout(shape, layout), layout)


def compute_shape_product(shape: Sequence[Expr | int]) -> int:
    """Number of elements, -1 when an extent is dynamic."""
    product = 1
    for dim in dims(shape):
        if type(dim) is not ConstInt or dim.value < 0:
            return DYNAMIC
        product *= dim.value
    return product
