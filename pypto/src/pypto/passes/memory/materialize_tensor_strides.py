"""MaterializeTensorStrides: spell out the canonical strides of every tensor view that leaves them empty."""

from __future__ import annotations

from pypto.errors import user_error
from pypto.ir.enums import TensorLayout
from pypto.ir.expr import Expr
from pypto.ir.node import replace
from pypto.ir.program import Function, Program
from pypto.ir.types import TensorType, TupleType, Type
from pypto.ir.visitor import IRMutator
from pypto.passes.lib.scalars import mul
from pypto.passes.lib.walk import defined_vars, iter_stmts, map_functions
from pypto.passes.pass_ import program_pass
from pypto.passes.properties import IRProperty as P

_TILE_IR = (
    P.SSAForm, P.SplitIncoreOrch, P.IncoreTileOps, P.TileOps2D, P.TileMemoryInferred, P.NormalizedStmtStructure,
)  # fmt: skip


def packed_strides(shape: tuple, layout: TensorLayout) -> tuple[Expr, ...]:
    """Strides in elements of a packed tensor: row-major, with the last two axes exchanged for DN."""
    order = list(range(len(shape)))
    if layout is TensorLayout.DN:
        order[-2:] = [order[-1], order[-2]]
    strides: list[Expr] = [mul(1, 1)] * len(shape)
    step = strides[0] if shape else None
    for axis in reversed(order):
        strides[axis] = step
        step = mul(shape[axis], step)
    return tuple(strides)


def _unspelled(kind: Type) -> bool:
    if isinstance(kind, TupleType):
        return any(_unspelled(t) for t in kind.types)
    return isinstance(kind, TensorType) and kind.tensor_view is not None and not kind.tensor_view.stride


def _needs_strides(function: Function) -> bool:
    """Some definition, parameter or result has a view without strides."""
    if any(_unspelled(t) for t in (*(p.type for p in function.params), *function.return_types)):
        return True
    return any(_unspelled(var.type) for stmt in iter_stmts(function.body) for var in defined_vars(stmt))


class _Strides(IRMutator):
    def visit_type(self, kind: Type) -> Type:
        if isinstance(kind, TupleType):
            return super().visit_type(kind)
        kind = super().visit_type(kind)
        if not isinstance(kind, TensorType) or kind.tensor_view is None or kind.tensor_view.stride or not kind.shape:
            return kind
        view = kind.tensor_view
        if view.layout is TensorLayout.NZ and len(kind.shape) != 5:
            raise user_error(
                "MaterializeTensorStrides: NZ layout has no flat strides on a logical tensor; "
                "NZ tensors must be blocked to rank 5 first"
            )
        if view.layout is TensorLayout.DN and len(kind.shape) < 2:
            raise user_error("MaterializeTensorStrides: DN layout needs at least two dimensions")
        return replace(kind, tensor_view=replace(view, stride=packed_strides(kind.shape, view.layout)))


@program_pass("MaterializeTensorStrides", required=_TILE_IR, produced=(*_TILE_IR, P.TensorViewCanonical))
def materialize_tensor_strides(program: Program) -> Program:
    """Fill empty strides of explicit tensor views, in every type of the program."""
    return map_functions(program, lambda f: _Strides().visit_function(f) if _needs_strides(f) else f)
