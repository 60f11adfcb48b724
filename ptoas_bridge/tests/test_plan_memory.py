"""Memory planning of level1/level2: live tiles never overlap, dead ones are reused, overflow is an error."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pto_text import PV, VECTOR, VIEWS, kernel, tile
from ptoas_bridge.parser import parse_module
from ptoas_bridge.passes.capacity import CAPACITY
from ptoas_bridge.passes.liveness import buffers_of
from ptoas_bridge.passes.plan_memory import plan_memory

from ptoas_bridge import AssemblerError, assemble


def plan(body: str, arch: str = "a3"):
    """Buffers of a planned kernel by name."""
    module = parse_module(kernel(VIEWS + body, attrs=VECTOR), arch=arch)
    plan_memory(module)
    found = {}
    for buffer in buffers_of(module.functions[0]):
        buffer.address = buffer.op.attrs["planned_address"]
        found[buffer.op.result.name] = buffer
    return found


def alloc(name: str, rows: int = 32) -> str:
    return f"%{name} = pto.alloc_tile : {tile(rows)}\n"


def move(source: str, target: str, rows: int = 32) -> str:
    return f"pto.tmov ins(%{source} : {tile(rows)}) outs(%{target} : {tile(rows)})\n"


def load(name: str) -> str:
    return f"pto.tload ins(%xp : {PV}) outs(%{name} : {tile()})\n"


def store(name: str) -> str:
    return f"pto.tstore ins(%{name} : {tile()}) outs(%yp : {PV})\n"


def test_dead_tile_is_reused():
    found = plan(alloc("a") + alloc("b") + alloc("c") + load("a") + move("a", "b") + move("b", "c") + store("c"))
    assert found["%a"].address == found["%c"].address == 0
    assert found["%b"].address == 4096


def test_tile_live_through_a_loop_is_not_reused_inside():
    body = alloc("a") + load("a") + "scf.for %i = %c0 to %c32 step %c1 {\n"
    body += alloc("b") + alloc("c") + move("a", "b") + move("b", "c") + store("c") + "}\n"
    found = plan(body)
    assert found["%a"].address not in (found["%b"].address, found["%c"].address)


def test_views_keep_their_parent_alive():
    body = alloc("a") + load("a") + f"%v = pto.treshape %a : {tile()} -> {tile()}\n"
    body += alloc("b") + load("b") + store("b") + store("v")
    found = plan(body)
    assert found["%a"].address != found["%b"].address


def test_branch_results_and_loop_arguments_keep_both_sources_alive():
    t = tile()
    body = alloc("a") + alloc("b") + load("a") + load("b") + "%p = arith.constant true\n"
    body += f"%r = scf.if %p -> ({t}) {{\nscf.yield %a : {t}\n}} else {{\nscf.yield %b : {t}\n}}\n"
    body += alloc("c") + load("c") + store("c") + store("r")
    found = plan(body)
    assert len({b.address for b in found.values()}) == 3


def test_slots_of_a_multi_tile_are_apart():
    multi = f"!pto.multi_tile_buf<{tile()}, count=3>"
    body = alloc("a") + f"%m = pto.alloc_multi_tile : {multi}\n%s = pto.multi_tile_get %m[%c1] : {multi} -> {tile()}\n"
    found = plan(body + load("a") + load("s") + store("s") + store("a"))
    assert found["%m"].size == 3 * 4096
    assert found["%a"].address not in range(found["%m"].address, found["%m"].address + found["%m"].size)


def test_reserved_buffers_come_first():
    body = '%z = pto.reserve_buffer {name = "b", size = 1000, location = #pto.address_space<vec>, auto = true} -> i32\n'
    found = plan(body + alloc("a") + load("a") + store("a"))
    assert found["%a"].address == 1024


def test_overflow_names_space_and_bits():
    rows = 512  # 64 KiB each
    body = "".join(alloc(n, rows) for n in "abc") + alloc("d", 2)
    uses = move("a", "b", rows) + move("b", "c", rows) + move("d", "d", 2) + move("a", "c", rows) + move("b", "a", rows)
    with pytest.raises(AssemblerError, match="vec overflow, requires 1574912 bits while 1572864 bits avaliable!"):
        assemble(kernel(VIEWS + body + uses), level="level2")
    dead = move("d", "d", 2) + move("a", "b", rows) + move("b", "c", rows)
    assert assemble(kernel(VIEWS + body + dead), level="level2")


def test_elementwise_result_takes_over_a_dying_operand_when_memory_is_short():
    t = tile(1024)  # 128 KiB: two of them do not fit
    body = f"%a = pto.alloc_tile : {t}\n%b = pto.alloc_tile : {t}\n"
    body += f"pto.texpands ins(%f : f32) outs(%a : {t})\npto.tabs ins(%a : {t}) outs(%b : {t})\n"
    body += f"pto.tabs ins(%b : {t}) outs(%b : {t})\n"
    found = plan("%f = arith.constant 1.0 : f32\n" + body)
    assert found["%a"].address == found["%b"].address == 0


def test_scratch_is_made_for_operations_that_need_it():
    mask, t = tile(32, 32, "ui8"), tile()
    body = (
        f"%m = pto.alloc_tile : {mask}\n" + alloc("a") + f"pto.tsel ins(%m, %a, %a : {mask}, {t}, {t}) outs(%a : {t})"
    )
    cpp = assemble(kernel(body), level="level2", enable_insert_sync=False)
    assert "Tile<TileType::Vec, uint32_t, 1, 8," in cpp
    sequence = tile(1, 32, "i32")
    body = f"%n = arith.constant 0 : i32\n%s = pto.alloc_tile : {sequence}\n"
    body += f"pto.tci ins(%n : i32) outs(%s : {sequence}) {{descending = false}}"
    assert "TCI<Tile<TileType::Vec, int32_t, 1, 32" in assemble(kernel(body), level="level2", enable_insert_sync=False)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7)), min_size=1, max_size=20), st.data())
def test_live_buffers_never_overlap(moves, data):
    body = "".join(alloc(f"t{i}") for i in range(8))
    depth = 0
    for source, target in moves:
        if data.draw(st.booleans()) and depth < 2:
            depth += 1
            body += f"scf.for %i{depth}_{len(body)} = %c0 to %c32 step %c1 {{\n"
        body += move(f"t{source}", f"t{target}")
    found = [b for b in plan(body + "}\n" * depth).values() if b.first >= 0]
    for i, a in enumerate(found):
        assert a.address % 256 == 0
        assert a.address + a.size <= CAPACITY["a3"]["vec"]
        for b in found[i + 1 :]:
            if a.first <= b.last and b.first <= a.last:
                assert a.address + a.size <= b.address or b.address + b.size <= a.address
