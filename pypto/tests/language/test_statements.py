"""Statements: binding and rebinding, jumps, comments, inline templates, parse-time directives."""

from __future__ import annotations

import pypto.language as pl
import pytest
from language_support import body, rejected, round_trip, statements
from pypto.language.parser.diagnostics import (
    InvalidOperationError,
    ParserError,
    ParserSyntaxError,
    ParserTypeError,
    UnsupportedFeatureError,
)

from pypto import ir


def test_rebinding_with_the_same_type_uses_one_variable():
    first, second, _ = statements(body("y = pl.add(x, x)\ny = pl.mul(y, y)\nreturn y"))
    assert first.var is second.var


def test_rebinding_with_another_type_names_both():
    error = rejected(ParserTypeError, "Cannot reassign 'y'", "y = x[0:32, :]\ny = pl.add(x, x)")
    assert "[32, 64]" in error.message
    assert "[64, 64]" in error.message


@pytest.mark.parametrize(
    ("error", "message", "text"),
    [
        (UnsupportedFeatureError, "Unsupported statement type: AugAssign", "x += x"),
        (UnsupportedFeatureError, "Unsupported statement type: Import", "import os"),
        (UnsupportedFeatureError, "Unsupported statement type: FunctionDef", "def g(): pass"),
        (UnsupportedFeatureError, "Unsupported statement type: Try", "try:\n    y = x\nfinally:\n    y = x"),
        (UnsupportedFeatureError, "without a value", "y: pl.Tensor[[64, 64], pl.FP32]"),
        (ParserSyntaxError, "Unsupported assignment", "a = b = x"),
        (ParserSyntaxError, "Unsupported assignment", "x.y = x"),
        (ParserSyntaxError, "Cannot unpack", "a, b = x"),
        (UnsupportedFeatureError, "Unsupported context manager", "with open('f'):\n    y = x"),
        (ParserSyntaxError, "Only single context manager", "with pl.cluster(), pl.cluster():\n    y = x"),
        (ParserSyntaxError, "only allowed in a loop", "y = pl.yield_(x)"),
    ],
)
def test_refused_statements(error, message, text):
    rejected(error, message, text)


def test_loop_names_stay_visible_and_carry_implicitly():
    f = body("for i in pl.range(4):\n    y = pl.add(x, 1.0)\n    x = pl.mul(y, y)\nreturn y")
    loop, returned = statements(f)
    assert loop.iter_args == ()
    assert returned.value[0] is ir.flatten_to_stmts(loop.body)[0].var
    assert ir.flatten_to_stmts(loop.body)[1].var is f.params[0]


def test_carried_values_get_the_name_of_the_yield():
    f = body("for i, (a,) in pl.range(4, init_values=(x,)):\n    b = pl.add(a, 1.0)\n    r = pl.yield_(b)\nreturn r")
    loop, returned = statements(f)
    assert loop.iter_args[0].initValue is f.params[0]
    assert loop.return_vars[0].name_hint == "r"
    assert returned.value[0] is loop.return_vars[0]
    round_trip(f)


