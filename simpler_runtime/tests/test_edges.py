"""Dependency discovery, edge by edge: which argument of which task waits for which earlier one."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from simpler_runtime import CallConfig

PRELUDE = """
const ChipTensor &x = orch_args.tensor(0).ref();
[[maybe_unused]] auto in = [&](const ChipTensor &t) {
    CoreTaskArgs a; a.add_input(t); return rt_submit_aiv_task(0, a).task_id();
};
[[maybe_unused]] auto inout = [&](const ChipTensor &t) {
    CoreTaskArgs a; a.add_inout(t); return rt_submit_aiv_task(0, a).task_id();
};
[[maybe_unused]] auto out = [&](const ChipTensor &t) {
    CoreTaskArgs a; a.add_output(t); return rt_submit_aiv_task(0, a).task_id();
};
[[maybe_unused]] auto no_dep = [&](const ChipTensor &t) {
    CoreTaskArgs a; a.add_no_dep(t); return rt_submit_aiv_task(0, a).task_id();
};
[[maybe_unused]] auto box = [&](uint32_t r, uint32_t c, uint32_t h, uint32_t w) {
    uint32_t shapes[2] = {h, w}, offsets[2] = {r, c};
    return x.view(shapes, offsets);
};
"""


@pytest.fixture
def edges(lab, tmp_path):
    """Runs a body on an 8x8 tensor; gives (pred, succ, source) with tasks numbered in submission order."""

    def run(body: str, **options) -> set[tuple[int, int, str]]:
        config = CallConfig(output_prefix=str(tmp_path), enable_dep_gen=True)
        lab.run(PRELUDE + body, {0: ("aiv", "")}, [np.zeros((8, 8), np.float32)], config=config, **options)
        graph = json.loads((tmp_path / "deps.json").read_text())
        number = {task["task_id"]: i for i, task in enumerate(graph["tasks"])}
        return {(number[e["pred"]], number[e["succ"]], e["source"]) for e in graph["edges"]}

    return run


TABLE = "tensormap"


def test_readers_depend_on_the_writer_not_on_each_other(edges):
    assert edges("inout(x); in(x); in(x);") == {(0, 1, TABLE), (0, 2, TABLE)}


def test_writer_after_reader_is_not_tracked_unless_stated(edges):
    assert edges("in(x); inout(x);") == set()
    explicit = """
    PTO2TaskId reader = in(x);
    CoreTaskArgsWithDeps<> a; a.add_inout(x); a.add_dep(reader); rt_submit_aiv_task(0, a);
    """
    assert edges(explicit) == {(0, 1, "explicit")}


def test_disjoint_row_and_column_views(edges):
    assert edges("inout(box(0, 0, 4, 8)); in(box(4, 0, 4, 8)); in(x);") == {(0, 2, TABLE)}
    assert edges("inout(box(0, 0, 8, 4)); in(box(0, 4, 8, 4));") == set()
    assert edges("inout(box(0, 0, 5, 5)); in(box(4, 4, 4, 4));") == {(0, 1, TABLE)}


def test_covering_writer_supersedes_partial_ones(edges):
    body = "inout(box(0, 0, 4, 8)); inout(box(4, 0, 4, 8)); inout(x); in(x);"
    assert edges(body) == {(0, 2, TABLE), (1, 2, TABLE), (2, 3, TABLE)}


def test_pure_output_waits_for_nobody_and_hides_nobody(edges):
    assert edges("inout(x); out(x); in(x);") == {(0, 2, TABLE), (1, 2, TABLE)}


def test_transposed_and_stepped_views_are_judged_conservatively(edges):
    assert edges("inout(x); in(x.transpose(0, 1));") == {(0, 1, TABLE)}
    assert edges("inout(x.slice(0, 0, 8, 2)); in(box(0, 0, 8, 8));") == {(0, 1, TABLE)}


def test_reinterpreted_element_type_is_compared_in_bytes(edges):
    body = """
    inout(box(4, 0, 4, 8));
    uint32_t shape[1] = {256};
    ChipTensor wide = x; wide.dtype = DataType::INT8; wide.set_contiguous(shape, 1);
    uint32_t half[1] = {128}, low[1] = {0}, high[1] = {128};
    in(wide.view(half, low)); in(wide.view(half, high));
    """
    assert edges(body) == {(0, 2, TABLE)}


def test_higher_version_always_depends(edges):
    body = "inout(box(0, 0, 4, 8)); ChipTensor later = box(4, 0, 4, 8); later.version = 1; in(later);"
    assert edges(body) == {(0, 1, TABLE)}


def test_no_dep_and_manual_tensors(edges):
    assert edges("inout(x); no_dep(x);") == set()
    assert edges("inout(x); ChipTensor m = x; m.manual_dep = true; in(m); inout(m); in(x);") == {(0, 3, TABLE)}


def test_creator_edges_reach_every_existing_tensor_kind(edges):
    body = """
    TensorCreateInfo ci(x.shapes, 2, DataType::FLOAT32, true);
    TaskOutputTensors o = alloc_tensors(ci); const ChipTensor &t = o.get_ref(0);
    in(t); out(t); inout(t); no_dep(t);
    """
    assert edges(body) == {(0, i, "creator") for i in range(1, 5)}


def test_manual_scope_has_only_explicit_edges_and_leaves_no_writers(edges):
    body = """
    TensorCreateInfo ci(x.shapes, 2);
    PTO2_SCOPE(PTO2ScopeMode::MANUAL) {
        PTO2TaskId first = inout(x); in(x);
        PTO2_SCOPE(PTO2ScopeMode::MANUAL) {
            CoreTaskArgs a; a.add_output(ci); a.set_dependencies(&first, 1);
            TaskOutputTensors o = rt_submit_aiv_task(0, a);
            const ChipTensor &t = o.get_ref(0);
            in(t);
        }
    }
    in(x);
    """
    assert edges(body) == {(0, 2, "explicit")}


def test_both_scope_spellings(edges):
    assert edges("PTO2_SCOPE() { inout(x); } SIMPLER_SCOPE() { in(x); } { SIMPLER_SCOPE_GUARD(); in(x); }") == {
        (0, 1, TABLE),
        (0, 2, TABLE),
    }


def test_task_with_one_tensor_twice_does_not_wait_for_itself(edges):
    assert edges("CoreTaskArgs a; a.add_inout(x); a.add_inout(x); rt_submit_aiv_task(0, a); in(x);") == {(0, 1, TABLE)}


def test_lone_second_lane_is_recorded_as_the_first(lab, tmp_path):
    config = CallConfig(output_prefix=str(tmp_path), enable_dep_gen=True)
    body = "CoreTaskArgs a; a.add_input(x); MixedKernels m; m.aiv1_kernel_id = 0; rt_submit_task(m, a);"
    lab.run(PRELUDE + body, {0: ("aiv", "")}, [np.zeros((8, 8), np.float32)], config=config)
    assert json.loads((tmp_path / "deps.json").read_text())["tasks"][0]["kernel_ids"] == [-1, 0, -1]


REPLAY = """
const ChipTensor &x = orch_args.tensor(0).ref(), &plan = orch_args.tensor(1).ref();
const int32_t *p = plan.data_as<int32_t>();
const int tasks = plan.shapes[0];
for (int i = 0; i < tasks; ++i, p += 6) {
    uint32_t shapes[2] = {(uint32_t)p[3], (uint32_t)p[4]}, offsets[2] = {(uint32_t)p[1], (uint32_t)p[2]};
    ChipTensor v = x.view(shapes, offsets);
    const bool own_scope = p[5];
    if (own_scope) rt_scope_begin();
    CoreTaskArgs a;
    if (p[0] == 0) a.add_input(v); else if (p[0] == 1) a.add_inout(v); else a.add_output(v);
    rt_submit_aiv_task(0, a);
    if (own_scope) rt_scope_end();
}
"""


def predicted_edges(plan) -> set[tuple[int, int]]:
    """Section 5 of the contract on boxes of one 8x8 tensor."""
    writers, found = [], set()
    for i, (kind, r, c, h, w, _) in enumerate(plan):
        if kind in (0, 1):
            kept = []
            for j, (r2, c2, h2, w2) in writers:
                apart = r + h <= r2 or r2 + h2 <= r or c + w <= c2 or c2 + w2 <= c
                if not apart:
                    found.add((j, i))
                inside = r <= r2 and c <= c2 and r + h >= r2 + h2 and c + w >= c2 + w2
                if apart or not (kind == 1 and inside):
                    kept.append((j, (r2, c2, h2, w2)))
            writers = kept
        if kind in (1, 2):
            writers.append((i, (r, c, h, w)))
    return found


@st.composite
def plans(draw):
    tasks = []
    for _ in range(draw(st.integers(1, 25))):
        r, c = draw(st.integers(0, 7)), draw(st.integers(0, 7))
        h, w = draw(st.integers(1, 8 - r)), draw(st.integers(1, 8 - c))
        tasks.append((draw(st.integers(0, 2)), r, c, h, w, draw(st.integers(0, 1))))
    return tasks


@st.composite
def many_small_plans(draw):
    """More writers of one tensor than the runtime keeps in a plain list."""
    seed, count = draw(st.integers(0, 10**6)), draw(st.integers(30, 120))
    generator = np.random.default_rng(seed)
    tasks = []
    for _ in range(count):
        r, c = generator.integers(0, 8, 2)
        h, w = generator.integers(1, 3, 2)
        kind = generator.choice([0, 1, 2, 2, 2])
        tasks.append((int(kind), int(r), int(c), int(min(h, 8 - r)), int(min(w, 8 - c)), 0))
    return tasks


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(plan=plans() | many_small_plans())
def test_random_boxes_get_exactly_the_edges_of_the_contract(lab, tmp_path, plan):
    config = CallConfig(output_prefix=str(tmp_path), enable_dep_gen=True)
    lab.run(REPLAY, {0: ("aiv", "")}, [np.zeros((8, 8), np.float32), np.array(plan, np.int32)], config=config)
    graph = json.loads((tmp_path / "deps.json").read_text())
    number = {task["task_id"]: i for i, task in enumerate(graph["tasks"])}
    assert {(number[e["pred"]], number[e["succ"]]) for e in graph["edges"]} == predicted_edges(plan)
