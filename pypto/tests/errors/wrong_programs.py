"""Wrong programs: what each is told, where, and what would be right.

The line that the error must point at ends in ``#!``; ``caret`` is the text that must stand above the caret.
"""

from __future__ import annotations

from dataclasses import dataclass

HEADER = "import pypto.language as pl\nimport torch\n\nT = torch\n"

#: Sample arguments of most programs.
TWO = "ARGS = [torch.ones(32, 64), torch.zeros(32, 64)]"


@dataclass(frozen=True)
class Wrong:
    """One program.

    Attributes:
        stage: ``decorate``, ``compile`` or ``run``: when the error is raised.
        error: class name.
        message: fragment of the text.
        body: the program; ``ENTRY`` and ``ARGS`` are compiled and run.
        caret: what the caret points at; empty for errors without a place in the source.
        hint: fragment of the help line, or of the message when there is no help line.
    """

    name: str
    stage: str
    error: str
    message: str
    body: str
    caret: str = ""
    hint: str = ""

    @property
    def text(self) -> str:
        return HEADER + self.body

    @property
    def line(self) -> int:
        """The marked line, 0 when none is."""
        lines = self.text.split("\n")
        return next((n for n, line in enumerate(lines, 1) if line.endswith("#!")), 0)


def function(name: str, error: str, message: str, lines: str, *, caret: str = "", hint: str = "", **more: str) -> Wrong:
    """A ``@pl.function`` on a tensor ``x`` and a scalar ``n`` whose decorator must fail."""
    params = more.get("params", "x: pl.Tensor[[32, 64], pl.FP32], n: pl.Scalar[pl.INT32]")
    body = "\n".join(f"    {line}" for line in lines.strip("\n").split("\n"))
    mark = more.get("mark", "")
    text = f"@pl.function\ndef f({params}):{mark}\n{body}\n"
    return Wrong(name, "decorate", error, message, text, caret, hint)


def kernel(
    name: str, error: str, message: str, lines: str, *, caret: str = "", hint: str = "", stage: str = "compile",
    args: str = TWO,
) -> Wrong:  # fmt: skip
    """A ``@pl.jit`` entry with one kernel region on ``x`` and ``y``."""
    body = "\n".join(f"        {line}" for line in lines.strip("\n").split("\n"))
    text = (
        "@pl.jit\ndef f(x: pl.Tensor, y: pl.Out[pl.Tensor]):\n    with pl.at(level=pl.Level.CORE_GROUP):\n"
        f"{body}\n    return y\n\n\nENTRY = f\n{args}\n"
    )
    return Wrong(name, stage, error, message, text, caret, hint)


ANNOTATIONS = [
    function(
        "parameter_without_annotation", "ParserTypeError", "Parameter 'x' missing type annotation", "return x",
        params="x", mark="  #!", caret="x)", hint="pl.Tensor[[",
    ),
    function(
        "python_type_as_annotation", "ParserTypeError", "Unsupported type annotation: list", "return x",
        params="x: list", mark="  #!", caret="list",
    ),
    function(
        "torch_tensor_as_annotation", "ParserTypeError", "Incomplete type annotation: torch.Tensor", "return x",
        params="x: torch.Tensor", mark="  #!", caret="torch.Tensor", hint="pl.Tensor[[64, 128], pl.FP32]",
    ),
    function(
        "torch_dtype_in_annotation", "ParserTypeError", "Unknown dtype: torch.float32", "return x",
        params="x: pl.Tensor[[8, 8], torch.float32]", mark="  #!", caret="torch.float32", hint="pl.FP32",
    ),
    function(
        "shape_and_dtype_swapped", "ParserTypeError", "must be a list or tuple, got DataType", "return x",
        params="x: pl.Tensor[pl.FP32, [8, 8]]", mark="  #!", caret="pl.FP32",
    ),
    function(
        "dtype_missing", "ParserTypeError", "pl.Tensor requires [shape, dtype]", "return x",
        params="x: pl.Tensor[[8, 8]]", mark="  #!", caret="pl.Tensor",
    ),
    function(
        "fraction_in_shape", "ParserTypeError", "must be int or pl.dynamic(), got float", "return x",
        params="x: pl.Tensor[[8, 1.5], pl.FP32]", mark="  #!", caret="1.5",
    ),
    function(
        "text_in_shape", "ParserTypeError", "must be int or pl.dynamic(), got str", "return x",
        params="x: pl.Tensor[['n', 8], pl.FP32]", mark="  #!", caret="'n'",
    ),
    function(
        "negative_extent", "ParserTypeError", "must not be negative, got -8", "return x",
        params="x: pl.Tensor[[-8, 8], pl.FP32]", mark="  #!", caret="-8", hint="pl.dynamic()",
    ),
    function(
        "inout_scalar", "ParserTypeError", "Scalar parameters cannot have InOut direction", "return n",
        params="n: pl.InOut[pl.Scalar[pl.INT32]]", mark="  #!",
    ),
    function(
        "default_value", "UnsupportedFeatureError", "may only have plain parameters", "return x",
        params="x: pl.Tensor[[8, 8], pl.FP32] = None", mark="  #!",
    ),
    function(
        "starred_parameter", "UnsupportedFeatureError", "may only have plain parameters", "return x",
        params="*x: pl.Tensor[[8, 8], pl.FP32]", mark="  #!",
    ),
    function(
        "local_annotation_with_another_dtype", "ParserTypeError", "has dtype fp16 but expression has dtype fp32",
        "y: pl.Tensor[[32, 64], pl.FP16] = pl.exp(x)  #!\nreturn y",
        caret="y:", hint="pl.Tensor[[32, 64], pl.FP32]",
    ),
]  # fmt: skip

