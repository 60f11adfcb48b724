"""What a pass must not change: the numbers that a program computes, as its torch form gives them."""

from __future__ import annotations

import pypto.language as pl
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pass_programs import A2A3, kernel, run
from pypto.backend import use_backend
from pypto.debug import run_as_torch
from pypto.ir.instruments import make_roundtrip_instrument
from runnable_programs import COLS, ROWS, kernel_text

from pypto import ir, passes

SCALARS = (0, 1, 3, 6)


def output(program: ir.Program, n: int) -> torch.Tensor:
    """What the kernel ``main(x, n, k, y)`` writes to y."""
    y = torch.zeros(ROWS, COLS)
    x = torch.linspace(-2, 2, ROWS * COLS).reshape(ROWS, COLS)
    run_as_torch(program, [x, n, 0.25, y])
    return y


@settings(max_examples=12, suppress_health_check=[HealthCheck.too_slow])
@given(st.randoms(use_true_random=False))
def test_no_pass_changes_what_a_kernel_computes(random):
    program = pl.parse_program(kernel_text(random))
    expected = {n: output(program, n) for n in SCALARS}
    checks = [
        passes.VerificationInstrument(passes.VerificationMode.BEFORE_AND_AFTER),
        make_roundtrip_instrument(),
    ]
    with use_backend(A2A3), passes.PassContext(checks):
        for pass_ in ir.PassManager.get_strategy().passes:
            before, program = program, pass_(program)
            for n in SCALARS if program is not before else ():
                assert torch.equal(output(program, n), expected[n]), f"{pass_.get_name()} with n={n}"


TENSOR = f"pl.Tensor[[{ROWS}, {COLS}], pl.FP32]"
PARAMETERS = f"x: {TENSOR}, n: pl.Scalar[pl.INDEX], k: pl.Scalar[pl.FP32], y: pl.Out[{TENSOR}]"

SIGNS = {
    "a carry that counts down": """
for i, (m,) in pl.range(4, init_values=(n,)):
    if m >= 0:
        y = pl.store(t, [0, 0], y)
    else:
        y = pl.store(t, [8 * i, 0], y)
    left = pl.yield_(m - 2)
""",
    "a variable that counts down": """
m = n
for i in pl.range(4):
    if m >= 0:
        y = pl.store(t, [0, 0], y)
    else:
        y = pl.store(t, [8 * i, 0], y)
    m = m - 2
""",
    "a loop that runs below zero": """
for i in pl.range(2, -3, -1):
    if i < 0:
        y = pl.store(t, [8 * (0 - i), 0], y)
""",
    "a loop that starts below zero": """
for i in pl.range(n - 3, 2):
    if i < 0:
        y = pl.store(t, [8 * (0 - i), 0], y)
""",
    "the result of a branch": """
m = n
if n < 3:
    m = n - 2
if m < 0:
    y = pl.store(t, [8, 0], y)
""",
}


@pytest.mark.parametrize("body", SIGNS.values(), ids=SIGNS)
@pytest.mark.parametrize("n", SCALARS)
def test_simplification_knows_which_scalars_can_be_negative(body, n):
    before = kernel(f"t = pl.load(x, [0, 0], [8, {COLS}])\n{body.strip()}\nreturn y", PARAMETERS, kind="InCore")
    after = run(before, "convert_to_ssa", "simplify")
    assert torch.equal(output(after, n), output(before, n))


def test_a_carry_that_only_grows_is_known_not_to_be_negative():
    body = """
for i, (m,) in pl.range(4, init_values=(n,)):
    if m >= 0:
        y = pl.write(y, [i, 0], 1.0)
    more = pl.yield_(m + 2)
return y
"""
    after = run(kernel(body, PARAMETERS, kind="InCore"), "convert_to_ssa", "simplify")
    assert "if " not in after.get_function("k").as_python()


@pytest.mark.parametrize("n", SCALARS)
@pytest.mark.parametrize("bounds", ["1, n", "n - 3, 2", "n, 5, 2"])
def test_a_pipeline_whose_bounds_cross_runs_no_iteration(bounds, n):
    body = f"""
for i in pl.pipeline({bounds}, stage=3):
    t = pl.load(x, [(i % 8) * 8, 0], [8, {COLS}])
    y = pl.store(t, [(i % 8) * 8, 0], y)
return y
"""
    before = kernel(body, PARAMETERS, kind="InCore")
    after = run(before, "convert_to_ssa", "infer_tile_memory_space", "expand_mixed_kernel", "lower_pipeline_loops")
    assert torch.equal(output(after, n), output(before, n))


BLOCKS = """
t = pl.load(x, [0, 0], [8, 32])
for {head}
    for i, (a,) in pl.range(2, init_values=(t,)):
        b = pl.mul(a, 0.5)
        r = pl.yield_(b)
    y = pl.store(r, [0, 0], y)
return y
"""


@pytest.mark.parametrize(
    ("head", "name"),
    [("j in pl.unroll(2):", "unroll_loops"),
     ("j in pl.range(4):\n    if j > n:\n        if j < 3:\n            continue", "ctrl_flow_transform")],
)  # fmt: skip
def test_copies_of_a_body_have_blocks_of_their_own(head, name):
    before = kernel(BLOCKS.format(head=head), PARAMETERS, kind="InCore")
    with passes.PassContext([make_roundtrip_instrument()]):
        after = getattr(passes, name)()(before)
    assert torch.equal(output(after, 1), output(before, 1))


def test_the_torch_form_of_a_program_is_there_after_running_one():
    from pypto.debug import torch_codegen

    program = kernel("return y", PARAMETERS)
    run_as_torch(program, [torch.zeros(ROWS, COLS), 1, 0.5, torch.zeros(ROWS, COLS)])
    assert "def k(" in torch_codegen(program)
