"""Expressions: literals, operators, names, constants, subscripts."""

from __future__ import annotations

import warnings

import pypto.language as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from language_support import body, rejected, round_trip, statements
from pypto.language.parser.diagnostics import (
    InvalidOperationError,
    ParserSyntaxError,
    ParserTypeError,
    UndefinedVariableError,
    UnsupportedFeatureError,
)

from pypto import ir

SCALARS = "n: pl.Scalar[pl.INT64], m: pl.Scalar[pl.INT32], v: pl.Scalar[pl.FP32]"


def value_of(text, params=SCALARS):
    return statements(body(f"r = {text}", params=params))[-1].value


@pytest.mark.parametrize(
    ("text", "node"),
    [
        ("n + n", ir.Add), ("n - n", ir.Sub), ("n * n", ir.Mul), ("n / n", ir.FloatDiv), ("n // n", ir.FloorDiv),
        ("n % n", ir.FloorMod), ("n << n", ir.BitShiftLeft), ("n >> n", ir.BitShiftRight), ("n & n", ir.BitAnd),
        ("n | n", ir.BitOr), ("n ^ n", ir.BitXor), ("n ** n", ir.Pow), ("n == n", ir.Eq), ("n < n", ir.Lt),
        ("n >= n", ir.Ge), ("n < n and n > n", ir.And), ("n < n or n > n", ir.Or), ("-n", ir.Neg), ("~n", ir.BitNot),
        ("not n < n", ir.Not), ("min(n, n)", ir.Min), ("max(n, 3)", ir.Max), ("abs(n)", ir.Abs),
        ("pl.min(n, 3)", ir.Min), ("pl.cast(n, pl.FP32)", ir.Cast),
    ],
)  # fmt: skip
def test_scalar_operators(text, node):
    assert isinstance(value_of(text), node)


def test_int_literals_are_index_and_promote():
    added = value_of("m + 1")
    assert added.dtype == ir.DataType.INDEX
    assert isinstance(added.left, ir.Cast)


def test_boolean_operators_fold_to_the_left():
    value = value_of("n < 1 and n < 2 and n < 3")
    assert isinstance(value.left, ir.And)
    assert isinstance(value.right, ir.Lt)


def test_closure_arithmetic_folds_and_body_names_do_not():
    size, ratio = 8, 1.5

    @pl.function
    def f(n: pl.Scalar[pl.INDEX]):
        a = size // 2 + 1
        b = size * ratio
        c = n + size
        return a, b, c

    a, b, c, _ = statements(f)
    assert (a.value.value, b.value.value) == (5, 12.0)
    assert isinstance(c.value, ir.Add)


def test_a_local_name_hides_the_closure():
    width = 8  # noqa: F841

    @pl.function
    def f(x: pl.Tensor[[8], pl.FP32]):
        width = pl.const(3, pl.INT32)
        return width + width

    assert isinstance(statements(f)[-1].value[0], ir.Add)


@given(st.integers(-(2**40), 2**40), st.sampled_from(["INT32", "INT64", "INDEX", "UINT8"]))
def test_typed_constants_keep_value_and_dtype(value, dtype):
    constant = statements(body(f"c = pl.const({value}, pl.{dtype})"))[0].value
    assert (constant.value, constant.dtype) == (value, ir.DTYPES[dtype])


@given(
    st.recursive(
        st.sampled_from(["n", "m", "3", "(-2)", "pl.const(5, pl.INT32)"]),
        lambda inner: st.tuples(inner, st.sampled_from(["+", "-", "*", "//", "%"]), inner).map(
            lambda parts: f"({parts[0]} {parts[1]} {parts[2]})"
        ),
        max_leaves=12,
    )
)
def test_printed_index_expressions_read_back(text):
    round_trip(body(f"r = {text}", params="n: pl.Scalar[pl.INDEX], m: pl.Scalar[pl.INT64]"))