DECORATORS = [
    Wrong(
        "class_as_function", "decorate", "ParserSyntaxError", "decorates a plain Python function, got class A",
        "@pl.function  #!\nclass A:\n    pass\n", caret="@pl.function", hint="Put it on a `def`",
    ),
    Wrong(
        "function_as_program", "decorate", "ParserSyntaxError", "@pl.program decorates a class, got function f",
        "@pl.program  #!\ndef f(x):\n    pass\n", caret="@pl.program", hint="@pl.function",
    ),
    Wrong(
        "class_as_jit_entry", "decorate", "ParserSyntaxError", "@pl.jit decorates a plain Python function, got class A",
        "@pl.jit  #!\nclass A:\n    pass\n", caret="@pl.jit",
    ),
    Wrong(
        "async_function", "decorate", "ParserSyntaxError", "got the async function 'f'",
        "@pl.function  #!\nasync def f(x: pl.Tensor[[8, 8], pl.FP32]):\n    return x\n", hint="Leave out `async`",
    ),
    Wrong(
        "decorated_twice", "decorate", "ParserSyntaxError", "'f', which is decorated already",
        "@pl.function  #!\n@pl.function\ndef f(x: pl.Tensor[[8, 8], pl.FP32]):\n    return x\n",
    ),
    Wrong(
        "method_defined_twice", "decorate", "ParserSyntaxError", "Function 'f' is defined twice",
        "@pl.program\nclass P:\n    @pl.function\n    def f(self, x: pl.Tensor[[8, 8], pl.FP32]):\n        return x\n\n"
        "    @pl.function  #!\n    def f(self, x: pl.Tensor[[8, 8], pl.FP16]):\n        return x\n",
        caret="@pl.function", hint="Rename one of them",
    ),
]  # fmt: skip

