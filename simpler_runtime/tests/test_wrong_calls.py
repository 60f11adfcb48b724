"""Arguments of every wrong kind: one clear error each, and the worker goes on working."""

from __future__ import annotations

import ctypes
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simpler_runtime import CallConfig, ChipCallable, ChipStorageTaskArgs, ChipTensor, CoreCallable, DataType

F32 = DataType.FLOAT32
SHAPES = {"none": None, "number": 3, "text": "44", "float": (1.5,), "text inside": ("4",), "none inside": (None, 4)}


@pytest.mark.parametrize("case", SHAPES)
def test_a_shape_is_a_sequence_of_ints(lab, case):
    host = lab.worker().create_buffer(64)
    for call in (lambda s: ChipTensor.make(64, s, F32), lambda s: host.tensor(s, F32)):
        with pytest.raises(TypeError, match=r"a sequence of ints|must be an int"):
            call(SHAPES[case])
    lab.worker().free(host)


@pytest.mark.parametrize("value", [None, "64", 1.5, math.inf, [64]])
def test_an_address_is_an_int(value):
    with pytest.raises(TypeError, match="an address must be an int"):
        ChipTensor.make(value, (4,), F32)


@pytest.mark.parametrize("name", ["aicpu_thread_num", "enable_chip_swimlane", "enable_dump_args", "enable_pmu"])
@pytest.mark.parametrize("value", [None, "2", 2.5, math.nan, math.inf, [2], {}])
def test_levels_and_counts_are_ints(name, value):
    with pytest.raises(TypeError, match=f"{name} must be an int"):
        CallConfig(**{name: value})


def test_a_count_that_does_not_fit():
    with pytest.raises(ValueError, match="enable_pmu must fit in 32 bits"):
        CallConfig(enable_pmu=2**40)


@pytest.mark.parametrize("value", [None, 5, "code", [1, 2], object()])
def test_a_binary_is_bytes(value):
    with pytest.raises(TypeError, match="a binary is given as bytes"):
        CoreCallable.build((), value)


@pytest.mark.parametrize("size", [2**62, 10**30])
def test_memory_that_nobody_has(lab, size):
    for allocate in (lab.worker().malloc, lab.worker().create_buffer):
        with pytest.raises(MemoryError, match=f"cannot allocate {size} bytes"):
            allocate(size)


def test_a_tensor_without_memory():
    class Unbacked:
        device, dtype, shape = None, np.dtype(np.float32), (4,)

        def data_ptr(self):
            return 0

        def stride(self):
            return (1,)

    with pytest.raises(ValueError, match=r"the Unbacked of shape \(4,\) has no memory"):
        ChipStorageTaskArgs().add_tensor(Unbacked())


@given(st.one_of(st.floats(), st.integers(-(2**70), 2**70), st.booleans()))
def test_scalars_fill_their_slot_or_are_refused(value):
    args = ChipStorageTaskArgs()
    if isinstance(value, int) and not -(2**63) <= value < 2**64:
        with pytest.raises(ValueError, match="does not fit in 64 bits"):
            args.add_scalar(value)
        return
    args.add_scalar(value)
    slot = args.scalar(0)
    if isinstance(value, float):
        as_float = ctypes.c_float.from_buffer_copy(slot.to_bytes(8, "little")).value
        assert as_float == ctypes.c_float(value).value or math.isnan(value)
    else:
        assert slot == value % 2**64


def test_a_tensor_of_several_elements_is_no_scalar():
    with pytest.raises((TypeError, ValueError)):
        ChipStorageTaskArgs().add_scalar(np.ones(3))


@given(st.data())
def test_damaged_callables_are_refused_or_read(data):
    whole = ChipCallable.build((), "f", b"code" * 40, [(0, CoreCallable.build((), b"kernel" * 9))]).to_bytes()
    raw = bytearray(whole)
    for _ in range(data.draw(st.integers(1, 5))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    raw = raw[: data.draw(st.integers(0, len(raw)))]
    try:
        read = ChipCallable.from_bytes(bytes(raw))
    except ValueError:
        return
    assert isinstance(read, ChipCallable)


@pytest.mark.parametrize("part", [0.02, 0.3, 0.6])
def test_a_library_that_is_cut_short(lab, part):
    whole = lab.build("", {}, count=0).code.content
    cut = ChipCallable.build((), "", whole[: int(len(whole) * part)], [])
    with pytest.raises(RuntimeError, match="cannot load"):
        lab.worker().register(cut)


def test_what_is_no_library(lab):
    for content in (b"x", b"\x7fELF", b"\x7fELF" + bytes(200), b"#!/bin/sh\n", bytes(10000)):
        with pytest.raises(RuntimeError, match="cannot load"):
            lab.worker().register(ChipCallable.build((), "", content, []))
