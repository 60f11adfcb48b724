"""Decorators: what a function or program definition becomes, and which definitions are refused."""

from __future__ import annotations

import linecache
import warnings

import pypto.language as pl
import pytest
from language_support import body, rejected, round_trip, statements
from pypto.language.parser.diagnostics import (
    ParserSyntaxError,
    ParserTypeError,
    SSAViolationError,
    UndefinedVariableError,
)

from pypto import ir


def test_function_has_params_directions_and_results():
    @pl.function(type=pl.FunctionType.InCore)
    def k(
        a: pl.Tensor[[64, 32], pl.FP16], n: pl.Scalar[pl.INT32], out: pl.Out[pl.Tensor[[64, 32], pl.FP16]]
    ) -> pl.Tensor[[64, 32], pl.FP16]:
        return out

    assert [p.name_hint for p in k.params] == ["a", "n", "out"]
    assert k.param_directions == [ir.ParamDirection.In, ir.ParamDirection.In, ir.ParamDirection.Out]
    assert (k.level, k.role) == (ir.Level.CHIP_DIE, ir.Role.SubWorker)
    assert len(k.return_types) == 1


def test_scalar_operand_selects_the_scalar_operator():
    f = body("y = pl.add(x, 1.0)\nreturn y")
    call = statements(f)[0].value
    assert call.op.name == "tensor.adds"
    assert call.args[1].value == 1.0


def test_unannotated_parameter_is_located():
    with pytest.raises(ParserTypeError, match="Parameter 'x' missing type annotation") as info:

        @pl.function
        def f(x):
            return x

    assert info.value.span["filename"] == __file__
    assert info.value.source_lines[info.value.span["line"] - 1][info.value.span["column"] - 1 :].startswith("x)")


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ("x: pl.Tensor", "Incomplete type annotation: pl.Tensor"),
        ("x: pl.INT64", "Incomplete type annotation: pl.INT64"),
        ("x: dict", "Unsupported type annotation: dict"),
        ("x: pl.InOut[pl.Scalar[pl.FP32]]", "Scalar parameters cannot have InOut direction"),
        ("x: pl.Tuple[pl.Scalar[pl.FP32]]", "cannot be a tuple"),
        ("x: pl.Tensor[[8, 8.5], pl.FP32]", "must be int or pl.dynamic"),
        ("x: pl.Tensor[[8], pl.FP33]", "Unknown dtype"),
        ("x: pl.Tensor[[8, 8], pl.FP16, pl.DN]", "is not supported"),
    ],
)
def test_bad_parameter_annotations(params, message):
    rejected(ParserTypeError, message, "return x", params=params)


def test_defaults_and_keyword_parameters_are_refused():
    with pytest.raises(pl.parser.UnsupportedFeatureError, match="plain parameters"):
        pl.parse("@pl.function\ndef f(x: pl.Scalar[pl.INT32] = 1):\n    return x\n")


def test_level_that_contradicts_the_type():
    with pytest.raises(ParserTypeError, match="CHIP_DIE"):

        @pl.function(type=pl.FunctionType.InCore, level=pl.Level.HOST)
        def f(x: pl.Tensor[[8], pl.FP32]):
            return x


def test_program_collects_methods_before_bodies():
    @pl.program
    class P:
        @pl.function(type=pl.FunctionType.Orchestration)
        def main(self, x: pl.Tensor[[64], pl.FP32]) -> pl.Tensor[[64], pl.FP32]:
            return self.later(x)

        @pl.function(type=pl.FunctionType.InCore)
        def later(self, x: pl.Tensor[[64], pl.FP32]) -> pl.Tensor[[64], pl.FP32]:
            return x

    assert P.name == "P"
    call = statements(P["main"])[0].value[0]
    assert isinstance(call.type, ir.TensorType)
    round_trip(P)


def test_program_without_methods():
    with pytest.raises(ParserSyntaxError, match=r"contains no @pl.function decorated methods"):

        @pl.program
        class P:
            size = 3


def test_unknown_method_suggests_the_nearest():
    with pytest.raises(UndefinedVariableError, match="Function 'kernal' not defined in program") as info:

        @pl.program
        class P:
            @pl.function
            def kernel(self, x: pl.Tensor[[8], pl.FP32]) -> pl.Tensor[[8], pl.FP32]:
                return x

            @pl.function
            def main(self, x: pl.Tensor[[8], pl.FP32]) -> pl.Tensor[[8], pl.FP32]:
                return self.kernal(x)

    assert "kernel" in info.value.hint


def test_strict_ssa_refuses_a_second_binding_with_both_places():
    with pytest.raises(SSAViolationError, match="Variable 'y' is already defined") as info:

        @pl.function(strict_ssa=True)
        def f(x: pl.Tensor[[8], pl.FP32]):
            y = pl.add(x, 1.0)
            y = pl.add(y, 1.0)
            return y  # noqa: RET504

    assert info.value.previous_span["line"] == info.value.span["line"] - 1


def test_strict_ssa_lets_a_nested_body_set_a_name_around_it_once():
    text = "@pl.function(strict_ssa=True)\ndef f(n: pl.Scalar[pl.INDEX]):\n"
    text += "    b: pl.Scalar[pl.BOOL] = False\n    if n > 3:\n"
    f = pl.parse(text + "        b: pl.Scalar[pl.BOOL] = True\n    return b\n")
    outer, branch, _ = ir.flatten_to_stmts(f.body)
    assert branch.then_body.var is outer.var
    with pytest.raises(SSAViolationError, match="Variable 'b' is already defined"):
        pl.parse(text + "        b: pl.Scalar[pl.BOOL] = True\n        b: pl.Scalar[pl.BOOL] = False\n    return b\n")


