"""Programs given as text and as files."""

from __future__ import annotations

import pypto.language as pl
import pytest
from language_support import round_trip, statements
from pypto.language.parser.diagnostics import InvalidOperationError, ParserSyntaxError, UndefinedVariableError

from pypto import ir

FUNCTION = """
@pl.function
def f(x: pl.Tensor[[8, 16], pl.FP32]):
    y = pl.add(x, 1.0)
    return y
"""

PROGRAM = """
import pypto.language as pl

@pl.program
class P:
    @pl.function
    def f(self, x: pl.Tensor[[8, 16], pl.FP32]) -> pl.Tensor[[8, 16], pl.FP32]:
        return pl.add(x, 1.0)
"""


def test_what_the_text_defines():
    assert isinstance(pl.parse(FUNCTION), ir.Function)
    assert isinstance(pl.parse(PROGRAM), ir.Program)
    assert isinstance(pl.parse_program(PROGRAM), ir.Program)


def test_files(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    program = pl.loads(path)
    assert isinstance(program, ir.Program)
    assert pl.loads_program(str(path)).name == "P"
    assert program.get_function("f").span.filename == str(path)
    with pytest.raises(FileNotFoundError):
        pl.loads(tmp_path / "missing.py")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = 1", "No @pl.function or @pl.program found in <string>"),
        ("", "No @pl.function or @pl.program found"),
        (FUNCTION + FUNCTION.replace("def f", "def g"), r"Multiple functions/programs found in <string>: \['f', 'g'\]"),
    ],
)
def test_exactly_one_definition(text, message):
    with pytest.raises(ValueError, match=message):
        pl.parse(text)


def test_a_program_next_to_functions_wins():
    assert pl.parse(FUNCTION + PROGRAM).name == "P"


def test_program_forms_refuse_functions():
    with pytest.raises(ValueError, match=r"Expected @pl\.program but found @pl\.function 'f'"):
        pl.parse_program(FUNCTION)


def test_python_syntax_errors_name_the_text():
    with pytest.raises(SyntaxError, match=r"Failed to compile code from bad\.py"):
        pl.parse("def f(:\n", filename="bad.py")


def test_undefined_names_of_annotations_are_symbols():
    f = pl.parse("@pl.function\ndef f(x: pl.Tensor[[M, N], pl.FP32], y: pl.Tensor[[M, 4], pl.FP32]):\n    return x\n")
    x, y = f.params
    assert [d.name_hint for d in x.type.shape] == ["M", "N"]
    assert x.type.shape[0] is y.type.shape[0]


def test_undefined_names_of_bodies_are_errors():
    with pytest.raises(UndefinedVariableError, match="Undefined variable 'z'") as info:
        pl.parse(FUNCTION.replace("x, 1.0", "z, 1.0"), filename="t.py")
    assert (info.value.span["filename"], info.value.span["line"], info.value.span["column"]) == ("t.py", 4, 16)
    assert info.value.source_lines[3].strip() == "y = pl.add(z, 1.0)"


def test_failures_of_the_text_itself():
    with pytest.raises(ParserSyntaxError, match=r"ZeroDivisionError: .*zero") as info:
        pl.parse("a = 1\nb = 1 / 0\n" + FUNCTION)
    assert info.value.span["line"] == 2
    assert info.value.source_lines[1].rstrip() == "b = 1 / 0"


def test_misspelt_members_get_a_hint_at_their_place():
    text = FUNCTION.replace("@pl.function", "@pl.function(type=pl.FunctionType.Incore)")
    with pytest.raises(ParserSyntaxError, match="AttributeError") as info:
        pl.parse(text)
    assert info.value.span["line"] == 2
    assert text.splitlines()[1][info.value.span["column"] - 1 :].startswith("Incore")
    assert "Did you mean 'InCore'?" in info.value.hint
    assert "Valid values: Opaque" in info.value.hint


@pytest.mark.parametrize("option", ["type", "level", "role"])
def test_decorator_values_are_checked(option):
    text = FUNCTION.replace("@pl.function", f"@pl.function({option}='nothing')")
    with pytest.raises(ParserSyntaxError, match=f"{option}= of 'f' must be a member") as info:
        pl.parse(text)
    assert info.value.hint.startswith("Valid values: ")
    assert info.value.span["line"] == 2


def test_source_map_moves_locations():
    mapping = {4: ("user.py", 40, 8)}
    f = pl.parse(FUNCTION, source_map=mapping)
    span = statements(f)[0].span
    assert (span.filename, span.begin_line) == ("user.py", 40)
    with pytest.raises(InvalidOperationError) as info:
        pl.parse(FUNCTION.replace("pl.add(x, 1.0)", "pl.exp(x, x, x)"), source_map=mapping)
    assert (info.value.span["filename"], info.value.span["line"]) == ("user.py", 40)


