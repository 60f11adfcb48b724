"""Test-case specifications and golden files."""

from __future__ import annotations

import ctypes

import pytest
import torch
from pypto.runtime import ScalarSpec, TensorSpec
from pypto.runtime.golden import compare, inline_source, load_golden, write_golden


@pytest.mark.parametrize(
    ("init", "expected"),
    [
        (None, torch.zeros(2, 3)),
        (1.5, torch.full((2, 3), 1.5)),
        (torch.ones(2, 3, dtype=torch.int32), torch.ones(2, 3)),
        (torch.ones, torch.ones(2, 3)),
        (lambda: [[1, 2, 3], [4, 5, 6]], torch.tensor([[1.0, 2, 3], [4, 5, 6]])),
    ],
)
def test_tensors_are_made_from_every_kind_of_initial_value(init, expected):
    made = TensorSpec("x", [2, 3], torch.float32, init_value=init).create_tensor()
    assert made.dtype == torch.float32
    assert torch.equal(made, expected)


def test_other_initial_values_are_refused():
    with pytest.raises(TypeError, match="init_value of tensor 'x'"):
        TensorSpec("x", [2], torch.float32, init_value="a").create_tensor()


def test_scalars_know_their_c_type():
    value = ScalarSpec("n", 7, "int32").create_value()
    assert isinstance(value, ctypes.c_int32)
    assert value.value == 7
    with pytest.raises(ValueError, match="int16"):
        ScalarSpec("n", 1, "int16")


def test_golden_files_hold_inputs_and_outputs(tmp_path):
    specs = [TensorSpec("x", [4], torch.float32, torch.randn), TensorSpec("y", [4], torch.float32, is_output=True)]

    def golden(tensors, params):
        tensors["y"][:] = tensors["x"] * params["factor"]

    module = load_golden(write_golden(specs, golden, tmp_path, scalar_specs=[ScalarSpec("factor", 3)]))
    names = [name for name, _ in module["generate_inputs"]({})]
    assert names == ["x", "y", "factor"]
    tensors = {name: value for name, value in module["generate_inputs"]({}) if name != "factor"}
    module["compute_golden"](tensors, {})
    assert torch.equal(tensors["y"], tensors["x"] * 3)
    assert module["__outputs__"] == ["y"]


def test_existing_data_is_reused_only_when_complete(tmp_path):
    specs = [TensorSpec("x", [4], torch.float32, torch.randn), TensorSpec("y", [4], torch.float32, is_output=True)]
    calls = []

    def golden(tensors, params):
        calls.append(1)

    for _ in range(2):
        write_golden(specs, golden, tmp_path / "golden.py", data_dir=tmp_path / "data")
    assert len(calls) == 1
    (tmp_path / "data" / "out" / "y.pt").unlink()
    write_golden(specs, golden, tmp_path / "golden.py", data_dir=tmp_path / "data")
    assert len(calls) == 2


def test_a_difference_names_the_output():
    with pytest.raises(AssertionError, match="output 'y'"):
        compare("y", torch.zeros(2), torch.ones(2), 1e-5, 1e-5)


@pytest.mark.parametrize("value", [torch.full((3, 4), 2.5), torch.eye(5), torch.arange(6).reshape(2, 3)])
def test_small_and_regular_tensors_are_written_as_source(value):
    assert torch.equal(eval(inline_source(value), {"torch": torch}), value)


def test_large_arbitrary_tensors_are_not_written_inline():
    with pytest.raises(ValueError, match="too large"):
        inline_source(torch.arange(101))