STATEMENTS = [
    function(
        "augmented_assignment", "UnsupportedFeatureError", "Unsupported statement type: AugAssign",
        "x += 1.0  #!\nreturn x", caret="x",
    ),
    function(
        "delete", "UnsupportedFeatureError", "Unsupported statement type: Delete", "del x  #!\nreturn x", caret="del",
    ),
    function("assertion", "UnsupportedFeatureError", "Assert", "assert n > 0  #!\nreturn x", caret="assert"),
    function("try_block", "UnsupportedFeatureError", "Try", "try:  #!\n    pass\nfinally:\n    pass\nreturn x"),
    function("raise_statement", "UnsupportedFeatureError", "Raise", "raise ValueError  #!", caret="raise"),
    function("import_inside", "UnsupportedFeatureError", "Import", "import math  #!\nreturn x", caret="import"),
    function(
        "nested_function", "UnsupportedFeatureError", "FunctionDef", "def g():  #!\n    pass\nreturn x", caret="def",
    ),
    function(
        "match_statement", "UnsupportedFeatureError", "Match", "match n:  #!\n    case _:\n        pass\nreturn x",
    ),
    function("yield_expression", "UnsupportedFeatureError", "Yield", "yield x  #!", caret="yield"),
    function("lambda_expression", "UnsupportedFeatureError", "Lambda", "g = lambda a: a  #!\nreturn x", caret="lambda"),
    function("walrus", "UnsupportedFeatureError", "NamedExpr", "y = (z := pl.exp(x))  #!\nreturn y"),
    function("formatted_text", "UnsupportedFeatureError", "JoinedStr", "y = f'{n}'  #!\nreturn x", caret="f'"),
    function(
        "conditional_expression", "UnsupportedFeatureError", "IfExp", "y = x if n > 0 else x  #!\nreturn y",
        caret="x if",
    ),
    function(
        "comprehension", "UnsupportedFeatureError", "ListComp", "y = [x for _ in range(2)]  #!\nreturn y", caret="[x",
    ),
    function(
        "print_call", "UnsupportedFeatureError", "Unsupported function call: print(x)", "print(x)  #!\nreturn x",
        caret="print", hint="pl.* operators",
    ),
    function(
        "torch_operator", "UnsupportedFeatureError", "Unsupported function call: torch.exp(x)",
        "return torch.exp(x)  #!", caret="torch.exp", hint="pl.* operators",
    ),
    function(
        "tensor_method", "UnsupportedFeatureError", "Unsupported function call: x.sum()", "return x.sum()  #!",
        caret="x.sum",
    ),
    function(
        "matmul_operator", "UnsupportedFeatureError", "MatMult", "return x @ x  #!", caret="x @",
    ),
]  # fmt: skip

NAMES = [
    function(
        "undefined_name", "UndefinedVariableError", "Undefined variable 'weight'", "return pl.mul(x, weight)  #!",
        caret="weight", hint="defined before it is used",
    ),
    function(
        "unknown_operator", "InvalidOperationError", "Unknown operation 'pl.expp'", "return pl.expp(x)  #!",
        caret="pl.expp", hint="Did you mean 'exp'?",
    ),
    function(
        "unknown_tile_operator", "InvalidOperationError", "pl.tile", "return pl.tile.fancy(x)  #!",
        caret="pl.tile.fancy",
    ),
    function(
        "misspelt_level", "ParserSyntaxError", "pl.Level.CORE_GRUOP",
        "with pl.at(level=pl.Level.CORE_GRUOP):  #!\n    y = pl.exp(x)\nreturn y",
        caret="pl.Level.CORE_GRUOP", hint="CORE_GROUP",
    ),
    Wrong(
        "object_from_outside", "decorate", "ParserTypeError", "Unsupported closure variable type: Settings",
        "class Settings:\n    rows = 4\n\n\nsettings = Settings()\n\n\n@pl.function\n"
        "def f(x: pl.Tensor[[32, 64], pl.FP32]):\n    return pl.mul(x, settings)  #!\n",
        caret="settings",
    ),
]  # fmt: skip

