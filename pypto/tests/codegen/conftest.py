"""Lowered kernels as text, and the ``.pto`` they become."""

from __future__ import annotations

import textwrap

import pypto.language as pl
import pytest
from pypto.backend import BackendType, use_backend
from pypto.codegen.pto import generate_module


def kernel_program(body: str, params: str, *, kind: str = "AIV", name: str = "k") -> object:
    """A program of one lowered kernel."""
    text = (
        "import pypto.language as pl\n\n@pl.program\nclass P:\n"
        f"    @pl.function(type=pl.FunctionType.{kind})\n    def {name}({params}):\n"
        + textwrap.indent(textwrap.dedent(body).strip(), " " * 8)
        + "\n"
    )
    return pl.parse(text)


@pytest.fixture(scope="session")
def lowered():
    """Function: lowered kernel text -> program."""
    return kernel_program


@pytest.fixture
def pto():
    """Function: lowered kernel text -> lines of ``.pto`` without locations."""

    def generate(body: str, params: str, *, arch: str = "910B", kind: str = "AIV", addresses: bool = True) -> list[str]:
        program = kernel_program(body, params, kind=kind)
        with use_backend(BackendType[f"Ascend{arch}"]):
            text = generate_module(list(program.functions.values()), emit_tile_addr=addresses, emit_source_loc=False)
        return text.splitlines()

    return generate