def test_none_is_the_invalid_task():
    call = value_of("None")
    assert call.op.name == "system.task_invalid"
    assert call.type == ir.ScalarType(ir.DataType.TASK_ID)


def test_arithmetic_operators_on_tensors_are_the_unified_operators():
    f = body("y = x + x\nz = y * 2.0\nw = -z")
    assert [s.value.op.name for s in statements(f)] == ["tensor.add", "tensor.muls", "tensor.neg"]


@pytest.mark.parametrize(
    ("error", "message", "text"),
    [
        (UndefinedVariableError, "Undefined variable 'missing'", "y = pl.add(x, missing)"),
        (ParserTypeError, "Unsupported constant type", "y = 'text'"),
        (ParserTypeError, "Unsupported constant type", "y = ..."),
        (UnsupportedFeatureError, "Unsupported binary operator: MatMult", "y = x @ x"),
        (UnsupportedFeatureError, "Unsupported comparison: In", "y = x in x"),
        (UnsupportedFeatureError, "Unsupported expression type: Lambda", "y = lambda: x"),
        (UnsupportedFeatureError, "Unsupported expression type: IfExp", "y = x if True else x"),
        (UnsupportedFeatureError, "Unsupported expression type: ListComp", "y = [i for i in x]"),
        (UnsupportedFeatureError, "Unsupported function call: sorted", "y = sorted(x)"),
        (UnsupportedFeatureError, "Standalone attribute access not supported: x.shape", "y = x.shape"),
        (ParserSyntaxError, "Only simple comparisons", "y = 1 < 2 < 3"),
        (ParserSyntaxError, "same numeric dtype category", "y = 1 + pl.const(1.0, pl.FP32)"),
        (ParserSyntaxError, "exactly 2 arguments", "y = pl.const(1)"),
        (ParserSyntaxError, "numeric literal", "y = pl.const(x, pl.INT32)"),
        (InvalidOperationError, "Unknown operation 'pl.fancy'", "y = pl.fancy(x)"),
        (InvalidOperationError, "Unknown pl.tile operation: fancy", "y = pl.tile.fancy(x)"),
        (InvalidOperationError, "Unknown operation 'pld.system.fancy'", "y = pld.system.fancy(x)"),
        (InvalidOperationError, "unexpected keyword argument 'speed'", "y = pl.exp(x, speed=3)"),
        (InvalidOperationError, "pl operation 'add'.*compatible shapes", "y = pl.add(x, x[0:32, :])"),
        (InvalidOperationError, "Unknown operation 'pl.cond'", "y = pl.cond(True)"),
    ],
)
def test_refused_expressions(error, message, text):
    found = rejected(error, message, text)
    assert found.span["line"] == 3


def test_a_bool_next_to_a_tensor_stays_a_bool():
    f = body("return pl.mul(x, True)")
    assert isinstance(statements(f)[-1].value[0].args[1], ir.ConstBool)
    assert "high_precision=True" in str(body("return pl.div(x, x, True)"))


@pytest.mark.parametrize("count", ["0", "4", "n"])
def test_soft_barriers_print_their_count(count):
    text = f'pl.system.syncall(mode="soft", core_type="mix", gm_workspace=ws, used_cores={count})\nreturn ws'
    f = body(text, params="ws: pl.Tensor[[16], pl.INT32], n: pl.Scalar[pl.INT32]")
    assert f"gm_workspace=ws, used_cores={count})" in str(f)
    round_trip(f)


def test_misspelt_names_get_a_suggestion():
    assert "'row_max'" in rejected(InvalidOperationError, "row_mux", "y = pl.row_mux(x)").hint
    assert "'result'" in rejected(UndefinedVariableError, "resul", "result = pl.add(x, x)\nreturn resul").hint


def test_closure_object_that_is_no_value():
    settings = object()
    with pytest.raises(ParserTypeError, match="Unsupported closure variable type: object"):

        @pl.function
        def f(x: pl.Tensor[[8], pl.FP32]):
            return pl.add(x, settings)