LOOPS = [
    function(
        "python_range", "ParserSyntaxError", "For loop must use pl.range()",
        "for i in range(4):  #!\n    x = pl.exp(x)\nreturn x", caret="range", hint="pl.range(n)",
    ),
    function(
        "loop_over_tensor", "ParserSyntaxError", "For loop must use pl.range()",
        "for row in x:  #!\n    pass\nreturn x", hint="pl.range(n)",
    ),
    function(
        "range_without_arguments", "ParserSyntaxError", "pl.range() takes 1 to 3 positional arguments",
        "for i in pl.range():  #!\n    x = pl.exp(x)\nreturn x", caret="pl.range",
    ),
    function(
        "stage_on_range", "ParserSyntaxError", "stage= is only supported on pl.pipeline()",
        "for i in pl.range(4, stage=2):  #!\n    x = pl.exp(x)\nreturn x",
    ),
    function(
        "pipeline_without_stage", "ParserSyntaxError", "pl.pipeline() requires stage=",
        "for i in pl.pipeline(4):  #!\n    x = pl.exp(x)\nreturn x",
    ),
    function(
        "unroll_with_runtime_bound", "ParserSyntaxError", "compile-time constant",
        "for i in pl.unroll(n):  #!\n    x = pl.exp(x)\nreturn x",
    ),
    function(
        "carried_values_do_not_match", "ParserSyntaxError", "2 iter_args but 1 init_values",
        "for i, (a, b) in pl.range(4, init_values=(x,)):  #!\n    a, b = pl.yield_(a, b)\nreturn a",
    ),
    function(
        "break_in_parallel_loop", "InvalidOperationError", "'break' not supported in parallel loops",
        "for i in pl.parallel(4):\n    if n > 2:\n        break  #!\nreturn x", caret="break",
    ),
    function(
        "tensor_as_condition", "ParserTypeError", "must be a Bool-typed scalar expression",
        "if x:  #!\n    y = pl.exp(x)\nreturn x", caret="x:", hint="Compare explicitly",
    ),
    function(
        "number_as_condition", "ParserTypeError", "must be a Bool-typed scalar expression",
        "while n:  #!\n    x = pl.exp(x)\nreturn x", caret="n:", hint="n != 0",
    ),
    function(
        "while_without_condition", "ParserSyntaxError", "must be pl.cond(condition)",
        "for (a,) in pl.while_(init_values=(x,)):\n    a = pl.yield_(a)  #!\nreturn a",
    ),
]  # fmt: skip

OPERATORS = [
    function(
        "argument_missing", "InvalidOperationError", "missing 1 required positional argument: 'rhs'",
        "return pl.add(x)  #!", caret="pl.add",
    ),
    function(
        "argument_too_many", "InvalidOperationError", "takes 1 positional argument but 2 were given",
        "return pl.exp(x, x)  #!", caret="pl.exp",
    ),
    function(
        "keyword_unknown", "InvalidOperationError", "unexpected keyword argument 'fast'",
        "return pl.exp(x, fast=True)  #!",
    ),
    kernel(
        "keyword_misspelt", "InvalidOperationError", "unexpected keyword argument 'valid_shapes'",
        "a = pl.load(x, [0, 0], [32, 64], valid_shapes=[16, 64])  #!\ny = pl.store(a, [0, 0], y)", caret="pl.load",
        hint="Did you mean 'valid_shape'?",
    ),
    function(
        "rounding_mode_unknown", "InvalidOperationError", "Invalid rounding mode 'up'",
        "return pl.cast(x, pl.INT32, mode='up')  #!", hint="floor",
    ),
    function(
        "shapes_do_not_broadcast", "InvalidOperationError", "[32, 64]",
        "y = pl.slice(x, [24, 64], [0, 0])\nreturn pl.add(x, y)  #!", caret="pl.add",
    ),
    function(
        "reshape_to_another_size", "InvalidOperationError", "holds 2048, [32, 32] holds 1024",
        "return pl.reshape(x, [32, 32])  #!", caret="pl.reshape",
    ),
    function(
        "too_many_indices", "ParserTypeError", "3 indices but the tensor is 2D", "return x[0, 0, 0]  #!",
    ),
    function("slice_with_step", "UnsupportedFeatureError", "Slice step is not supported", "return x[0:32:2]  #!"),
    function(
        "rebinding_with_another_shape", "ParserTypeError", "Cannot reassign 'y' with a different type",
        "y = pl.exp(x)\ny = pl.slice(x, [16, 64], [0, 0])  #!\nreturn y", caret="y",
    ),
    kernel(
        "inner_dimensions_differ", "InvalidOperationError", "64",
        "a = pl.load(x, [0, 0], [32, 64], target_memory=pl.Mem.Mat)\nc = pl.matmul(a, a)  #!\n"
        "y = pl.store(c, [0, 0], y)",
        caret="pl.matmul",
    ),
    kernel(
        "operand_dtypes_differ", "InvalidOperationError", "same dtype",
        "a = pl.load(x, [0, 0], [32, 64])\nb = pl.cast(a, pl.FP16)\nc = pl.tile.div(a, b)  #!\n"
        "y = pl.store(c, [0, 0], y)",
        caret="pl.tile.div",
    ),
    kernel(
        "division_by_zero", "PartialCodegenError", "Division by zero",
        "n = 4 // 0  #!\ny = pl.store(pl.load(x, [n, 0], [16, 64]), [0, 0], y)", caret="0", hint="correct the divisor",
    ),
    kernel(
        "load_past_the_end", "InvalidOperationError", "past the end of dimension 0",
        "a = pl.load(x, [16, 0], [32, 64])  #!\ny = pl.store(a, [0, 0], y)", caret="pl.load", hint="clamp=True",
    ),
    kernel(
        "store_past_the_end", "InvalidOperationError", "past the end of dimension 1",
        "a = pl.load(x, [0, 0], [32, 64])\ny = pl.store(a, [0, 8], y)  #!", caret="pl.store",
    ),
    kernel(
        "valid_shape_larger_than_the_tile", "InvalidOperationError", "exceeds the window extent 16",
        "a = pl.load(x, [0, 0], [16, 64], valid_shape=[20, 64])  #!\ny = pl.store(a, [0, 0], y)",
    ),
    kernel(
        "tensor_and_tile_mixed", "InvalidOperationError", "cannot mix Tensor and Tile",
        "a = pl.load(x, [0, 0], [32, 64])\nb = pl.add(a, x)  #!\ny = pl.store(b, [0, 0], y)", caret="pl.add",
    ),
    kernel(
        "reduction_without_scratch", "InvalidOperationError", "tmp_tile",
        "a = pl.load(x, [0, 0], [32, 64])\nm = pl.row_max(a)  #!\ny = pl.store(a, [0, 0], y)", caret="pl.row_max",
    ),
    kernel(
        "cast_to_the_same_dtype", "InvalidOperationError", "same-dtype cast",
        "a = pl.cast(pl.load(x, [0, 0], [32, 64]), pl.FP32)  #!\ny = pl.store(a, [0, 0], y)", caret="pl.cast",
    ),
    kernel(
        "fill_value_not_possible", "InvalidOperationError", "pad_value",
        "a = pl.load(x, [0, 0], [32, 64])\nb = pl.fillpad(a, pad_value=3)  #!\ny = pl.store(b, [0, 0], y)",
        hint="math.inf",
    ),
]  # fmt: skip