@pytest.mark.parametrize(
    ("error", "message", "text"),
    [
        (ParserSyntaxError, "Mismatch: 2 iter_args but 1 init_values",
         "for i, (a, b) in pl.range(4, init_values=(x,)):\n    r = pl.yield_(a)"),
        (ParserSyntaxError, "requires an assignment-form",
         "for i, (a,) in pl.range(4, init_values=(x,)):\n    pl.yield_(a)"),
        (ParserSyntaxError, "must be a tuple when init_values", "for i in pl.range(4, init_values=(x,)):\n    pass"),
        (ParserSyntaxError, "must use pl.range", "for i in range(4):\n    pass"),
        (ParserSyntaxError, "1 to 3 positional", "for i in pl.range():\n    pass"),
        (ParserSyntaxError, "requires stage=", "for i in pl.pipeline(4):\n    pass"),
        (ParserSyntaxError, "stage must be >= 1", "for i in pl.pipeline(4, stage=0):\n    pass"),
        (ParserSyntaxError, "only supported on pl.pipeline", "for i in pl.range(4, stage=2):\n    pass"),
        (ParserSyntaxError, "Unknown keyword argument 'chunk'", "for i in pl.range(4, chunk=2):\n    pass"),
        (ParserSyntaxError, "compile-time constant", "n = pl.tensor.dim(x, 0)\nfor i in pl.unroll(n):\n    pass"),
        (ParserSyntaxError, "step must not be 0", "for i in pl.unroll(0, 4, 0):\n    pass"),
        (InvalidOperationError, "'break' not supported in parallel loops", "for i in pl.parallel(4):\n    break"),
        (InvalidOperationError, "'continue' not supported in unrolled", "for i in pl.unroll(4):\n    continue"),
        (ParserSyntaxError, "First statement in pl.while_", "for (a,) in pl.while_(init_values=(0,)):\n    b = a"),
        (ParserSyntaxError, "requires init_values", "for a in pl.while_():\n    pl.cond(True)"),
        (ParserTypeError, "if condition must be a Bool-typed", "if 1:\n    y = x"),
        (ParserTypeError, "while condition must be a Bool-typed", "while x[0, 0]:\n    y = x"),
    ],
)  # fmt: skip
def test_refused_control_flow(error, message, text):
    rejected(error, message, text)


def test_loop_kinds():
    f = body(
        "for a in pl.range(2, 8, 2):\n    pass\nfor b in pl.parallel(3):\n    pass\n"
        "for c in pl.unroll(3):\n    pass\nfor d in pl.pipeline(8, stage=2):\n    break"
    )
    loops = statements(f)
    assert [loop.kind.name for loop in loops] == ["Sequential", "Parallel", "Unroll", "Pipeline"]
    assert [loops[0].start.value, loops[0].stop.value, loops[0].step.value] == [2, 8, 2]
    assert loops[3].attrs == {"pipeline_stages": 2}
    round_trip(f)


def test_branches_with_and_without_yields():
    f = body(
        "if n > 0:\n    y = pl.add(x, 1.0)\nelse:\n    y = pl.add(x, 2.0)\n"
        "if n > 1:\n    z = pl.yield_(y)\nelif n > 2:\n    z = pl.yield_(x)\nelse:\n    z = pl.yield_(x)\nreturn z",
        params="x: pl.Tensor[[64, 64], pl.FP32], n: pl.Scalar[pl.INDEX]",
    )
    plain, yielding, returned = statements(f)
    assert plain.then_body.var is plain.else_body.var
    assert returned.value[0] is yielding.return_vars[0]
    assert isinstance(ir.flatten_to_stmts(yielding.else_body)[0], ir.IfStmt)


def test_while_in_both_forms():
    f = body(
        "i: pl.Scalar[pl.INT64] = 0\nwhile i < n:\n    i = i + 1\n"
        "for (k, a) in pl.while_(init_values=(0, x)):\n"
        "    pl.cond(k < 3)\n    k2, r = pl.yield_(k + 1, pl.add(a, 1.0))\n"
        "return r",
        params="x: pl.Tensor[[64, 64], pl.FP32], n: pl.Scalar[pl.INT64]",
    )
    natural, carried = statements(f)[1:3]
    assert natural.iter_args == ()
    assert len(carried.iter_args) == len(carried.return_vars) == 2
    assert carried.condition.left is carried.iter_args[0]


# -- comments ----------------------------------------------------------------------------------------------------


def test_comments_lead_their_statement():
    f = body(
        '"""Doc."""\n# first\ny = pl.add(x, x)  # same line\n# loop\nfor i in pl.range(4):  # head\n    z = y\nreturn y'
    )
    assign, loop, returned = statements(f)
    assert assign.leading_comments == ["Doc.", "first", "same line"]
    assert loop.leading_comments == ["loop", "head"]
    assert returned.leading_comments == []


