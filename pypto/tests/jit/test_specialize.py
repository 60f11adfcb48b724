"""JIT entries give the program that a user would have written for these shapes and dtypes."""

# Bodies rebind a result before they return it, as users write them.
# ruff: noqa: RET504

from __future__ import annotations

import pypto.language as pl
import pytest
from pypto.ir.structural import assert_structural_equal, structural_equal
from pypto.jit.jit_parser import JITParser
from pypto.language.parser.diagnostics import ParserError, ParserSyntaxError, ParserTypeError

from pypto import ir

torch = pytest.importorskip("torch")


@pl.jit.incore
def add_tiles(a: pl.Tensor, b: pl.Tensor, out: pl.Out[pl.Tensor]):
    rows, cols = a.shape
    ta = pl.load(a, [0, 0], [rows, cols])
    tb = pl.load(b, [0, 0], [rows, cols])
    out = pl.store(pl.add(ta, tb), [0, 0], out)
    return out


@pl.jit
def add_entry(a: pl.Tensor, b: pl.Tensor, out: pl.Out[pl.Tensor]):
    out = add_tiles(a, b, out)
    return out


def zeros(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.zeros(shape, dtype=dtype)


def function(program: ir.Program, name: str) -> ir.Function:
    found = program.get_function(name)
    assert found is not None, [f.name for f in program.functions.values()]
    return found


def extents(value: ir.Expr) -> list:
    return [d.value if isinstance(d, ir.ConstInt) else d.name_hint for d in value.type.shape]


def test_equal_to_the_program_written_by_hand():
    @pl.program
    class Wanted:
        @pl.function(type=pl.FunctionType.InCore)
        def add_tiles(
            self,
            a: pl.Tensor[[32, 16], pl.FP16],
            b: pl.Tensor[[32, 16], pl.FP16],
            out: pl.Out[pl.Tensor[[32, 16], pl.FP16]],
        ) -> pl.Tensor[[32, 16], pl.FP16]:
            ta = pl.load(a, [0, 0], [32, 16])
            tb = pl.load(b, [0, 0], [32, 16])
            res = pl.store(pl.add(ta, tb), [0, 0], out)
            return res

        @pl.function(type=pl.FunctionType.Orchestration)
        def add_entry(
            self,
            a: pl.Tensor[[32, 16], pl.FP16],
            b: pl.Tensor[[32, 16], pl.FP16],
            out: pl.Out[pl.Tensor[[32, 16], pl.FP16]],
        ) -> pl.Tensor[[32, 16], pl.FP16]:
            res = self.add_tiles(a, b, out)
            return res

    x = zeros(32, 16, dtype=torch.float16)
    program = add_entry.specialize(x, x, x)
    assert_structural_equal(program, Wanted)
    assert program.name == "_jit_add_entry"


@pytest.mark.parametrize(
    ("torch_dtype", "dtype"),
    [
        (torch.float16, pl.FP16), (torch.bfloat16, pl.BF16), (torch.float32, pl.FP32), (torch.int8, pl.INT8),
        (torch.uint8, pl.UINT8), (torch.int16, pl.INT16), (torch.int32, pl.INT32), (torch.int64, pl.INT64),
        (torch.bool, pl.BOOL),
    ],
)  # fmt: skip
def test_dtypes_come_from_the_arguments(torch_dtype, dtype):
    @pl.jit
    def f(a: pl.Tensor, out: pl.Out[pl.Tensor]):
        return out

    x = zeros(4, 8, dtype=torch_dtype)
    program = f.specialize(x, x)
    assert [p.type.dtype for p in function(program, "f").params] == [dtype, dtype]
    assert extents(function(program, "f").params[0]) == [4, 8]


@pytest.mark.parametrize("dtype", [torch.float64, torch.complex64])
def test_dtypes_without_a_counterpart(dtype):
    x = zeros(4, 8, dtype=dtype)
    with pytest.raises(TypeError, match="Unsupported torch dtype"):
        add_entry.specialize(x, x, x)


def test_shape_and_dtype_are_constants():
    @pl.jit
    def f(a: pl.Tensor, out: pl.Out[pl.Tensor]):
        rows = a.shape[0]
        buf = pl.create_tensor([rows * 2, a.shape[-1]], dtype=a.dtype)
        for i in pl.range(a.shape[0] // 4):
            buf = pl.assemble(buf, a, [i, 0])
        return buf

    program = f.specialize(zeros(8, 16), zeros(8, 16))
    create, loop = ir.flatten_to_stmts(function(program, "f").body)[:2]
    assert extents(create.var) == [16, 16]
    assert create.var.type.dtype == pl.FP32
    assert loop.stop.value == 2


def test_axis_of_a_shape_must_be_known():
    @pl.jit
    def f(a: pl.Tensor, out: pl.Out[pl.Tensor]):
        n = a.shape[5]  # noqa: F841
        return out

    with pytest.raises(ParserTypeError, match="constant axis between 0 and 1"):
        f.specialize(zeros(8, 8), zeros(8, 8))


def test_rebinding_may_change_the_type():
    @pl.jit
    def f(a: pl.Tensor, out: pl.Out[pl.Tensor]):
        with pl.at(pl.Level.CORE_GROUP):
            v = pl.load(a, [0, 0], [8, 8])
            v = pl.cast(v, pl.FP16)
            v = pl.cast(v, pl.FP32)
            out = pl.store(v, [0, 0], out)
        return out

    program = f.specialize(zeros(8, 8), zeros(8, 8))
    text = ir.python_print(program)
    assert "v_v1" in text
    assert "v_v2" in text


def test_a_function_per_argument_type():
    @pl.jit
    def f(a: pl.Tensor, b: pl.Tensor, x: pl.Out[pl.Tensor], y: pl.Out[pl.Tensor]):
        x = add_tiles(a, a, x)
        y = add_tiles(b, b, y)
        x = add_tiles(a, a, x)
        return x, y

    program = f.specialize(zeros(8, 8), zeros(4, 8), zeros(8, 8), zeros(4, 8))
    assert sorted(g.name for g in program.functions.values()) == ["add_tiles", "add_tiles_1", "f"]
    assert extents(function(program, "add_tiles_1").params[0]) == [4, 8]


def test_keywords_and_defaults_of_callees():
    @pl.jit.incore
    def scale(a: pl.Tensor, out: pl.Out[pl.Tensor], factor: pl.Scalar[pl.FP32] = 2.0):
        out = pl.store(pl.mul(pl.load(a, [0, 0], [8, 8]), factor), [0, 0], out)
        return out

    @pl.jit
    def f(a: pl.Tensor, out: pl.Out[pl.Tensor]):
        out = scale(out=out, a=a)
        out = scale(a, out, factor=3.0)
        return out

    program = f.specialize(zeros(8, 8), zeros(8, 8))
    calls = [s.value for s in ir.flatten_to_stmts(function(program, "f").body) if isinstance(s, ir.AssignStmt)]
    assert [c.args[2].value for c in calls] == [2.0, 3.0]
    assert calls[0].args[0] is function(program, "f").params[0]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("scale(a)", "expects 2 argument.*missing 'out'"),
        ("scale(a, out, out)", r"expects 2 argument\(s\), got 3"),
        ("scale(a, out, a=a)", "multiple values for argument 'a'"),
    ],
)
def test_wrong_calls_of_callees(call, message):
    @pl.jit.incore
    def scale(a: pl.Tensor, out: pl.Out[pl.Tensor]):
        return out

    if call == "scale(a)":

        @pl.jit
        def f(a: pl.Tensor, out: pl.Out[pl.Tensor]):
            out = scale(a)
            return out
    elif "a=a" in call:

        @pl.jit
        def f(a: pl.Tensor, out: pl.Out[pl.Tensor]):
            out = scale(a, out, a=a)
            return out
    else:

        @pl.jit
        def f(a: pl.Tensor, out: pl.Out[pl.Tensor]):
            out = scale(a, out, out)
            return out

    with pytest.raises(ParserError, match=message) as info:
        f.specialize(zeros(8, 8), zeros(8, 8))
    assert info.value.span["filename"].endswith("test_specialize.py")


