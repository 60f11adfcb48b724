"""The xDSL view of the dialect follows the operation table and reads what we print."""

from __future__ import annotations

import pytest
from pto_text import ADD_KERNEL, TB, VIEWS, kernel
from ptoas_bridge.dialect.table import REGISTRY
from ptoas_bridge.parser import parse_module
from test_printer import LINES

pytest.importorskip("xdsl")

from ptoas_bridge.xdsl_dialect import OPERATIONS, pto_context, to_xdsl
from xdsl.parser import Parser
from xdsl.utils.exceptions import ParseError, VerifyException


def names(module) -> list[str]:
    return [op.name for op in module.walk()]


def test_every_operation_of_the_table_is_registered():
    assert set(OPERATIONS) == {name for name in REGISTRY if name.startswith("pto.")}
    context = pto_context()
    assert all(context.get_optional_op(name) is not None for name in OPERATIONS)


def test_kernel_converts_in_program_order():
    found = names(to_xdsl(parse_module(ADD_KERNEL)))
    assert [n for n in found if n in ("pto.tload", "pto.tadd", "pto.tstore")] == [
        "pto.tload", "pto.tload", "pto.tadd", "pto.tstore",
    ]  # fmt: skip


@pytest.mark.parametrize("line", [line for line in LINES if "index_switch" not in line])
def test_printed_xdsl_text_reads_back(line):
    text = kernel(VIEWS + f"%s = pto.alloc_tile addr = %a1 : {TB}\n" + line)
    module = to_xdsl(parse_module(text))
    again = Parser(pto_context(), str(module)).parse_module()
    again.verify()
    assert str(again) == str(module)


def test_operand_counts_are_verified():
    text = str(to_xdsl(parse_module(ADD_KERNEL)))
    start = text.index('"pto.tadd"(') + len('"pto.tadd"(')
    first = text[start : text.index(",", start)]
    broken = text.replace(f'"pto.tadd"({first}, ', '"pto.tadd"(').replace("array<i32: 2, 1, 0>", "array<i32: 1, 1, 0>")
    broken = broken.replace(f": ({TB}, {TB}, {TB}) -> ()", f": ({TB}, {TB}) -> ()")
    with pytest.raises(VerifyException, match="operands in 'ins', got 1"):
        Parser(pto_context(), broken).parse_module().verify()


def test_bad_types_are_refused():
    text = str(to_xdsl(parse_module(ADD_KERNEL))).replace("32x32xf32>", "0x32xf32>", 1)
    with pytest.raises((ParseError, VerifyException)):
        Parser(pto_context(), text).parse_module().verify()