def test_comment_at_the_end_of_a_block_is_reported():
    with pytest.warns(UserWarning, match="tail-of-block comment.*'lost'"):
        body("for i in pl.range(4):\n    y = x\n    # lost\nreturn x")


# -- templates ---------------------------------------------------------------------------------------------------

OFFSET = 5.0


@pl.inline
def shifted(t):
    moved = pl.add(t, OFFSET)
    return moved  # noqa: RET504


@pl.inline
def nothing(t):
    u = pl.add(t, t)  # noqa: F841


def test_templates_expand_independently():
    @pl.function
    def f(x: pl.Tensor[[8], pl.FP32]):
        a = shifted(x)
        b = shifted(shifted(a))
        nothing(b)
        return b

    calls = [s for s in statements(f) if isinstance(s, ir.AssignStmt) and isinstance(s.value, ir.Call)]
    first, inner, outer, unused = (s.var for s in calls)
    assert first is outer, "their values are named at once, so one variable serves both"
    assert len({id(v) for v in (first, inner, unused)}) == 3
    assert outer is not inner and calls[2].value.args[0] is inner
    assert calls[0].value.args[1].value == 5.0
    round_trip(f)


def test_values_of_templates_that_are_used_together_are_two_variables():
    @pl.function
    def f(x: pl.Tensor[[8], pl.FP32]):
        a = pl.mul(shifted(x), shifted(x))
        for _ in pl.range(2):
            a = shifted(a)
        b = shifted(a)
        return pl.exp(b)

    product = next(s.value for s in statements(f) if isinstance(s, ir.AssignStmt) and s.value.op.name == "tensor.mul")
    assert product.args[0] is not product.args[1]
    loop = next(s for s in statements(f) if isinstance(s, ir.ForStmt))
    inside = ir.collect_def_vars(loop.body)
    moved = [s.var for s in statements(f) if isinstance(s, ir.AssignStmt) and s.var.name_hint == "moved"]
    assert all(v is not moved[-1] for v in inside), "blocks do not share variables"


def test_template_misuse():
    with pytest.raises(ParserTypeError, match=r"Inline function 'shifted' expects 1 argument\(s\), got 2"):

        @pl.function
        def f(x: pl.Tensor[[8], pl.FP32]):
            return shifted(x, x)

    with pytest.raises(ParserTypeError, match="has no return value"):

        @pl.function
        def g(x: pl.Tensor[[8], pl.FP32]):
            return nothing(x)

    with pytest.raises(RuntimeError, match="is a template"):
        shifted(1)


# -- directives --------------------------------------------------------------------------------------------------


def test_static_print_shows_values_and_types(capsys):
    body('pl.static_print("v", x, 42, f"<{x}>")')
    out = capsys.readouterr().out
    assert out.startswith("static_print [<string>:3]: v x: pl.Tensor[[64, 64], pl.FP32] 42: pl.Scalar[pl.INDEX] <x: ")


def test_static_assert():
    size = 8

    @pl.function
    def fine(x: pl.Tensor[[8], pl.FP32]):
        pl.static_assert(size == 8, "never shown")
        return x

    assert len(statements(fine)) == 1
    with pytest.raises(ParserError, match="static_assert failed: too small"):

        @pl.function
        def f(x: pl.Tensor[[8], pl.FP32]):
            pl.static_assert(size > 100, "too small")
            return x

    rejected(ParserError, "must be compile-time evaluable", "pl.static_assert(x[0, 0] > 1.0)")


def test_constructs_outside_a_body():
    with pytest.raises(RuntimeError, match="cannot be called directly"):
        pl.submit(None)
    assert pl.no_dep(3) == 3
    assert pl.const(2, pl.INT32) == 2
    assert pl.cond(True) is None
    assert [i.dtype for i in pl.range(3)] == [pl.INDEX]
