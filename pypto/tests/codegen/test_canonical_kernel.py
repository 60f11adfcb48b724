"""Kernel files that differ only in their own names have one canonical text, others never do."""

from __future__ import annotations

import pytest
from pypto.backend import BackendType, get_handler, use_backend
from pypto.codegen.kernel_text import canonical_kernel
from pypto.codegen.kernel_wrapper import kernel_file
from pypto.codegen.pto import generate_module

import ptoas_bridge

BODY = """
t: pl.Tile[[16, 64], pl.FP32, pl.MemRef("m0", pl.const(0, pl.INT64), 4096), pl.Mem.Vec] = pl.tile.load({x}, [0, 0], [16, 64], [16, 64], target_memory=pl.Mem.Vec)
d: pl.Tile[[16, 64], pl.FP32, pl.MemRef("m1", pl.const(4096, pl.INT64), 4096), pl.Mem.Vec] = pl.tile.{op}(t, {k})
r: pl.Tensor[[16, 64], pl.FP32] = pl.tile.store(d, [0, 0], {y})
return {y}
"""  # noqa: E501
PARAMS = "{x}: pl.Tensor[[16, 64], pl.FP32], {k}: pl.Scalar[pl.FP32], {y}: pl.Out[pl.Tensor[[16, 64], pl.FP32]]"


@pytest.fixture(scope="module")
def kernel(lowered):
    """Function: names and operator -> kernel file."""

    def make(name: str = "k", op: str = "muls", **names: str) -> str:
        names = {"x": "x", "y": "y", "k": "factor", **names}
        program = lowered(BODY.format(op=op, **names), PARAMS.format(**names), name=name)
        with use_backend(BackendType.Ascend910B):
            functions = list(program.functions.values())
            text = generate_module(functions, emit_source_loc=False)
            assembly = ptoas_bridge.assemble(text, arch="a3", level="level3")
            return kernel_file(functions[0], functions, assembly, get_handler())

    return make


@pytest.mark.parametrize(
    "other", [{"name": "scale_1"}, {"x": "weights"}, {"k": "x", "x": "factor"}, {"name": "y2", "y": "k2"}]
)
def test_own_names_do_not_matter(kernel, other):
    first, second = kernel(), kernel(**other)
    assert first != second
    assert canonical_kernel(first) == canonical_kernel(second)


@pytest.mark.parametrize("other", [{"op": "adds"}, {"name": "TMULS", "op": "adds"}])
def test_what_a_kernel_does_matters(kernel, other):
    assert canonical_kernel(kernel()) != canonical_kernel(kernel(**other))


def test_a_name_that_is_also_an_instruction_is_kept(kernel):
    assert canonical_kernel(kernel("TMULS", op="muls")) != canonical_kernel(kernel("TADDS", op="adds"))


def test_strings_are_kept_and_comments_are_not(kernel):
    text = kernel()
    printing = text.replace("    k(x", '    puts("k // x");\n    k(x')
    assert '"k // x"' in canonical_kernel(printing)
    assert "// pto:" not in canonical_kernel(text) and "Unpack" not in canonical_kernel(text)


def test_other_sources_are_left_alone():
    source = '// Kernel Function: k\nextern "C" void kernel_entry(long* args) { /* by hand */ }\n'
    assert canonical_kernel(source) == source