# -- subscripts --------------------------------------------------------------------------------------------------


def test_tensor_windows():
    f = body("a = x[0:16, :]\nb = x[1]\nc = x[1, 2]\nd = x[8:, 4:6]")
    a, b, c, d = (s.value for s in statements(f))
    assert [e.value for e in a.args[1].elements] == [16, 64]
    assert [v.value for v in b.type.shape] == [64]
    assert [e.value for e in b.args[4].elements] == [0]
    assert c.op.name == "tensor.read"
    assert [e.value for e in d.args[1].elements] == [56, 2]


def test_symbolic_bounds_cancel():
    f = body(
        "a = x[i : i + 16, 2 * i + 4 : 2 * i + 8]", params="x: pl.Tensor[[64, 64], pl.FP32], i: pl.Scalar[pl.INDEX]"
    )
    assert [e.value for e in statements(f)[0].value.args[1].elements] == [16, 4]


def test_tile_windows_keep_static_extents():
    f = body(
        "t = pl.load(x, [0, 0], [64, 64])\na = t[:, :n]\nb = t[0:8, 0:999]",
        params="x: pl.Tensor[[64, 64], pl.FP32], n: pl.Scalar[pl.INDEX]",
    )
    _, a, b = (s.value for s in statements(f))
    assert [e.value for e in a.args[1].elements] == [64, 64]
    assert isinstance(a.args[3].elements[1], ir.Min)
    assert [e.value for e in b.args[1].elements] == [8, 64]


def test_narrow_tile_result_warns():
    with pytest.warns(UserWarning, match="auto-promoting to 2D"):
        f = body("t = pl.load(x, [0, 0], [64, 64])\nr = t[3]")
    assert [d.value for d in statements(f)[1].value.type.shape] == [1, 64]


def test_window_writes_rebind_the_target():
    f = body("x[0:16, 0:32] = y\nx[:] = z", params=(
        "x: pl.Tensor[[64, 64], pl.FP32], y: pl.Tensor[[16, "
        "32], pl.FP32], z: pl.Tensor[[64, 64], pl.FP32]"))  # fmt: skip
    first, second = statements(f)
    assert first.var is f.params[0] is second.var
    assert first.value.op.name == "tensor.assemble"


def test_rank_reducing_write_lifts_the_source():
    f = body("c[i] = y", params=(
        "c: pl.Tensor[[4, 8, 16], pl.FP32], y: pl.Tensor[[8, 16], pl.FP32], i: pl.Scalar[pl.INDEX]"))  # fmt: skip
    lifted = statements(f)[0].value.args[1]
    assert lifted.op.name == "tensor.reshape"
    assert [d.value for d in lifted.type.shape] == [1, 8, 16]


@pytest.mark.parametrize(
    ("error", "message", "text"),
    [
        (ParserTypeError, "3 indices but the tensor is 2D", "y = x[0, 0, 0]"),
        (UnsupportedFeatureError, "step", "y = x[0:16:2, :]"),
        (UnsupportedFeatureError, "slice is empty", "y = x[10:5, :]"),
        (UnsupportedFeatureError, "slice is empty", "y = x[8:8]"),
        (ParserTypeError, "Index 64 is out of range for axis 0 of a tensor with 64", "y = x[64]"),
        (ParserTypeError, "Index 70 is out of range for axis 1", "y = x[0, 70]"),
        (ParserTypeError, "needs a Tensor value, got Tile", "x[:] = pl.load(x, [0, 0], [64, 64])"),
        (ParserTypeError, "non-negative", "y = x[-1]"),
        (ParserTypeError, "shape mismatch on source axis 0: window expects 16", "x[0:16, :] = x[0:8, :]"),
        (ParserTypeError, "must be 2D", "x[0:16, :] = x[0]"),
        (UnsupportedFeatureError, "Element-write", "x[0, 0] = 1.0"),
        (UnsupportedFeatureError, "Chained", "x[0][1] = x"),
        (ParserTypeError, "Subscript requires", "n = pl.const(1, pl.INT32)\ny = n[0]"),
    ],
)
def test_refused_subscripts(error, message, text):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rejected(error, message, text)