MEMORY = [
    kernel(
        "load_into_a_place_no_load_reaches", "InvalidOperationError", "Vec or Mat, got Left",
        "a = pl.load(x, [0, 0], [32, 64], target_memory=pl.Mem.Left)  #!\ny = pl.store(a, [0, 0], y)", caret="pl.load",
    ),
    kernel(
        "tiles_do_not_fit_into_vec", "ValueError", "Vec buffer usage",
        "a = pl.load(x, [0, 0], [256, 256])  #!\nb = pl.exp(a)\ny = pl.store(pl.add(a, b), [0, 0], y)",
        caret="a =", hint="'b' [256, 256] fp32 (262144 bytes",
        args="ARGS = [torch.ones(256, 256), torch.zeros(256, 256)]",
    ),
    kernel(
        "tile_does_not_fit_into_mat", "ValueError", "Mat buffer usage",
        "a = pl.load(x, [0, 0], [512, 512], target_memory=pl.Mem.Mat)  #!\nb = pl.matmul(a, a)\n"
        "y = pl.store(b, [0, 0], y)",
        hint="Use smaller tiles",
        args="ARGS = [torch.ones(1024, 1024), torch.zeros(1024, 1024)]",
    ),
    kernel(
        "no_cast_between_dtypes", "ValueError", "no native cast path from int8 to fp32",
        "a = pl.cast(pl.load(x, [0, 0], [32, 64]), pl.FP32)  #!\ny = pl.store(a, [0, 0], y)", caret="pl.cast",
        args="ARGS = [torch.ones(32, 64, dtype=torch.int8), torch.zeros(32, 64)]",
    ),
    kernel(
        "tile_row_not_a_multiple_of_32_bytes", "PartialCodegenError", "32-byte aligned",
        "a = pl.load(x, [0, 0], [32, 5])  #!\ny = pl.store(a, [0, 0], y)", caret="a =", hint="multiple of 8 columns",
    ),
    kernel(
        "store_into_another_dtype", "PartialCodegenError", "same byte size, got f16 and f32",
        "a = pl.cast(pl.load(x, [0, 0], [32, 64]), pl.FP16)\ny = pl.store(a, [0, 0], y)  #!", caret="pl.store",
    ),
    kernel(
        "accumulator_moved_to_an_operand", "PartialCodegenError", "acc->vec",
        "a = pl.load(x, [0, 0], [64, 64], target_memory=pl.Mem.Mat)\nc = pl.matmul(a, a)\n"
        "d = pl.move(c, target_memory=pl.Mem.Left)  #!\ny = pl.store(pl.matmul(d, a), [0, 0], y)",
        caret="pl.move", hint="acc->left", args="ARGS = [torch.ones(64, 64), torch.zeros(64, 64)]",
    ),
    kernel(
        "vector_operator_on_a_cube_operand", "PartialCodegenError", "must map to a supported producer pipe",
        "a = pl.load(x, [0, 0], [64, 64], target_memory=pl.Mem.Mat)\nd = pl.move(a, target_memory=pl.Mem.Left)\n"
        "y = pl.store(pl.exp(d), [0, 0], y)",
        hint="got 'left'", args="ARGS = [torch.ones(64, 64), torch.zeros(64, 64)]",
    ),
    kernel(
        "six_dimensions", "PartialCodegenError", "tensor 'x' of kernel 'f_incore_0' has 6 dimensions",
        "y[:] = pl.add(x, 1.0)", hint="reshape it before",
        args="ARGS = [torch.ones(2, 2, 2, 2, 4, 8), torch.zeros(2, 2, 2, 2, 4, 8)]",
    ),
    kernel(
        "operand_does_not_fit_into_left", "ValueError", "Left",
        "a = pl.load(x, [0, 0], [256, 256], target_memory=pl.Mem.Mat)\nd = pl.move(a, target_memory=pl.Mem.Left)\n"
        "r = pl.move(a, target_memory=pl.Mem.Right)\nc = pl.matmul(d, r)  #!\ny = pl.store(c, [0, 0], y)",
        caret="pl.matmul", hint="65536", args="ARGS = [torch.ones(256, 256), torch.zeros(256, 256)]",
    ),
]  # fmt: skip