def test_recursion_is_refused():
    x = zeros(8, 8)
    with pytest.raises(ParserTypeError, match="Recursive call of 'looping'"):
        recursive_entry.specialize(x, x)


@pl.jit.inline
def looping(a: pl.Tensor, out: pl.Tensor):
    out = looping(a, out)
    return out


@pl.jit
def recursive_entry(a: pl.Tensor, out: pl.Out[pl.Tensor]):
    out = looping(a, out)
    return out


def test_results_of_inline_callees_keep_their_types():
    @pl.jit.inline
    def halves(a: pl.Tensor):
        rows, cols = a.shape
        top = pl.slice(a, [rows // 2, cols], [0, 0])
        low = pl.slice(a, [rows // 2, cols], [rows // 2, 0])
        return top, low

    @pl.jit
    def f(a: pl.Tensor, out: pl.Out[pl.Tensor]):
        top, low = halves(a)
        out = add_tiles(top, low, out)
        return out

    program = f.specialize(zeros(16, 8), zeros(8, 8))
    assert extents(function(program, "add_tiles").params[0]) == [8, 8]
    assert function(program, "halves").func_type is ir.FunctionType.Inline


def test_a_window_of_run_time_width_has_the_extent_it_is_cut_from():
    @pl.jit
    def f(a: pl.Tensor, n: pl.Tensor, out: pl.Out[pl.Tensor]):
        width = pl.tensor.read(n, [0])
        window = pl.slice(a, [8, width], [0, 0])
        out = add_tiles(window, window, out)
        return out

    program = f.specialize(zeros(8, 32), zeros(1, dtype=torch.int64), zeros(8, 32))
    assert extents(function(program, "add_tiles").params[0]) == [8, 32]


# -- scalars -----------------------------------------------------------------------------------------------------


@pl.jit.incore
def shift(a: pl.Tensor[[8, 8], pl.FP32], by: pl.Scalar[pl.FP32], out: pl.Out[pl.Tensor[[8, 8], pl.FP32]]):
    out = pl.store(pl.add(pl.load(a, [0, 0], [8, 8]), by), [0, 0], out)
    return out


@pl.jit
def shift_entry(a: pl.Tensor[[8, 8], pl.FP32], by: pl.Scalar[pl.FP32], out: pl.Out[pl.Tensor[[8, 8], pl.FP32]]):
    out = shift(a, by, out)
    return out


def test_a_number_is_folded_everywhere_and_stays_a_parameter():
    x = zeros(8, 8)
    text = ir.python_print(shift_entry.specialize(x, 7.0, x))
    assert text.count("by: pl.Scalar[pl.FP32]") == 2
    assert "shift(a, 7.0, out)" in text
    assert "adds(" in text
    assert ", by)" not in text


def test_a_run_time_scalar_is_a_parameter():
    text = ir.python_print(shift_entry.specialize(by=pl.RUNTIME))
    assert "shift(a, by, out)" in text
    assert ", by)" in text


def test_scalars_need_a_value():
    with pytest.raises(TypeError, match="scalar parameter 'by'"):
        shift_entry.specialize()
    with pytest.raises(TypeError, match="number"):
        shift_entry.specialize(by="much")
    x = zeros(8, 8)
    with pytest.raises(TypeError, match=r"pl\.RUNTIME together with sample"):
        shift_entry.specialize(x, pl.RUNTIME, x)


# -- signature mode ----------------------------------------------------------------------------------------------


def test_signature_mode_equals_sample_mode():
    x = zeros(8, 8)
    assert structural_equal(shift_entry.specialize(by=2.0), shift_entry.specialize(x, 2.0, x))


def test_signature_mode_needs_shapes():
    with pytest.raises(TypeError, match=r"cannot infer parameter 'a'.*bare 'pl\.Tensor'"):
        add_entry.specialize()


def test_signature_mode_refuses_unknown_keywords():
    with pytest.raises(TypeError, match="unexpected keyword argument 'platform'"):
        shift_entry.specialize(by=1.0, platform="a5")


# -- symbolic dimensions -----------------------------------------------------------------------------------------

ROWS = pl.dynamic("ROWS")


@pl.jit
def symbolic(a: pl.Tensor[[ROWS, 16], pl.FP32], out: pl.Out[pl.Tensor[[ROWS, 16], pl.FP32]]):
    rows = a.shape[0]
    for i in pl.range(rows):
        out = pl.assemble(out, pl.slice(a, [1, 16], [i, 0]), [i, 0])
    return out


def test_symbols_of_annotations_stay_symbols():
    program = symbolic.specialize(zeros(24, 16), zeros(24, 16))
    a, out = function(program, "symbolic").params
    assert extents(a) == ["ROWS", 16]
    assert a.type.shape[0] is out.type.shape[0]
    loop = ir.flatten_to_stmts(function(program, "symbolic").body)[0]
    assert loop.stop is a.type.shape[0]


def test_bind_dynamic_marks_a_dimension():
    @pl.jit
    def f(a: pl.Tensor, out: pl.Out[pl.Tensor]):
        n = pl.dynamic("N")
        a.bind_dynamic(0, n)
        out.bind_dynamic(0, n)
        return out

    program = f.specialize(zeros(8, 16), zeros(8, 16))
    a, out = function(program, "f").params
    assert extents(a) == ["N", 16]
    assert a.type.shape[0] is out.type.shape[0]


# -- definitions -------------------------------------------------------------------------------------------------


def test_only_entries_are_called_directly():
    with pytest.raises(TypeError, match=r"called from a @pl\.jit entry"):
        add_tiles(zeros(8, 8), zeros(8, 8), zeros(8, 8))


@pytest.mark.parametrize(
    ("decorator", "option"),
    [("incore", "auto_scope"), ("host", "level"), ("inline", "level"), ("opaque", "auto_scope")],
)
def test_options_of_the_family(decorator, option):
    with pytest.raises(TypeError, match=f"does not accept an? {option}= argument"):
        getattr(pl.jit, decorator)(**{option: False})


def test_dependencies_are_found_transitively():
    @pl.jit.inline
    def middle(a: pl.Tensor, out: pl.Tensor):
        out = add_tiles(a, a, out)
        return out

    @pl.jit
    def entry(a: pl.Tensor, out: pl.Out[pl.Tensor]):
        out = middle(a, out)
        return out

    assert [d.__name__ for d in entry.get_deps()] == ["middle", "add_tiles"]
    assert add_tiles.get_deps() == []


@pytest.mark.parametrize("args", [(), (1,), (1, 2)])
def test_every_parameter_needs_an_argument(args):
    x = zeros(8, 8)
    with pytest.raises(TypeError, match=r"missing a required argument|cannot infer"):
        add_entry.specialize(*([x] * len(args)))


def test_arrays_of_other_libraries():
    x = zeros(8, 8)
    with pytest.raises(ValueError, match="torch tensor is expected, got list"):
        add_entry.specialize(x, [[1.0]], x)


def test_views_are_refused_in_annotations():
    strided = pl.TensorView(stride=[32, 1], layout=pl.TensorLayout.ND)

    @pl.jit
    def f(a: pl.Tensor[[8, 16], pl.FP32, strided], out: pl.Out[pl.Tensor]):
        return out

    with pytest.raises(TypeError, match=r"'a' is annotated with a pl\.TensorView"):
        f.specialize(zeros(8, 16), zeros(8, 16))


def test_layout_errors_name_the_annotation():
    @pl.jit
    def f(a: pl.Tensor[[8, 16], pl.FP32, pl.DN], out: pl.Out[pl.Tensor]):
        return out

    with pytest.raises(ParserTypeError, match=r"pl\.DN\] is not supported") as info:
        f.specialize(zeros(8, 16), zeros(8, 16))
    assert info.value.span["filename"].endswith("test_specialize.py")


def test_statements_keep_their_lines():
    program = add_entry.specialize(*[zeros(8, 8)] * 3)
    first = ir.flatten_to_stmts(function(program, "add_tiles").body)[0]
    assert first.span.filename.endswith("test_specialize.py")
    with open(first.span.filename, encoding="utf-8") as file:
        assert "ta = pl.load" in file.read().splitlines()[first.span.begin_line - 1]


def test_external_kernels(tmp_path):
    source = tmp_path / "twice.cpp"
    source.write_text('extern "C" void kernel_entry(int64_t* args) {}\n')

    @pl.jit.extern(core_type="aiv", source=source)
    def twice(a: pl.Tensor, out: pl.Out[pl.Tensor]): ...

    @pl.jit
    def entry(a: pl.Tensor, out: pl.Out[pl.Tensor]):
        out = twice(a, out)
        return out

    program = entry.specialize(zeros(8, 8), zeros(8, 8))
    kernel = function(program, "twice")
    assert kernel.func_type is ir.FunctionType.AIV
    assert str(source) in str(dict(kernel.attrs))


@pytest.mark.parametrize(
    "options",
    [
        {"core_type": "gpu", "source": "k.cpp"},
        {"core_type": "mixed", "source": "k.cpp"},
        {"core_type": "aiv"},
        {"core_type": "aiv", "source": __file__, "aic_source": __file__},
        {"core_type": "mixed", "source": __file__, "aic_source": __file__, "aiv_source": __file__},
    ],
)
def test_external_kernels_check_their_sources(options):
    with pytest.raises((ValueError, TypeError, FileNotFoundError)):

        @pl.jit.extern(**options)
        def kernel(a: pl.Tensor, out: pl.Out[pl.Tensor]): ...


@pl.jit.incore
def add_one(a: pl.Tensor, out: pl.Out[pl.Tensor]):
    out = pl.store(pl.add(pl.load(a, [0, 0], [8, 16]), 1.0), [0, 0], out)
    return out


def test_kernels_are_submitted_with_dependencies():
    @pl.jit
    def entry(a: pl.Tensor, out: pl.Out[pl.Tensor]):
        half = pl.create_tensor([8, 16], pl.FP32)
        half, first = pl.submit(add_one, a, half)
        out, _ = pl.spmd_submit(add_one, half, out, core_num=2, deps=[first])
        return out

    program = entry.specialize(zeros(8, 16), zeros(8, 16))
    submits = [s.value for s in ir.flatten_to_stmts(function(program, "entry").body) if isinstance(s, ir.AssignStmt)]
    one, two = (s for s in submits if isinstance(s, ir.Submit))
    assert one.core_num is None and not one.deps
    assert two.core_num.value == 2 and [d.name_hint for d in two.deps] == ["first"]
    ir.assert_structural_equal(pl.parse(ir.python_print(program)), program)


def test_parts_of_the_parser_do_not_hide_each_other():
    """Each private method of the parser is defined once, or meant to be replaced by the parser of JIT bodies."""
    defined: dict[str, list[str]] = {}
    for part in JITParser.__mro__[1:]:
        for name, value in vars(part).items():
            if callable(value) and not name.startswith("__"):
                defined.setdefault(name, []).append(part.__name__)
    twice = {name for name, parts in defined.items() if len(parts) > 1}
    assert twice == {"emit_return"}
    replaced = {n for n, v in vars(JITParser).items() if callable(v) and n.startswith("_") and not n.startswith("__")}
    assert replaced & set(defined) == {"_body"}


def test_a_mixed_external_kernel_survives_printing(tmp_path):
    source = tmp_path / "both.cpp"
    source.write_text('extern "C" void kernel_entry(int64_t* args) {}\n')

    @pl.jit.extern(core_type="mixed", aic_source=source, aiv_source=source)
    def both(a: pl.Tensor, out: pl.Out[pl.Tensor]):
        """The body stands in both.cpp."""
        ...

    @pl.jit
    def entry(a: pl.Tensor, out: pl.Out[pl.Tensor]):
        out = both(a, out)
        return out

    program = entry.specialize(zeros(8, 8), zeros(8, 8))
    assert function(program, "both").func_type is ir.FunctionType.Group
    assert_structural_equal(pl.parse(ir.python_print(program)), program)


def test_an_external_kernel_has_no_python_body(tmp_path):
    source = tmp_path / "k.cpp"
    source.write_text("")

    @pl.jit.extern(core_type="aiv", source=source)
    def kernel(a: pl.Tensor, out: pl.Out[pl.Tensor]):
        return out

    @pl.jit
    def entry(a: pl.Tensor, out: pl.Out[pl.Tensor]):
        out = kernel(a, out)
        return out

    with pytest.raises(ParserSyntaxError, match="'kernel' must be exactly"):
        entry.specialize(zeros(8, 8), zeros(8, 8))
