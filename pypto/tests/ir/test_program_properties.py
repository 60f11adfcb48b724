"""Properties of whole programs drawn as text: text and bytes round trips, equality, hashes, renaming, fixed points."""

from __future__ import annotations

import sys
from pathlib import Path

import pypto.language as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pypto.ir.printer import python_print

from pypto import ir

sys.path.insert(0, str(Path(__file__).parent))
from program_texts import changed_number, program_texts, renamed


def few(count: int) -> settings:
    return settings(
        max_examples=count, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
    )


def printed(node: ir.Program) -> str:
    return python_print(node, format=False)


@few(20)
@given(program_texts())
def test_parsing_what_was_printed_gives_the_same_program(text):
    program = pl.parse_program(text)
    restored = pl.parse_program(printed(program))
    ir.assert_structural_equal(program, restored)
    assert ir.structural_hash(program) == ir.structural_hash(restored)


@few(15)
@given(program_texts())
def test_printing_is_a_fixed_point(text):
    once = printed(pl.parse_program(text))
    assert printed(pl.parse_program(once)) == once


@few(15)
@given(program_texts())
def test_bytes_give_the_same_program(text):
    program = pl.parse_program(text)
    payload = ir.serialize(program)
    restored = ir.deserialize(payload)
    ir.assert_structural_equal(program, restored)
    assert ir.structural_hash(program) == ir.structural_hash(restored)
    assert printed(restored) == printed(program)
    assert ir.serialize(restored) == payload


@few(15)
@given(program_texts())
def test_names_of_variables_do_not_count(text):
    one, other = pl.parse_program(text), pl.parse_program(renamed(text))
    ir.assert_structural_equal(one, other)
    assert ir.structural_hash(one) == ir.structural_hash(other)


@few(15)
@given(program_texts(), st.integers(0, 20))
def test_a_changed_number_counts(text, position):
    changed = changed_number(text, position)
    if changed is None:
        return
    one, other = pl.parse_program(text), pl.parse_program(changed)
    assert not ir.structural_equal(one, other)
    with pytest.raises(ValueError, match=r"11\.5|value"):
        ir.assert_structural_equal(one, other)


@few(15)
@given(program_texts(), program_texts())
def test_equality_and_hashes_agree(first, second):
    one, other = pl.parse_program(first), pl.parse_program(second)
    equal = ir.structural_equal(one, other)
    assert equal == ir.structural_equal(other, one)
    if equal:
        assert ir.structural_hash(one) == ir.structural_hash(other)


@few(20)
@given(program_texts(), st.data())
def test_passes_leave_programs_that_can_be_printed_and_read(text, data):
    manager = ir.PassManager.get_strategy(ir.OptimizationStrategy.Default)
    program = pl.parse_program(text)
    stop = data.draw(st.integers(1, len(manager.passes)), label="passes")
    for pass_ in manager.passes[:stop]:
        program = pass_(program)
    restored = pl.parse_program(printed(program))
    ir.assert_structural_equal(program, restored)
    ir.assert_structural_equal(program, ir.deserialize(ir.serialize(program)))
