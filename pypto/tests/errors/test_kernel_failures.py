"""Kernels that crash, never end or ask for too much: one error that names kernel and task, and the process lives on."""

from __future__ import annotations

import pypto.language as pl
import pytest
import torch
from pypto.runtime import ChipWorker, RunConfig

SHAPE = (32, 64)

SOURCE = """\
#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <pto/pto-inst.hpp>
#include "tensor.h"

extern "C" void kernel_entry(int64_t *args) {
    auto *tensor = reinterpret_cast<ChipTensor *>(args[0]);
    float *y = reinterpret_cast<float *>(tensor->buffer.addr) + tensor->start_offset;
    (void)y;
    %s
}
"""


def with_kernel(tmp_path, body: str):
    """An entry that runs a hand-written kernel ``broken`` on its output."""
    source = tmp_path / "broken.cpp"
    source.write_text(SOURCE % body)

    @pl.jit.extern(core_type="aiv", source=source)
    def broken(y: pl.InOut[pl.Tensor[[32, 64], pl.FP32]]) -> pl.Tensor[[32, 64], pl.FP32]: ...

    @pl.jit
    def run_it(x: pl.Tensor, y: pl.InOut[pl.Tensor]):
        return broken(y)

    return run_it


def test_a_kernel_without_entry_point_is_named(tmp_path):
    (tmp_path / "other.cpp").write_text('extern "C" int something_else() { return 1; }\n')

    @pl.jit.extern(core_type="aiv", source=tmp_path / "other.cpp")
    def other(y: pl.InOut[pl.Tensor[[32, 64], pl.FP32]]) -> pl.Tensor[[32, 64], pl.FP32]: ...

    @pl.jit
    def run_it(x: pl.Tensor, y: pl.InOut[pl.Tensor]):
        return other(y)

    with pytest.raises(RuntimeError, match=r"kernel 'other': .*does not export 'kernel_entry'"):
        run_it(torch.ones(SHAPE), torch.zeros(SHAPE))


@pl.jit
def add_one(x: pl.Tensor, y: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        y[:] = pl.add(x, 1.0)
    return y


def healthy() -> bool:
    x, y = torch.ones(SHAPE), torch.zeros(SHAPE)
    add_one(x, y)
    return torch.equal(y, x + 1)


@pytest.mark.parametrize(
    ("body", "what"),
    [
        ("*reinterpret_cast<volatile int *>(64) = 1;", "crashed (SIGSEGV, invalid memory access, address 0x40)"),
        ("volatile int zero = 0; y[0] = 7 / zero;", "crashed (SIGFPE, arithmetic fault"),
        ("::abort();", "crashed (SIGABRT, the kernel called abort()"),
        ("__builtin_trap();", "crashed (SIGILL, illegal instruction"),
        ('throw std::runtime_error("no mode 7");', "threw: no mode 7"),
    ],
)
def test_a_crash_names_kernel_and_task(tmp_path, body, what):
    with pytest.raises(RuntimeError) as caught:
        with_kernel(tmp_path, body)(torch.ones(SHAPE), torch.zeros(SHAPE))
    message = str(caught.value)
    assert "kernel 'broken'" in message
    assert "of task r" in message
    assert what in message
    assert healthy()


def test_a_kernel_that_never_ends_is_interrupted(tmp_path, monkeypatch):
    monkeypatch.setenv("SIMPLER_SCHEDULER_TIMEOUT_MS", "200")
    entry = with_kernel(tmp_path, "while (*const_cast<volatile float *>(y) == 0.0f) continue;")
    with ChipWorker(RunConfig()):
        with pytest.raises(
            RuntimeError, match=r"-100: .*running-stalled.*task r\dt0 kernel 'broken' \(AIV0\)"
        ) as caught:
            entry(torch.ones(SHAPE), torch.zeros(SHAPE))
        assert "look for a kernel that does not return; SIMPLER_SCHEDULER_TIMEOUT_MS sets the limit" in str(
            caught.value
        )
        assert healthy()


def test_a_task_window_that_is_too_small():
    @pl.jit
    def many(x: pl.Tensor, y: pl.Out[pl.Tensor]):
        with pl.manual_scope():
            for i in pl.range(16):
                with pl.at(level=pl.Level.CORE_GROUP):
                    y[i : i + 1, :] = pl.add(x[i : i + 1, :], 1.0)
        return y

    x, y = torch.ones(SHAPE), torch.zeros(SHAPE)
    with pytest.raises(RuntimeError, match=r"(?s)run failed with code -1: .*SCOPE_DEADLOCK.*raise ring_task_window"):
        many(x, y, config=RunConfig(ring_task_window=4))
    many(x, y)
    assert torch.equal(y[:16], x[:16] + 1)


def test_an_orchestration_that_submits_without_end():
    @pl.jit
    def endless(x: pl.Tensor, y: pl.Out[pl.Tensor]):
        n = 0
        while n < 3:
            with pl.at(level=pl.Level.CORE_GROUP):
                y[:] = pl.add(x, 1.0)
        return y

    with pytest.raises(RuntimeError, match=r"(?s)run failed with code -1: .*raise ring_task_window"):
        endless(torch.ones(SHAPE), torch.zeros(SHAPE), config=RunConfig(ring_task_window=64))
    assert healthy()


def test_a_heap_that_is_too_small():
    @pl.jit
    def staged(x: pl.Tensor, y: pl.Out[pl.Tensor]):
        middle = pl.create_tensor([32, 64], dtype=pl.FP32)
        with pl.at(level=pl.Level.CORE_GROUP):
            middle[:] = pl.add(x, 1.0)
        with pl.at(level=pl.Level.CORE_GROUP):
            y[:] = pl.mul(middle, 2.0)
        return y

    x, y = torch.ones(SHAPE), torch.zeros(SHAPE)
    with pytest.raises(RuntimeError, match=r"(?s)run failed with code -2: .*raise ring_heap"):
        staged(x, y, config=RunConfig(ring_heap=1024))
    staged(x, y)
    assert torch.equal(y, (x + 1) * 2)