def test_tuple_elements_and_unpacking():
    @pl.program
    class P:
        @pl.function(type=pl.FunctionType.InCore)
        def k(self, x: pl.Tensor[[8], pl.FP32]) -> tuple[pl.Tensor[[8], pl.FP32], pl.Tensor[[8], pl.FP32]]:
            return x, x

        @pl.function(type=pl.FunctionType.Orchestration)
        def main(self, x: pl.Tensor[[8], pl.FP32]):
            both = self.k(x)
            second = both[1]
            a, b = self.k(second)
            return a, b

    kinds = [type(s.value) for s in statements(P["main"])[:-1]]
    assert kinds == [ir.Call, ir.TupleGetItemExpr, ir.Call, ir.TupleGetItemExpr, ir.TupleGetItemExpr]
    round_trip(P)


@pytest.mark.parametrize(("text", "name"), [("2.0 * x", "tensor.muls"), ("n + pl.cast(x, pl.INT32)", "tensor.adds")])
def test_sums_and_products_take_their_scalar_on_either_side(text, name):
    params = "x: pl.Tensor[[64, 64], pl.FP32], n: pl.Scalar[pl.INT32]"
    left, right = text.split(" ", 2)[0], text.split(" ", 2)[2]
    turned = f"{right} {text.split(' ', 2)[1]} {left}"
    f = body(f"y = {text}\nreturn y", params=params)
    assert statements(f)[-2].value.op.name == name
    ir.assert_structural_equal(f, body(f"y = {turned}\nreturn y", params=params))


def test_a_swap_goes_through_a_temporary():
    f = body("a = n + 1\nb = n + 2\na, b = b, a\nreturn a, b", params="n: pl.Scalar[pl.INDEX]")
    a, b, pair, new_a, new_b, _ = statements(f)
    assert isinstance(pair.value, ir.MakeTuple)
    assert (new_a.var, new_b.var) == (a.var, b.var) and new_a.value.tuple is pair.var
    round_trip(f)
    direct = body("a, b = n, n + 2\nreturn a, b", params="n: pl.Scalar[pl.INDEX]")
    assert [s.var.name_hint for s in statements(direct)[:-1]] == ["a", "b"]


def test_nested_tuples_are_values_but_no_results():
    f = body("(a, b), c = (n, n + 1), n\nreturn a, b, c", params="n: pl.Scalar[pl.INDEX]")
    round_trip(f)
    nested = "tuple[tuple[pl.Scalar[pl.INDEX], pl.Scalar[pl.INDEX]], pl.Scalar[pl.INDEX]]"
    rejected(ParserTypeError, "Nested tuple types", "return n", params="n: pl.Scalar[pl.INDEX]", result=nested)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("pl.create_tensor([-4, 4], pl.FP32)", "extent 0 of the result must be a non-negative integer, got -4"),
        ("pl.create_tensor([4, 2.5], pl.FP32)", r"shape 1 must be an integer scalar, but got 2\.5"),
        ("pl.slice(x, [0, 64], [0, 0])", "extent 0 of the result must be a positive integer, got 0"),
        ("pl.load(x, [0, 0], [16, 0])", "extent 1 of the result must be a positive integer, got 0"),
    ],
)
def test_impossible_extents_are_reported_at_the_call(text, message):
    error = rejected(InvalidOperationError, message, f"y = {text}\nreturn y")
    assert error.span["line"] == 3 and error.span["column"] == 9


def test_lengths_of_lists_around_the_definition_are_constants():
    sizes = [3, 5, 7]

    @pl.function
    def f(x: pl.Tensor[[64], pl.FP32]):
        pl.static_assert(len(sizes) == 3 and max(sizes) == 7)
        return sum(sizes)

    assert statements(f)[0].value[0].value == 15