PROGRAM = """\
@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def k(
        self, x: pl.Tensor[[32, 64], pl.FP32], y: pl.Out[pl.Tensor[[32, 64], pl.FP32]]
    ) -> pl.Tensor[[32, 64], pl.FP32]:
        y = pl.store(pl.load(x, [0, 0], [32, 64]), [0, 0], y)
        return y

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self, x: pl.Tensor[[32, 64], pl.FP32], y: pl.Out[pl.Tensor[[32, 64], pl.FP32]]
    ) -> pl.Tensor[[32, 64], pl.FP32]:
        {line}
        return y


ENTRY = P
ARGS = [torch.ones(32, 64), torch.zeros(32, 64)]
"""


def call(
    name: str, error: str, message: str, line: str, stage: str = "decorate", caret: str = "", hint: str = ""
) -> Wrong:
    """A program whose orchestration calls its kernel ``k`` in a wrong way."""
    return Wrong(name, stage, error, message, PROGRAM.replace("{line}", f"{line}  #!"), caret, hint)


CALLS = [
    call(
        "argument_count", "ParserTypeError", "Function 'k' expects 2 argument(s), got 1", "y = self.k(x)",
        caret="self.k",
    ),
    call(
        "keyword", "ParserTypeError", "does not accept keyword argument 'y'", "y = self.k(x, y=y)",
    ),
    call(
        "number_for_a_tensor", "ParserTypeError", "parameter 'y' is pl.Tensor[[32, 64], pl.FP32]", "y = self.k(x, 3)",
        caret="3", hint="Pass a tensor",
    ),
    call(
        "orchestration_calls_itself", "PartialCodegenError", "calls the orchestration function 'main'",
        "y = self.main(x, y)", "compile", caret="self.main", hint="@pl.inline",
    ),
    Wrong(
        "kernel_calls_itself", "compile", "PartialCodegenError", "kernel 'k' calls function 'k'",
        PROGRAM.replace("{line}", "y = self.k(x, y)").replace(
            "y = pl.store(pl.load(x, [0, 0], [32, 64]), [0, 0], y)", "y = self.k(x, y)  #!"
        ),
        caret="self.k", hint="@pl.inline",
    ),
    Wrong(
        "missing_return", "decorate", "ParserSyntaxError", "declares a result but has no return statement",
        PROGRAM.replace("    return y\n\n    @pl", "    pass\n\n    @pl").replace("{line}", "y = self.k(x, y)").replace(
            "    ) -> pl.Tensor[[32, 64], pl.FP32]:\n        y = pl.store",
            "    ) -> pl.Tensor[[32, 64], pl.FP32]:  #!\n        y = pl.store",
        ).replace("        pass\n", "", 1),
        caret="pl.Tensor", hint="return <value>",
    ),
    call("method_unknown", "UndefinedVariableError", "'kk' not defined", "y = self.kk(x, y)", caret="self.kk"),
    call(
        "deps_on_a_plain_call", "ParserTypeError", "does not accept keyword argument 'deps'",
        "y = self.k(x, y, deps=[])",
    ),
    call(
        "submit_result_count", "ParserSyntaxError", "must be unpacked as exactly 2 targets",
        "y, task, more = pl.submit(self.k, x, y)",
    ),
    call(
        "tensor_as_dependency", "ParserTypeError", "must be a TaskId variable",
        "y, t = pl.submit(self.k, x, y, deps=[x])",
    ),
    call(
        "tensor_operator_in_orchestration", "PartialCodegenError", "Misplaced tensor op", "y = pl.add(x, 1.0)",
        "compile",
        caret="y",
    ),
    Wrong(
        "program_without_functions", "decorate", "ParserSyntaxError", "contains no @pl.function decorated methods",
        "@pl.program  #!\nclass P:\n    pass\n", caret="@pl.program", hint="Decorate at least one method",
    ),
    Wrong(
        "manual_scope_in_manual_scope", "decorate", "ParserSyntaxError", "may not be nested",
        PROGRAM.replace(
            "{line}",
            "with pl.manual_scope():\n            with pl.manual_scope():  #!\n                y = self.k(x, y)",
        ),
    ),
]  # fmt: skip

