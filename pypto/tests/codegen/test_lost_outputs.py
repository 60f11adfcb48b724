"""Out parameters that nothing writes."""

import pypto.language as pl
import pytest
import torch
from pypto.backend.pto_backend import PartialCodegenError


@pl.jit
def bound_twice(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        out = pl.mul(x, 2.0)
        out = pl.add(x, 1.0)
    return out  # noqa: RET504


@pl.jit
def written_twice(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        out[:] = pl.mul(x, 2.0)
    with pl.at(level=pl.Level.CORE_GROUP):
        out[:] = pl.add(x, 1.0)
    return out


def test_a_value_that_is_lost_twice_is_an_error_that_names_the_remedy():
    x = torch.ones(64)
    with pytest.raises(PartialCodegenError, match=r"out\[:\] = <expr>") as caught:
        bound_twice(x, torch.zeros(64))
    assert [name for name, _ in caught.value.failures] == ["bound_twice"]


def test_writing_through_the_parameter_twice_keeps_the_last_value():
    x, out = torch.ones(64), torch.zeros(64)
    written_twice(x, out)
    assert torch.equal(out, x + 1)