def test_columns_count_characters():
    text = "@pl.function\ndef f(x: pl.Tensor[[8], pl.FP32]):\n    é = pl.add(x, 1.0); y = pl.add(é, ü)\n    return y\n"
    with pytest.raises(UndefinedVariableError) as info:
        pl.parse(text)
    line = text.splitlines()[info.value.span["line"] - 1]
    assert line[info.value.span["column"] - 1] == "ü"


def test_lines_are_those_of_python():
    text = "# a form feed \x0c and a separator \u2028 are no line ends\n" + FUNCTION.replace("x, 1.0", "zz, 1.0")
    with pytest.raises(UndefinedVariableError) as info:
        pl.parse(text)
    assert "zz" in info.value.source_lines[info.value.span["line"] - 1]


def test_windows_line_ends():
    assert isinstance(pl.parse(FUNCTION.replace("\n", "\r\n")), ir.Function)


def test_assertions_are_not_wrapped():
    with pytest.raises(AssertionError):
        pl.parse("assert False\n" + FUNCTION)


SSA_FORM = """
@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore, strict_ssa=True)
    def kernel(
        self,
        x: pl.Tensor[[64, 64], pl.FP32, pl.MemRef("mem_ddr_0", 0, 16384)],
        out: pl.Out[pl.Tensor[[64, 64], pl.FP32, pl.MemRef("mem_ddr_1", 0, 16384)]],
    ) -> pl.Tensor[[64, 64], pl.FP32]:
        mem_vec_2: pl.Ptr = pl.tile.alloc(pl.Mem.Vec, 16384)
        t: pl.Tile[[64, 64], pl.FP32, pl.MemRef(mem_vec_2, 0, 16384), pl.Mem.Vec] = pl.tile.load(
            x, [0, 0], [64, 64], [64, 64], target_memory=pl.Mem.Vec
        )
        for i, (acc,) in pl.range(4, init_values=(t,)):
            if i > 2:
                u: pl.Tile[[64, 64], pl.FP32, pl.MemRef(mem_vec_2, 0, 16384), pl.Mem.Vec] = pl.tile.adds(acc, 1.0)
                v: pl.Tile[[64, 64], pl.FP32, pl.MemRef(mem_vec_2, 0, 16384), pl.Mem.Vec] = pl.yield_(u)
            else:
                v: pl.Tile[[64, 64], pl.FP32, pl.MemRef(mem_vec_2, 0, 16384), pl.Mem.Vec] = pl.yield_(acc)
            r: pl.Tile[[64, 64], pl.FP32, pl.MemRef(mem_vec_2, 0, 16384), pl.Mem.Vec] = pl.yield_(v)
        res: pl.Tensor[[64, 64], pl.FP32, pl.MemRef("mem_ddr_1", 0, 16384)] = pl.tile.store(r, [0, 0], out)
        return res
"""


def test_printed_forms_are_read_back():
    program = pl.parse(SSA_FORM)
    kernel = program.get_function("kernel")
    loop = next(s for s in statements(kernel) if isinstance(s, ir.ForStmt))
    assert [a.name_hint for a in loop.iter_args] == ["acc"]
    assert [v.name_hint for v in loop.return_vars] == ["r"]
    assert loop.iter_args[0].type.memref is not None
    round_trip(program)


def test_offsets_and_builtin_operators_as_printed():
    text = """
@pl.function
def f(x: pl.Tensor[[8, 16], pl.FP32, pl.MemRef("mem_ddr_0", pl.const(0, pl.INT64), 512)]):
    y: pl.Tensor[[8, 16], pl.FP32, pl.MemRef("mem_ddr_0", 0, 512)] = pl.tensor.adds(x, 1.0)
    return y
"""
    f = pl.parse(text)
    assert f.params[0].type.memref.byte_offset_.dtype == pl.INT64
    assert statements(f)[0].var.type.memref.byte_offset_.dtype == pl.INDEX
    round_trip(f)


def test_task_edges_do_not_belong_on_operators():
    text = FUNCTION.replace("x, 1.0)", 'x, 1.0, attrs={"manual_dep_edges": [x]})')
    with pytest.raises(ParserSyntaxError, match=r"'manual_dep_edges' does not belong on pl\.add"):
        pl.parse(text)


def test_expressions_nested_too_deeply():
    with pytest.raises((SyntaxError, ParserSyntaxError), match=r"nested too deeply|recursion depth"):
        pl.parse(f"@pl.function\ndef f(n: pl.Scalar[pl.INDEX]):\n    y = n{' + n' * 5000}\n    return y\n")
