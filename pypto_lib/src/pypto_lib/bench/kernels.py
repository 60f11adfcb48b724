"""Programs through the whole stack against torch on the same processors.

Torch is given the better of one thread and all threads: on a busy machine its barriers make more threads slower.
Batches of both sides alternate, so that load hits both alike. Every result is compared with torch before it is timed.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from pypto_lib.bench import programs
from pypto_lib.bench.figures import Figure
from pypto_lib.bench.measure import Effort, paired_seconds

GROUP = "kernels"


def figures(effort: Effort) -> list[Figure]:
    """Bandwidth, GFLOP/s and elements per second of calls of compiled programs, the fixed cost of a call included."""
    import torch

    torch.manual_seed(7)
    found = [_rows(effort, *case) for case in _row_cases(torch, 64 if effort.quick else 4096)]
    sizes = (256,) if effort.quick else (256, 512, 1024)
    for dtype in (torch.float32, torch.float16, torch.bfloat16, torch.int8):
        found += [_matmul(effort, torch, dtype, size) for size in sizes]
    found.append(_attention(effort, torch))
    return found


def _row_cases(torch: Any, rows: int) -> list[tuple]:
    """(name, unit, amount, ours, torch expression, result tensor); both sides add into memory that exists."""
    cols, blocks = programs.COLS, rows // programs.STRIP
    x, y, z, sums = torch.randn(rows, cols), torch.randn(rows, cols), torch.zeros(rows, cols), torch.zeros(rows, cols)
    gain = torch.rand(1, cols)
    small = torch.zeros(programs.STRIP, cols)
    tile = [torch.randn_like(small), torch.randn_like(small)]
    cells = rows * cols
    return [
        (
            f"add fp32 {rows}x{cols}",
            "GB/s",
            12 * cells,
            lambda: programs.add(x, y, z, blocks),
            lambda: torch.add(x, y, out=sums),
            z,
        ),
        (
            f"add fp32 {programs.STRIP}x{cols}, one block",
            "GB/s",
            12 * small.numel(),
            lambda: programs.add(*tile, small, 1),
            lambda: torch.add(*tile, out=sums[: programs.STRIP]),
            small,
        ),
        (
            f"softmax fp32 {rows}x{cols}",
            "Gelem/s",
            cells,
            lambda: programs.softmax(x, z, blocks),
            lambda: torch.softmax(x, 1),
            z,
        ),
        (
            f"RMSNorm fp32 {rows}x{cols}",
            "Gelem/s",
            cells,
            lambda: programs.rms_norm(x, gain, z, blocks),
            lambda: torch.nn.functional.rms_norm(x, (cols,), gain[0], programs.EPS),
            z,
        ),
    ]


def _rows(effort: Effort, name: str, unit: str, amount: int, ours: Callable, theirs: Callable, result: Any) -> Figure:
    _check(name, ours, result, theirs(), 1e-5)
    bar_of_torch = "one block" not in name
    return _figure(effort, name, unit, amount, ours, theirs, bar_of_torch, "" if bar_of_torch else "cost of a call")


def _matmul(effort: Effort, torch: Any, dtype: Any, size: int) -> Figure:
    if dtype is torch.int8:
        a, b = (torch.randint(-9, 9, (size, size), dtype=dtype) for _ in range(2))
        c = torch.zeros(size, size, dtype=torch.int32)
        program, theirs = programs.matmul_int8, lambda: torch._int_mm(a, b)
    else:
        a, b = torch.randn(size, size).to(dtype), torch.randn(size, size).to(dtype)
        c = torch.zeros(size, size)
        program, theirs = programs.matmul, lambda: a @ b
    name = f"matmul {str(dtype).removeprefix('torch.')} {size}"
    _check(name, lambda: program(a, b, c, size), c, a.double() @ b.double(), 1e-3)
    return _figure(effort, name, "GFLOP/s", 2 * size**3, lambda: program(a, b, c, size), theirs, False)


def _attention(effort: Effort, torch: Any) -> Figure:
    heads, keys = (1, 256) if effort.quick else (8, 1024)
    queries, head = programs.QUERIES, programs.HEAD
    q, k, v = (torch.randn(heads * n, head).bfloat16() for n in (queries, keys, keys))
    out = torch.zeros(heads * queries, head)
    shaped = [t.view(1, heads, -1, head) for t in (q, k, v)]
    attention = torch.nn.functional.scaled_dot_product_attention
    name = f"flash attention bf16, {heads} heads, {queries} queries, {keys} keys"

    def ours() -> Any:
        return programs.flash_attention(q, k, v, out, heads, keys)

    _check(name, ours, out, attention(*(t.float() for t in shaped)).view_as(out), 2e-2)
    work = 4 * heads * queries * keys * head
    return _figure(effort, name, "GFLOP/s", work, ours, lambda: attention(*shaped), True)


def _check(name: str, ours: Callable, result: Any, expected: Any, tolerance: float) -> None:
    ours()
    error = (result.double() - expected.double()).abs().max().item()
    if not error <= tolerance * max(1.0, expected.double().abs().max().item()):
        raise ValueError(f"{name}: the result is off by {error:g}; a wrong program is not worth timing")


def _figure(
    effort: Effort,
    name: str,
    unit: str,
    amount: float,
    ours: Callable,
    theirs: Callable,
    bar_of_torch: bool,
    note: str = "",
) -> Figure:
    import torch

    repeat = 1 if effort.quick else effort.repeat
    all_threads = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    before, measured = torch.get_num_threads(), []
    try:
        for threads in sorted({1, all_threads}):
            torch.set_num_threads(threads)
            measured.append(paired_seconds(ours, theirs, repeat))
    finally:
        torch.set_num_threads(before)
    mine, torchs = min(pair[0] for pair in measured), min(pair[1] for pair in measured)
    rate, reference = amount / mine / 1e9, amount / torchs / 1e9
    return Figure(GROUP, name, rate, unit, reference if bar_of_torch else None, True, reference, note=note)