VERIFIED = [
    Wrong(
        "branch_without_value", "compile", "VerificationError", "IfStmt",
        "@pl.function\ndef f(x: pl.Tensor[[32, 64], pl.FP32], n: pl.Scalar[pl.INT32]):\n    if n > 0:  #!\n"
        "        y = pl.yield_(pl.exp(x))\n    else:\n        z = pl.exp(x)\n    return y\n\n\nENTRY = f\n",
        caret="if",
    ),
    Wrong(
        "carried_value_changes_its_shape", "compile", "VerificationError", "Shape",
        "@pl.function\ndef f(x: pl.Tensor[[32, 64], pl.FP32]):\n"
        "    for i, (a,) in pl.range(4, init_values=(x,)):  #!\n"
        "        r = pl.yield_(pl.slice(a, [16, 64], [0, 0]))\n    return r\n\n\nENTRY = f\n",
    ),
    kernel(
        "number_defined_in_one_branch", "VerificationError", "Variable 'k' used outside its defining scope",
        "n = pl.cast(pl.read(x, [0, 0]), pl.INDEX)\nif n > 3:\n    k = 1\n"
        "y = pl.store(pl.load(x, [k, 0], [16, 64]), [0, 0], y)  #!",
    ),
    Wrong(
        "tensor_defined_in_one_branch", "compile", "VerificationError", "Variable 'y' used outside its defining scope",
        "@pl.function\ndef f(x: pl.Tensor[[32, 64], pl.FP32], n: pl.Scalar[pl.INT32]):\n    if n > 0:\n"
        "        y = pl.exp(x)\n    return y  #!\n\n\nENTRY = f\n",
        caret="return",
    ),
]  # fmt: skip

