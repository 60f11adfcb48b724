"""Sync insertion: placements on small kernels, and the ordering contract on random structured programs."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pto_text import ADD_KERNEL, HEADER, PV, TB, VECTOR, VIEWS, kernel, tile
from ptoas_bridge.dialect.ir import Operation, Region
from ptoas_bridge.parser import parse_module
from ptoas_bridge.passes import sync
from ptoas_bridge.passes.effects import effects_of
from ptoas_bridge.passes.pipes import lower_pipes
from ptoas_bridge.passes.storage import overlaps
from ptoas_bridge.passes.sync import insert_sync

from ptoas_bridge import assemble


def schedule(text: str, **options) -> list[str]:
    """The statements that matter for ordering, without operands of instructions."""
    keep = []
    for line in assemble(text, **options).split("\nAICORE ", 1)[1].splitlines():
        word = line.strip()
        name = word.split("(")[0].split("<")[0].strip()
        if name in ("set_flag", "wait_flag", "pipe_barrier", "ptoas_auto_sync_tail"):
            keep.append(word.rstrip(";").replace("PIPE_", "").replace("EVENT_ID", ""))
        elif name in ("for", "if", "while", "}", "} else {", "switch") or (
            name.isupper() and name.startswith("T") and name != "TASSIGN"
        ):
            keep.append(name)
    return keep


def allocations(*addresses: int, type_: str = TB) -> str:
    lines = []
    for number, address in enumerate(addresses):
        lines.append(f"  %ad{number} = arith.constant {address} : i64")
        lines.append(f"  %t{number} = pto.alloc_tile addr = %ad{number} : {type_}")
    return "\n".join(lines) + "\n"


LOAD = f"pto.tload ins(%xp : {PV}) outs({{}} : {TB})\n"
ABS = f"pto.tabs ins({{}} : {TB}) outs({{}} : {TB})\n"
STORE = f"pto.tstore ins({{}} : {TB}) outs(%yp : {PV})\n"


def test_load_add_store():
    assert schedule(ADD_KERNEL) == [
        "TLOAD", "TLOAD", "set_flag(MTE2, V, 0)", "wait_flag(MTE2, V, 0)", "TADD", "set_flag(V, MTE3, 0)",
        "wait_flag(V, MTE3, 0)", "TSTORE", "ptoas_auto_sync_tail(PTOAutoSyncTailMode::kBarrierAll)", "}",
    ]  # fmt: skip


def test_tail_comes_after_the_guard():
    cpp = assemble(ADD_KERNEL)
    assert "#endif // __DAV_VEC__\n\n  ptoas_auto_sync_tail(PTOAutoSyncTailMode::kBarrierAll);\n  return;\n}" in cpp


def test_nothing_without_the_option():
    words = schedule(ADD_KERNEL, enable_insert_sync=False)
    assert words == ["TLOAD", "TLOAD", "TADD", "TSTORE", "}"]


def test_hand_written_flags_switch_the_pass_off():
    text = ADD_KERNEL.replace("  pto.tadd", "  pto.set_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID3>]\n  pto.tadd")
    words = schedule(text)
    assert words == ["TLOAD", "TLOAD", "set_flag(MTE2, V, 3)", "TADD", "TSTORE", "}"]


def test_one_pipe_operation_needs_no_tail():
    text = kernel(VIEWS + allocations(0) + LOAD.format("%t0"), attrs=VECTOR)
    assert schedule(text) == ["TLOAD", "}"]


def test_tail_hint():
    hinted = ADD_KERNEL.replace("attributes {", 'attributes {pto.auto_sync_tail_hint = "setwait-mte3-to-s-event0", ')
    assert schedule(hinted)[-2] == "ptoas_auto_sync_tail(PTOAutoSyncTailMode::kSetWaitMte3ToSEvent0)"


def test_loop_in_place():
    body = allocations(0) + "scf.for %i = %c0 to %c32 step %c1 {\n" + LOAD.format("%t0")
    body += ABS.format("%t0", "%t0") + STORE.format("%t0") + "}"
    assert schedule(kernel(VIEWS + body, attrs=VECTOR), arch="a5") == [
        "set_flag(MTE3, MTE2, 0)", "for", "wait_flag(MTE3, MTE2, 0)", "TLOAD", "set_flag(MTE2, V, 0)",
        "wait_flag(MTE2, V, 0)", "TABS", "set_flag(V, MTE3, 0)", "wait_flag(V, MTE3, 0)", "TSTORE",
        "set_flag(MTE3, MTE2, 0)", "}", "wait_flag(MTE3, MTE2, 0)",
        "ptoas_auto_sync_tail(PTOAutoSyncTailMode::kBarrierAll)", "}",
    ]  # fmt: skip


def test_dependence_into_a_loop_waits_before_it():
    body = allocations(0, 4096) + LOAD.format("%t0") + "scf.for %i = %c0 to %c32 step %c1 {\n"
    body += ABS.format("%t0", "%t1") + "}\n" + STORE.format("%t1")
    words = schedule(kernel(VIEWS + body, attrs=VECTOR))
    loop = words.index("for")
    assert words[:loop] == ["TLOAD", "set_flag(MTE2, V, 0)", "wait_flag(MTE2, V, 0)"]
    after = words[loop:]
    assert after.index("}") < after.index("set_flag(V, MTE3, 0)") < after.index("TSTORE")


def test_value_read_again_by_the_same_pipe_needs_no_second_pair():
    body = allocations(0, 4096, 8192) + LOAD.format("%t0") + ABS.format("%t0", "%t1") + ABS.format("%t0", "%t2")
    words = schedule(kernel(VIEWS + body, attrs=VECTOR))
    assert words.count("wait_flag(MTE2, V, 0)") == 1


def test_two_loads_for_two_consumers_take_two_events():
    body = allocations(0, 4096, 8192, 12288) + LOAD.format("%t0") + LOAD.format("%t1")
    body += ABS.format("%t0", "%t2") + ABS.format("%t1", "%t3")
    words = schedule(kernel(VIEWS + body, attrs=VECTOR))
    assert {"wait_flag(MTE2, V, 0)", "wait_flag(MTE2, V, 1)"} <= set(words)


def test_more_than_eight_live_events_fall_back_to_a_full_barrier():
    count = 10
    body = allocations(*(i * 4096 for i in range(2 * count)))
    body += "".join(LOAD.format(f"%t{i}") for i in range(count))
    body += "".join(ABS.format(f"%t{i}", f"%t{count + i}") for i in range(count))
    words = schedule(kernel(VIEWS + body, attrs=VECTOR))
    assert "pipe_barrier(ALL)" in words
    assert not any("8)" in w or "9)" in w for w in words if "flag" in w)


def test_vector_barrier_only_on_a2a3():
    body = allocations(0, 4096) + ABS.format("%t0", "%t1") + ABS.format("%t1", "%t0")
    text = kernel(VIEWS + body, attrs=VECTOR)
    assert schedule(text, arch="a3")[:3] == ["TABS", "pipe_barrier(V)", "TABS"]
    assert schedule(text, arch="a5")[:2] == ["TABS", "TABS"]


def test_branches_keep_flags_outside():
    body = allocations(0) + LOAD.format("%t0") + "%b = arith.constant true\nscf.if %b {\n" + ABS.format("%t0", "%t0")
    body += "}\n" + STORE.format("%t0")
    words = schedule(kernel(VIEWS + body, attrs=VECTOR))
    inside = words[words.index("if") + 1 : words.index("}")]
    assert inside == ["TABS"]


def test_cube_chain_of_pipes():
    mat = tile(32, 32, "f16", "mat", blayout="col_major", slayout="row_major")
    left = tile(32, 32, "f16", "left", slayout="row_major")
    right = tile(32, 32, "f16", "right", slayout="col_major")
    acc = tile(32, 32, "f32", "acc", blayout="col_major", slayout="row_major", fractal=1024)
    view = "!pto.partition_tensor_view<32x32xf16>"
    text = kernel(
        VIEWS.replace("f32", "f16").replace("%yp =", "%unused =").replace("%yv =", "%yv16 =").replace("%yv,", "%yv16,")
        .replace("make_tensor_view %y", "make_tensor_view %x")
        + VIEWS.split("\n")[1] + "\n" + VIEWS.split("\n")[3] + f"""
  %ma = pto.alloc_tile addr = %a0 : {mat}
  %mb = pto.alloc_tile addr = %a1 : {mat}
  %l = pto.alloc_tile addr = %a0 : {left}
  %r = pto.alloc_tile addr = %a0 : {right}
  %o = pto.alloc_tile addr = %a0 : {acc}
  pto.tload ins(%xp : {view}) outs(%ma : {mat})
  pto.tload ins(%xp : {view}) outs(%mb : {mat})
  pto.tmov ins(%ma : {mat}) outs(%l : {left})
  pto.tmov ins(%mb : {mat}) outs(%r : {right})
  pto.tmatmul ins(%l, %r : {left}, {right}) outs(%o : {acc})
  pto.tstore ins(%o : {acc}) outs(%yp : {PV})""",
        args="%x: !pto.ptr<f16>, %y: !pto.ptr<f32>",
        attrs="pto.kernel_kind = #pto.kernel_kind<cube>",
    )  # fmt: skip
    words = schedule(text)
    pairs = [w for w in words if w.startswith("wait_flag")]
    assert pairs == [
        "wait_flag(MTE2, MTE1, 0)", "wait_flag(MTE2, MTE1, 1)", "wait_flag(MTE1, M, 0)", "wait_flag(M, FIX, 0)",
    ]  # fmt: skip


# --- the contract on random programs -----------------------------------------------------------------------------

ADDRESSES = 3


@st.composite
def programs(draw, depth: int = 3):
    """Text of a region: loads, vector operations and stores over few tiles, nested in loops and branches."""
    lines = []
    for _ in range(draw(st.integers(1, 4))):
        kind = draw(st.sampled_from(["load", "abs", "store", "set", "for", "if", "ifelse", "while"] if depth else
                                    ["load", "abs", "store", "set"]))  # fmt: skip
        a, b = (f"%t{draw(st.integers(0, ADDRESSES - 1))}" for _ in range(2))
        if kind == "load":
            lines.append(LOAD.format(a))
        elif kind == "abs":
            lines.append(ABS.format(a, b))
        elif kind == "store":
            lines.append(STORE.format(a))
        elif kind == "set":
            lines.append(f"pto.tsetval ins(%c0, %fl : index, f32) outs({a} : {TB})\n")
        elif kind == "for":
            lines.append(f"scf.for %i{depth} = %c0 to %n step %c1 {{\n" + draw(programs(depth - 1)) + "}\n")
        elif kind == "while":
            before = draw(programs(0)) if draw(st.booleans()) else ""
            lines.append("scf.while : () -> () {\n" + before + "scf.condition(%cond)\n} do {\n"
                         + draw(programs(depth - 1)) + "scf.yield\n}\n")  # fmt: skip
        else:
            lines.append("scf.if %cond {\n" + draw(programs(depth - 1)) + "}")
            lines.append(" else {\n" + draw(programs(depth - 1)) + "}\n" if kind == "ifelse" else "\n")
    return "".join(lines)


def traces(region: Region, choices) -> list[Operation]:
    """One execution: loops run 0 to 2 times and branches are taken as `choices` says."""
    trace: list[Operation] = []
    for op in region.ops:
        if op.name == "scf.for":
            for _ in range(next(choices) % 3):
                trace += traces(op.regions[0], choices)
        elif op.name == "scf.while":
            for _ in range(next(choices) % 3):
                trace += traces(op.regions[0], choices) + traces(op.regions[1], choices)
            trace += traces(op.regions[0], choices)
        elif op.name == "scf.if":
            taken = next(choices) % 2
            if taken < len(op.regions):
                trace += traces(op.regions[taken], choices)
        else:
            trace.append(op)
    return trace


def check_trace(trace: list[Operation], arch: str) -> None:
    """Flags alternate and are used up; conflicting operations are ordered."""
    issued: dict[str, set[int]] = {}
    known: dict[str, set[int]] = {}
    flags: dict[tuple, set[int]] = {}
    done: list[tuple[int, object]] = []
    for number, op in enumerate(trace):
        if op.name in ("pto.set_flag", "pto.wait_flag"):
            src, dst, event = (op.attrs[k].value for k in ("src", "dst", "event"))
            key = (src, dst, event)
            if op.name == "pto.set_flag":
                assert key not in flags, f"{key} is set twice"
                flags[key] = set(issued.get(src, ())) | known.get(src, set())
            else:
                assert key in flags, f"{key} is waited for without a set"
                known.setdefault(dst, set()).update(flags.pop(key))
            continue
        if op.name == "pto.barrier":
            pipe = op.attrs["pipe"].value
            everything = set().union(*issued.values()) if issued else set()
            for target in issued if pipe == "PIPE_ALL" else [pipe]:
                known.setdefault(target, set()).update(everything if pipe == "PIPE_ALL" else issued.get(pipe, ()))
            if pipe == "PIPE_ALL":
                done = []
            continue
        found = effects_of(op, arch)
        if found is None:
            continue
        for earlier, other in done:
            conflict = any(overlaps(w, m) for w in found.writes for m in other.reads + other.writes)
            conflict = conflict or any(overlaps(r, w) for r in found.reads for w in other.writes)
            if not conflict or earlier in known.get(found.pipe, ()):
                continue
            in_order = found.pipe == "PIPE_S" or (found.pipe == "PIPE_V" and arch == "a5")
            assert found.pipe == other.pipe and in_order, f"{trace[earlier]} and {op} are not ordered"
        issued.setdefault(found.pipe, set()).add(number)
        done.append((number, found))
    assert not flags, f"flags left over: {set(flags)}"


@pytest.mark.parametrize("tracked_loops", [6, 1])
@settings(max_examples=150, deadline=None)
@given(
    body=programs(), choices=st.lists(st.integers(0, 5), min_size=1, max_size=12), arch=st.sampled_from(["a3", "a5"])
)
def test_contract_on_random_programs(tracked_loops, body, choices, arch):
    text = kernel(
        "  %fl = arith.constant 1.0 : f32\n" + VIEWS + allocations(*(2048 * i for i in range(ADDRESSES))) + body,
        args="%x: !pto.ptr<f32>, %y: !pto.ptr<f32>, %cond: i1, %n: index",
        attrs=VECTOR,
    )
    module = parse_module(text, arch=arch)
    lower_pipes(module)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sync, "MAX_TRACKED_LOOPS", tracked_loops)
        insert_sync(module)
    for start in range(len(choices)):
        cycle = itertools.cycle(choices[start:] + choices[:start])
        check_trace(traces(module.functions[0].body, cycle), arch)


@pytest.mark.parametrize("arch", ["a3", "a5"])
def test_popped_tiles_are_ordered_with_their_readers(arch):
    vec = tile(16, 16)
    text = f"""module {{
 func.func @v(%g: !pto.ptr<f32>) attributes {{{VECTOR}}} {{
{HEADER}
  %z = arith.constant 0 : i32
  %b = pto.reserve_buffer {{name = "b", size = 4096, location = #pto.address_space<vec>, auto = false, base = 0}} -> i32
  pto.aiv_initialize_pipe {{dir_mask = 1, slot_size = 1024, slot_num = 4}}
      (gm_slot_buffer = %g : !pto.ptr<f32>, c2v_consumer_buf = %b : i32, v2c_consumer_buf = %z : i32)
  %o = pto.alloc_tile addr = %a2 : {vec}
  %p = pto.tpop_from_aic {{split = 0}} -> {vec}
  pto.tabs ins(%p : {vec}) outs(%o : {vec})
  pto.tfree_from_aic {{split = 0}}
  return
 }}
}}"""
    pop_pipe = "S" if arch == "a5" else "MTE2"
    words = [w for w in schedule(text, arch=arch) if w not in ("}", "if")]
    assert words[:7] == [
        "TPOP", f"set_flag({pop_pipe}, V, 0)", f"wait_flag({pop_pipe}, V, 0)", "TABS", f"set_flag(V, {pop_pipe}, 0)",
        f"wait_flag(V, {pop_pipe}, 0)", "TFREE",
    ]  # fmt: skip


# --- multi-buffered loops ----------------------------------------------------------------------------------------


def multi_buffer_loop(count: int, trips: int, between: str = "") -> str:
    multi = f"!pto.multi_tile_buf<{TB}, count={count}>"
    return kernel(
        VIEWS
        + allocations(65536, 73728)
        + f"""\
  %n = arith.constant {count} : index
  %trips = arith.constant {trips} : index
  %m = pto.alloc_multi_tile addr = %a0 : {multi}
  scf.for %i = %c0 to %trips step %c1 {{
    %k = arith.remsi %i, %n : index
    %s = pto.multi_tile_get %m[%k] : {multi} -> {TB}
    {LOAD.format("%s")}{between}{ABS.format("%s", "%t0")}{STORE.format("%t0")}
  }}""",
        attrs=VECTOR,
    )


def slot_trace(module, count: int, trips: int) -> list[tuple[Operation, int]]:
    """Operations of one execution with the slot index of their iteration."""
    trace = []
    for op in module.functions[0].body.ops:
        if op.name == "scf.for":
            trace += [(inner, i % count) for i in range(trips) for inner in op.regions[0].ops]
        else:
            trace.append((op, 0))
    return trace


def in_slot(memory, slot: int):
    """The bytes a run-time slot really is."""
    return memory if memory.root is None or memory.space == "gm" else memory._replace(
        low=memory.low + slot * 4096, high=memory.low + (slot + 1) * 4096)  # fmt: skip


@pytest.mark.parametrize("arch", ["a3", "a5"])
@pytest.mark.parametrize("count", [2, 3])
@pytest.mark.parametrize("trips", [0, 1, 2, 5, 7])
@pytest.mark.parametrize("between", ["", ABS.format("%t1", "%t0"), LOAD.format("%t1") + ABS.format("%t1", "%s")])
def test_slots_are_ordered_by_their_own_events(arch, count, trips, between):
    module = parse_module(multi_buffer_loop(count, trips, between), arch=arch)
    insert_sync(module)
    issued, known, flags, done = {}, {}, {}, []
    for number, (op, slot) in enumerate(slot_trace(module, count, trips)):
        if "_flag" in op.name:
            event = slot if op.ins else int(op.attrs["event"].value[-1])
            key = (op.attrs["src"].value, op.attrs["dst"].value, event)
            if "set" in op.name:
                assert key not in flags
                flags[key] = issued.get(key[0], set()) | known.get(key[0], set())
            else:
                known.setdefault(key[1], set()).update(flags.pop(key))
            continue
        if op.name == "pto.barrier":
            pipe = op.attrs["pipe"].value
            known.setdefault(pipe, set()).update(issued.get(pipe, ()))
            continue
        found = effects_of(op, arch)
        if found is None:
            continue
        reads, writes = ([in_slot(m, slot) for m in ranges] for ranges in (found.reads, found.writes))
        for earlier, pipe, other_reads, other_writes in done:
            conflict = any(overlaps(w, m) for w in writes for m in other_reads + other_writes)
            conflict = conflict or any(overlaps(r, w) for r in reads for w in other_writes)
            in_order = pipe == found.pipe and (pipe == "PIPE_S" or (pipe == "PIPE_V" and arch == "a5"))
            assert not conflict or earlier in known.get(found.pipe, ()) or in_order
        issued.setdefault(found.pipe, set()).add(number)
        done.append((number, found.pipe, reads, writes))
    assert not flags


def test_slot_events_are_chosen_at_run_time():
    cpp = assemble(multi_buffer_loop(2, 8))
    body = cpp.split("AICORE void k(")[1]
    before, inside = body.split("for (", 1)
    assert "set_flag(PIPE_V, PIPE_MTE2, EVENT_ID0);" in before
    assert "set_flag(PIPE_V, PIPE_MTE2, EVENT_ID1);" in before
    inside, after = inside.split("\n  }\n", 1)
    assert "= (event_t) " in inside
    assert "set_flag(PIPE_V, PIPE_MTE2, EVENT" not in inside
    assert "wait_flag(PIPE_V, PIPE_MTE2, EVENT_ID1);" in after


def test_two_indices_use_constant_events():
    multi = f"!pto.multi_tile_buf<{TB}, count=2>"
    second = f"%k2 = arith.remsi %c1, %n : index\n%s2 = pto.multi_tile_get %m[%k2] : {multi} -> {TB}\n"
    text = multi_buffer_loop(2, 8).replace("pto.tabs", second + "pto.tabs", 1)
    assert "event_t" not in assemble(text).split("AICORE void k(")[1]
