"""OptimizeOrchTensors pattern 5: kernels marked ``windowize`` run on the windows that they use."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from pass_programs import calls, find_calls, parse, run
from pypto.debug import run_as_torch

from pypto import ir

ROWS, COLS = 64, 32
T = f"pl.Tensor[[{ROWS}, {COLS}], pl.FP32]"
PARAMS = f"x: {T}, r: pl.Scalar[pl.INDEX], o: pl.Out[{T}]"
STRIPE = f"t = pl.load(x, [r, 0], [8, {COLS}])\no = pl.store(pl.mul(t, 2.0), [r, 0], o)\nreturn o"
LOOP = """
for i in pl.range(2):
    t = pl.load(x, [r, 0], [8, {columns}])
    o = pl.store(t, [{row}, {column}], o)
return o
"""
PREFIX = ("convert_to_ssa", "simplify", "normalize_stmt_structure", "flatten_call_expr", "optimize_orch_tensors")


def program(kernel: str, main: str, *, params: str = PARAMS, more: str = "", marked: bool = True) -> ir.Program:
    def block(text: str) -> str:
        return "\n".join("    " + line for line in text.strip().splitlines())

    attrs = ', attrs={"windowize": True}' if marked else ""
    return parse(
        f"""
@pl.function(type=pl.FunctionType.InCore{attrs})
def k(self, {params}):
{block(kernel)}
{more}
@pl.function(type=pl.FunctionType.Orchestration)
def main(self, a: {T}, n: pl.Scalar[pl.INDEX], y: pl.Out[{T}]) -> {T}:
{block(main)}
""".replace("def k(self, " + params + "):", f"def k(self, {params}) -> {T}:")
    )


def output(prog: ir.Program, n: int) -> torch.Tensor:
    y = torch.zeros(ROWS, COLS)
    run_as_torch(prog, [torch.arange(ROWS * COLS, dtype=torch.float32).reshape(ROWS, COLS), n, y])
    return y


def windowed(prog: ir.Program) -> ir.Program:
    """The program after the pass; it computes what it did before."""
    after = run(prog, *PREFIX)
    for n in (0, 8, 24):
        assert torch.equal(output(after, n), output(prog, n))
    return after


def shape(kind) -> list[int]:
    return [d.value for d in kind.shape]


def test_a_stripe_kernel_gets_slices_of_its_input_and_output():
    after = windowed(program(STRIPE, "y = self.k(a, n, y)\nreturn y"))
    kernel = after.get_function("k__windowed")
    assert [shape(kernel.params[i].type) for i in (0, 2)] == [[8, COLS], [8, COLS]]
    assert [s.value for s in kernel.params[0].type.tensor_view.stride] == [COLS, 1]
    assert calls(after, "main") == ["tensor.slice", "tensor.slice", "k__windowed", "tensor.assemble"]
    offsets = [find_calls(after, f"tile.{op}", "k__windowed")[0].args[1].elements[0] for op in ("load", "store")]
    assert [o.value for o in offsets] == [0, 0]


def test_only_marked_kernels_are_narrowed():
    before = program(STRIPE, "y = self.k(a, n, y)\nreturn y", marked=False)
    assert run(before, *PREFIX).get_function("k__windowed") is None


def test_a_loop_of_stores_makes_one_window():
    kernel = f"""
for i in pl.range(2):
    t = pl.load(x, [r + i * 8, 0], [8, {COLS}])
    o = pl.store(t, [r + i * 8, 0], o)
return o
"""
    after = windowed(program(kernel, "y = self.k(a, n, y)\nreturn y"))
    assert shape(after.get_function("k__windowed").params[2].type) == [16, COLS]


CALL = "y = self.k(a, n, y)"
WHOLE = {
    "iterations that overlap": (STRIPE, "for i in pl.range(4):\n    y = self.k(a, i * 4, y)"),
    "while loop": (STRIPE, "i = 0\nwhile i < n:\n    i = i + 8\n    y = self.k(a, i, y)"),
    "another writer": (STRIPE, f"{CALL}\nwith pl.at(level=pl.Level.CORE_GROUP):\n    y = pl.write(y, [n, 0], 1.0)"),
    "output is read": (f"t = pl.load(o, [0, 0], [8, {COLS}])\no = pl.store(t, [r, 0], o)\nreturn o", CALL),
    "diagonal": (LOOP.format(columns=8, row="r + i * 8", column="i * 8"), CALL),
    "rows stored twice": (LOOP.format(columns=COLS, row="r + i * 4", column="0"), CALL),
    "store under a condition": (
        f"if r > 3:\n    t = pl.load(x, [r, 0], [8, {COLS}])\n    o = pl.store(t, [r, 0], o)\nreturn o", CALL
    ),
}  # fmt: skip


@pytest.mark.parametrize(("kernel", "main"), WHOLE.values(), ids=WHOLE)
def test_tensors_stay_whole_when_the_window_is_not_certain(kernel, main):
    names = (*PREFIX[:-1], "outline_incore_scopes", "convert_tensor_to_tile_ops", PREFIX[-1])
    after = run(program(kernel, main + "\nreturn y"), *names)
    assert after.get_function("k__windowed") is None


def test_two_outputs_in_one_tensor_stay_whole():
    params = f"x: {T}, r: pl.Scalar[pl.INDEX], o: pl.Out[{T}], p: pl.Out[{T}]"
    kernel = f"""
t = pl.load(x, [r, 0], [8, {COLS}])
o = pl.store(t, [r, 0], o)
p = pl.store(t, [r + 8, 0], p)
return o
"""
    after = run(program(kernel, "y = self.k(a, n, y, y)\nreturn y", params=params), *PREFIX)
    assert after.get_function("k__windowed") is None


@settings(max_examples=20)
@given(st.data())
def test_windowed_launches_compute_the_same(data):
    rows, step = data.draw(st.sampled_from([4, 8])), data.draw(st.sampled_from([4, 8, 16]))
    trips = data.draw(st.integers(1, 3))
    kernel = f"""
for i in pl.range({trips}):
    t = pl.load(x, [r + i * {data.draw(st.sampled_from([0, 4, 8]))}, 0], [{rows}, {COLS}])
    o = pl.store(pl.mul(t, 2.0), [r + i * {step}, 0], o)
return o
"""
    loop = data.draw(st.sampled_from(["range", "parallel"]))
    main = f"for j in pl.{loop}(2):\n    y = self.k(a, j * {data.draw(st.sampled_from([8, 16, 24]))}, y)\nreturn y"
    windowed(program(kernel, main))