JIT = [
    kernel(
        "jit_undefined_name", "UndefinedVariableError", "Undefined variable 'tile'",
        "y = pl.store(tile, [0, 0], y)  #!",
        caret="tile", hint="defined before it is used",
    ),
    kernel(
        "jit_output_of_another_shape", "ParserTypeError", "Subscript-write shape mismatch", "y[:] = pl.add(x, 1.0)  #!",
        caret="y[:]", args="ARGS = [torch.ones(32, 64), torch.zeros(16, 64)]",
    ),
    kernel(
        "jit_dtype_without_counterpart", "TypeError", "torch.complex64", "y[:] = pl.add(x, 1.0)",
        hint="Supported: float16", args="ARGS = [torch.ones(32, 64, dtype=torch.complex64), torch.zeros(32, 64)]",
    ),
    kernel(
        "jit_argument_missing", "TypeError", "missing a required argument: 'y'", "y[:] = pl.add(x, 1.0)",
        args="ARGS = [torch.ones(32, 64)]",
    ),
    kernel(
        "jit_argument_too_many", "TypeError", "takes 2 (x, y), got 3", "y[:] = pl.add(x, 1.0)",
        args="ARGS = [torch.ones(32, 64), torch.zeros(32, 64), 1]",
    ),
    kernel(
        "jit_list_for_a_tensor", "ValueError", "a torch tensor is expected, got list", "y[:] = pl.add(x, 1.0)",
        args="ARGS = [[1, 2], torch.zeros(32, 64)]",
    ),
    kernel(
        "jit_array_for_a_tensor", "ValueError", "a torch tensor is expected, got ndarray", "y[:] = pl.add(x, 1.0)",
        args="ARGS = [torch.ones(32, 64).numpy(), torch.zeros(32, 64)]",
    ),
    kernel(
        "jit_empty_tensor", "ValueError", "got an empty tensor of shape [0, 64]", "y[:] = pl.add(x, 1.0)",
        hint="pl.dynamic", args="ARGS = [torch.ones(0, 64), torch.zeros(0, 64)]",
    ),
    kernel(
        "jit_tensor_on_another_device", "ValueError", "is on device 'meta'", "y[:] = pl.add(x, 1.0)", stage="run",
        hint="move it to the CPU", args="ARGS = [torch.ones(32, 64, device='meta'), torch.zeros(32, 64)]",
    ),
    kernel(
        "jit_transposed_tensor", "ValueError", "is not contiguous", "y[:] = pl.add(x, 1.0)", stage="run",
        hint=".contiguous()", args="ARGS = [torch.ones(64, 32).t(), torch.zeros(32, 64)]",
    ),
    kernel(
        "jit_sparse_tensor", "ValueError", "has layout torch.sparse_coo", "y[:] = pl.add(x, 1.0)", stage="run",
        hint=".to_dense()", args="ARGS = [torch.ones(32, 64).to_sparse(), torch.zeros(32, 64)]",
    ),
    kernel(
        "window_that_leaves_the_tensor", "RuntimeError", "an access to 'x' leaves the tensor in dimension 0",
        "for i in pl.range(4):\n    a = pl.load(x, [i * 16, 0], [16, 64])  #!\n    y = pl.store(a, [i * 16, 0], y)",
        stage="run", caret="pl.load", hint="offset 32 + extent 16 exceeds 32",
    ),
    kernel(
        "element_written_behind_the_tensor", "RuntimeError", "an access to 'y' leaves the tensor: element 2048 of 2048",
        "for i in pl.range(100):\n    pl.write(y, [i, 0], 1.0)  #!", stage="run", caret="pl.write",
    ),
    kernel(
        "element_read_behind_the_tensor", "RuntimeError", "an access to 'x' leaves the tensor: element 64000 of 2048",
        "v = pl.read(x, [1000, 0])  #!\ny = pl.store(pl.mul(pl.load(x, [0, 0], [32, 64]), v), [0, 0], y)", stage="run",
        caret="pl.read",
    ),
    kernel(
        "jit_lazy_negation", "ValueError", "lazy negation", "y[:] = pl.add(x, 1.0)", stage="run",
        hint=".resolve_neg()", args="ARGS = [torch._neg_view(torch.ones(32, 64)), torch.zeros(32, 64)]",
    ),
]  # fmt: skip

WRONG_PROGRAMS = [
    *ANNOTATIONS, *DECORATORS, *STATEMENTS, *NAMES, *LOOPS, *OPERATORS, *MEMORY, *CALLS, *VERIFIED, *JIT,
]  # fmt: skip
