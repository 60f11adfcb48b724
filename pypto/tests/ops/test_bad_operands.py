"""Whatever a user passes to an operator, the answer is a call or a clear error, never a fault of ours."""

from __future__ import annotations

import inspect
import random
import warnings

import pytest
from operand_values import BF16, BOOL, FP4, FP16, INT8, INT32, INT64, UINT8, indices, scalar, tensor, tile, window
from pypto.errors import InternalError
from pypto.ir import ConstBool, ConstFloat, ConstInt, DataType, MemorySpace, PadValue, TensorLayout, TileLayout, Var
from pypto.ops import all_ops
from pypto.ops.functions import public_function
from pypto.ops.surface import UNIFIED

from pypto import ir

NUMBER = scalar()


def _viewed(name, shape, dtype, layout, stride=()):
    return Var(name, ir.TensorType(shape, dtype, None, ir.TensorView(list(stride), layout)))


TILES = [
    tile([16, 32]), tile([16, 32], FP16, valid=[8, 16]), tile([]), tile([32]), tile([2, 16, 32]), tile([16, 1]),
    tile([1, 32], BF16), tile([NUMBER, 32]), tile([16, 32], FP4), tile([16, 32], BOOL), tile([0, 0]),
    tile([16, 32], UINT8, space=MemorySpace.Acc), tile([16, 32], INT8, space=MemorySpace.Mat),
]  # fmt: skip
TENSORS = [
    tensor([16, 32]), tensor([]), tensor([32], INT32), tensor([2, 16, 32], FP16), tensor([NUMBER, NUMBER]),
    tensor([16, 32], INT64, valid=[2, 2]), window([2, 1], INT32), window([16, 32]), window([]),
    _viewed("mx", [16, 2], DataType.FP8E8M0, TensorLayout.MX_A_ZZ), _viewed("nz", [16, 16], FP16, TensorLayout.NZ),
    _viewed("dn", [16, 32], FP16, TensorLayout.DN, (1, 16)),
]  # fmt: skip
SCALARS = [
    NUMBER, scalar(DataType.FP32), scalar(BOOL), scalar(DataType.TASK_ID), ConstInt(0, DataType.INDEX),
    ConstInt(-1, INT32), ConstFloat(1.5, DataType.FP32), ConstBool(True),
]  # fmt: skip
TUPLES = [
    indices(16, 32), indices(0, 0), indices(), indices(NUMBER, 0), indices(-1, 2), indices(2, 16, 32), indices(1),
    indices(ConstFloat(1.5, DataType.FP32), 2), indices(tile([4, 4]), 1), indices(indices(1, 2)),
]  # fmt: skip
OTHERS = [
    Var("p", ir.PtrType()),
    Var("c", ir.CommCtxType()),
    Var("a", ir.ArrayType(INT32, 4)),
    Var("u", ir.UnknownType()),
]
EXPRESSIONS = [*TILES, *TENSORS, *SCALARS, *TUPLES, *OTHERS]
VALUES = [
    0, 1, -1, 2, 7, 99, True, False, 1.5, float("nan"), "mesh", "", None, INT32, UINT8, FP4, MemorySpace.Vec,
    MemorySpace.Left, PadValue.zero, PadValue.null, TileLayout.row_major, TensorLayout.DN, (1, 2), [1, 2], [1.5, 2],
    [16, 32], [0, 0], [], ["a"], [NUMBER, 0], [[1, 2], [3]], object(),
]  # fmt: skip
MATCHING = {"tile": TILES, "tensor": TENSORS, "scalar": SCALARS, "shape": TUPLES, "tuple": TUPLES, "indices": TUPLES}


def answered(call) -> None:
    """A value, or an error that is the user's."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            call()
        except (ValueError, TypeError):
            pass
        except RuntimeError as error:
            staged = isinstance(error, InternalError) and "staging tile must fit" in str(error)
            assert staged or "split_aiv" in str(error), error


@pytest.mark.parametrize("definition", [d for d in all_ops() if not d.name.startswith("test.")], ids=lambda d: d.name)
def test_rules_answer_every_operand(definition):
    draw = random.Random(definition.name)
    kinds = [p.kind.partition("|")[0] for p in definition.params]
    for _ in range(60):
        count = draw.randint(definition.min_operands, len(kinds))
        args = tuple(
            draw.choice(MATCHING.get(kind, EXPRESSIONS) if draw.random() < 0.8 else EXPRESSIONS)
            for kind in kinds[:count]
        )
        kwargs = {}
        for name, attribute in definition.attrs.items():
            fitting = [v for v in VALUES if isinstance(v, attribute.type)]
            if fitting and draw.random() < 0.7:
                kwargs[name] = draw.choice(fitting if draw.random() < 0.8 else VALUES)
        answered(lambda args=args, kwargs=kwargs: definition.deduce(args, kwargs))


FUNCTIONS = {d.name: public_function(d) for d in all_ops() if d.python_name} | {
    f"pl.{n}": f for n, f in UNIFIED.items()
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_answer_every_value(name):
    draw, function = random.Random(name), FUNCTIONS[name]
    variable = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    parameters = [
        p for p in inspect.signature(function).parameters.values() if p.name != "span" and p.kind not in variable
    ]
    for _ in range(40):
        kwargs = {
            p.name: draw.choice(EXPRESSIONS if draw.random() < 0.6 else VALUES)
            for p in parameters
            if p.default is p.empty or draw.random() < 0.4
        }
        answered(lambda kwargs=kwargs: function(**kwargs))