def test_decorator_attrs_warn_and_print_as_prologue():
    with pytest.warns(DeprecationWarning, match="cannot reference parameters"):

        @pl.program
        class P:
            @pl.function(type=pl.FunctionType.InCore, attrs={"split": pl.SplitMode.UP_DOWN})
            def k(self, x: pl.Tensor[[8], pl.FP32]) -> pl.Tensor[[8], pl.FP32]:
                return x

    assert P["k"].split is ir.SplitMode.UP_DOWN
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        round_trip(P)


def test_func_attr_refers_to_a_parameter():
    f = body('pl.func_attr({"stationary": w})\nreturn w', params="x: pl.Scalar[pl.INDEX], w: pl.Scalar[pl.INDEX]")
    assert f.attrs["stationary"] is f.params[1]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('y = pl.add(x, x)\npl.func_attr({"a": 1})', "must appear before every other statement"),
        ('pl.func_attr({"a": 1})\npl.func_attr({"a": 2})', "Duplicate function attribute 'a'"),
        ('pl.func_attr(["a"])', "must be a dict literal"),
        ("pl.func_attr({1: 2})", "key must be a string literal"),
        ('pl.func_attr({"auto_scope": True})', "cannot be set with pl.func_attr"),
    ],
)
def test_misplaced_func_attr(text, message):
    rejected(ParserSyntaxError, message, text)


def test_host_callback_body_is_kept_as_text():
    @pl.program
    class P:
        @pl.function(level=pl.Level.HOST, role=pl.Role.SubWorker)
        def report(x: pl.Tensor[[4], pl.FP32]):
            import math

            print(math.pi)

        @pl.function(level=pl.Level.HOST, role=pl.Role.SubWorker)
        def abstract(x: pl.Tensor[[4], pl.FP32]): ...

    assert isinstance(P["report"].body, ir.InlineStmt)
    assert P["report"].body.body.startswith("import math")
    assert P["abstract"].requires_runtime_binding
    assert not P["report"].requires_runtime_binding
    round_trip(P)


def test_external_kernel_needs_its_file_and_an_empty_body(tmp_path):
    with pytest.raises(ValueError, match="file not found"):

        @pl.function(type=pl.FunctionType.AIV, external_source=str(tmp_path / "missing.cpp"))
        def gone(x: pl.Tensor[[8], pl.FP32]): ...

    source = tmp_path / "k.cpp"
    source.write_text("// kernel\n")

    @pl.function(type=pl.FunctionType.AIV, external_source=str(source))
    def kernel(x: pl.Tensor[[8], pl.FP32]): ...

    assert kernel.attrs["external_source"] == str(source)
    round_trip(kernel)
    with pytest.raises(ParserSyntaxError, match="must be exactly"):

        @pl.function(type=pl.FunctionType.AIV, external_source=str(source))
        def wrong(x: pl.Tensor[[8], pl.FP32]):
            return x


def test_function_in_a_factory_sees_the_values_around_it():
    def make(rows, dtype):
        @pl.function
        def f(x: pl.Tensor[[rows, 2 * rows], dtype]) -> pl.Tensor[[rows, 2 * rows], dtype]:
            return x

        return f

    small, large = make(8, pl.FP16), make(32, pl.FP32)
    assert [d.value for d in small.params[0].type.shape] == [8, 16]
    assert [d.value for d in large.params[0].type.shape] == [32, 64]
    assert large.params[0].type.dtype == pl.FP32


def returning(result, text):
    source = (
        f"import pypto.language as pl\n\n@pl.function\ndef f(x: pl.Tensor[[8], pl.FP32]) -> {result}:\n    {text}\n"
    )
    namespace: dict = {}
    filename = f"<returning {result} {text}>"
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
    exec(compile(source, filename, "exec"), namespace)
    return namespace["f"]


@pytest.mark.parametrize("text", ["return x, x", "return"])
def test_another_number_of_results_is_an_error(text):
    with pytest.raises(ParserTypeError, match=r"declares 1 result\(s\), but this statement returns") as info:
        returning("pl.Tensor[[8], pl.FP32]", text)
    assert info.value.span["line"] == 5


@pytest.mark.parametrize(
    ("result", "problem"),
    [
        ("pl.Tensor[[8], pl.FP16]", "dtype fp16"), ("pl.Tensor[[9], pl.FP32]", "shape dimension 0 = 9"),
        ("pl.Tensor[[8, 1], pl.FP32]", "rank 2"), ("pl.Scalar[pl.FP32]", "type Scalar"),
    ],
)  # fmt: skip
def test_a_result_of_another_type_than_declared_is_reported(result, problem):
    with pytest.warns(UserWarning, match=f":5:5: the result of 'f' is declared with {problem}"):
        returning(result, "return x")


@pytest.mark.parametrize("result", ["pl.Tensor[[8], pl.FP32]", "pl.Tensor[[pl.dynamic('N')], pl.FP32]"])
def test_a_result_that_fits_is_not_reported(result):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        returning(result, "return x")


def test_a_symbol_may_be_declared_inside_the_annotation():
    @pl.program
    class P:
        @pl.function
        def f(self, x: pl.Tensor[[pl.dynamic("ROWS"), 8], pl.FP32], y: pl.Tensor[[pl.dynamic("ROWS"), 8], pl.FP32]):
            return x

    x, y = P["f"].params
    assert x.type.shape[0].name_hint == y.type.shape[0].name_hint == "ROWS"
    assert x.type.shape[0] is not y.type.shape[0], "two declarations are two dimensions"
    round_trip(P)
