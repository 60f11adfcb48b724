"""``pld.tensor.allreduce`` in kernels: the schedules as several simulated ranks run them."""

from __future__ import annotations

import pypto.language as pl
import pytest
import torch
from pass_programs import calls, run, text
from simulated_ranks import run_on_ranks

from pypto import ir

OPERATIONS = {
    "Sum": lambda values: sum(values[1:], values[0]),
    "Max": lambda values: torch.stack(values).amax(0),
    "Min": lambda values: torch.stack(values).amin(0),
    "Prod": lambda values: torch.stack(values).prod(0),
}


def program(shape: str, ranks: int, *, dtype: str = "FP32", op: str = "Sum", mode: str = "ring", times: int = 1,
            view: str = "", signal: str = "") -> ir.Program:  # fmt: skip
    window = f"pld.DistributedTensor[{shape}, pl.{dtype}{view}]"
    rows = signal or (f"[{2 * (ranks - 1)}, {ranks}]" if mode == "ring" else f"[{ranks}, 1]")
    call = f'        data = pld.tensor.allreduce(data, signal, op=pld.ReduceOp.{op}, mode="{mode}")\n'
    return pl.parse_program(f"""
import pypto.language as pl
import pypto.language.distributed as pld


@pl.program
class Prog:
    @pl.function(type=pl.FunctionType.InCore)
    def k(self, data: pl.InOut[{window}], signal: pl.InOut[pld.DistributedTensor[{rows}, pl.INT32]]) -> {window}:
{call * times}        return data
""")


def reduced(prog: ir.Program, data: list[torch.Tensor], signal: tuple[int, int]) -> list[torch.Tensor]:
    """What every rank's window holds afterwards; the signals are zero again."""
    after = run(prog, "convert_to_ssa", "lower_composite_ops")
    windows = [{"data": d.clone(), "signal": torch.zeros(signal, dtype=torch.int32)} for d in data]
    run_on_ranks(after.get_function("k"), windows)
    assert all(not w["signal"].any() for w in windows)
    return [w["data"] for w in windows]


def values(ranks: int, *shape: int, dtype: torch.dtype = torch.float32) -> list[torch.Tensor]:
    torch.manual_seed(ranks)
    return [torch.randint(-3, 4, shape).to(dtype) for _ in range(ranks)]


@pytest.mark.parametrize("ranks", [2, 3, 4])
@pytest.mark.parametrize("size", [1, 3, 17, 64, 8200])
def test_every_rank_gets_the_sum(size, ranks):
    data = values(ranks, 1, size)
    results = reduced(program(f"[1, {size}]", ranks), data, (2 * (ranks - 1), ranks))
    assert all(torch.equal(r, OPERATIONS["Sum"](data)) for r in results)


@pytest.mark.parametrize("op", OPERATIONS)
def test_every_operation_works_on_half_precision_with_ragged_segments(op):
    data = values(3, 1, 53, dtype=torch.float16)
    results = reduced(program("[1, 53]", 3, dtype="FP16", op=op), data, (4, 3))
    assert all(torch.equal(r, OPERATIONS[op](data)) for r in results)


def test_a_signal_serves_one_call_after_another():
    data = values(3, 2, 20)
    results = reduced(program("[2, 20]", 3, times=2), data, (4, 3))
    assert all(torch.equal(r, 3 * OPERATIONS["Sum"](data)) for r in results)


@pytest.mark.parametrize("size", [5, 5000])
def test_the_mesh_schedule_gives_the_same_sum(size):
    data = values(3, 1, size)
    results = reduced(program(f"[1, {size}]", 3, mode="mesh"), data, (3, 1))
    assert all(torch.equal(r, OPERATIONS["Sum"](data)) for r in results)


@pytest.mark.parametrize(
    ("view", "message"),
    [
        ("pl.TensorView(valid_shape=[1, 3, 2], stride=[], layout=pl.TensorLayout.ND)", "contiguous row-major prefix"),
        ("pl.TensorView(stride=[100, 10, 1], layout=pl.TensorLayout.ND)", "requires a packed source"),
        ("pl.TensorView(stride=[12, 1, 3], layout=pl.TensorLayout.DN)", "only supports ND layout"),
    ],
)
def test_targets_that_are_no_single_stream_are_refused(view, message):
    with pytest.raises(ValueError, match=message):
        run(program("[2, 3, 4]", 2, view=", " + view), "lower_composite_ops")


def test_the_signal_has_a_row_per_round():
    with pytest.raises(ValueError, match=r"must be \[2\*\(NR-1\), NR\], got \[3, 2\]"):
        run(program("[1, 8]", 2, signal="[3, 2]"), "lower_composite_ops")


def test_lowering_is_idempotent_and_handles_returned_calls():
    once = run(program("[1, 8]", 2), "lower_composite_ops")
    assert ir.structural_equal(run(once, "lower_composite_ops"), once)
    returned = text(program("[1, 8]", 2)).splitlines()
    call = next(line for line in returned if "pld.tensor.allreduce" in line)
    direct = [line for line in returned if line is not call]
    direct[-1] = "        return " + call.split(" = ", 1)[1]
    after = run(pl.parse_program("\n".join(direct)), "lower_composite_ops")
    assert calls(after) == calls(once)
