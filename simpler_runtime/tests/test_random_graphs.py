"""Random task graphs against a sequential oracle: whatever runs in parallel, the result is that of program order."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

# plan row: source buffer, destination buffer, salt, scope depth change, blocks, mode
BODY = """
const ChipTensor &pool = orch_args.tensor(0).ref(), &plan = orch_args.tensor(1).ref();
const int32_t *p = plan.data_as<int32_t>();
uint32_t shape[2] = {1, pool.shapes[1]};
auto row = [&](int32_t i) { uint32_t offsets[2] = {(uint32_t)i, 0}; return pool.view(shape, offsets); };
int depth = 0;
for (uint32_t i = 0; i < plan.shapes[0]; ++i, p += 6) {
    if (p[3] > 0) { rt_scope_begin(); ++depth; }
    if (p[3] < 0 && depth > 0) { rt_scope_end(); --depth; }
    ChipTensor source = row(p[0]), destination = row(p[1]);
    CoreTaskArgs a;
    if (p[5] == 0) {
        // Directly from one row into another.
        a.add_inout(source); a.add_inout(destination); a.add_scalar(p[2]); a.add_scalar(p[4]);
        a.launch_spec.set_block_num(p[4]);
        rt_submit_aiv_task(0, a);
    } else {
        // Through a fresh intermediate.
        TensorCreateInfo ci(shape, 2, DataType::INT32);
        a.add_inout(source); a.add_output(ci); a.add_scalar(p[2]);
        TaskOutputTensors o = rt_submit_aiv_task(1, a);
        const ChipTensor &t = o.get_ref(0);
        CoreTaskArgs b; b.add_input(t); b.add_inout(destination); b.add_scalar(p[2]); b.add_scalar(1);
        if (p[5] == 1) rt_submit_aiv_task(0, b);
        else { MixedKernels m = {2, 3, 3}; rt_submit_task(m, b); }
    }
}
while (depth-- > 0) rt_scope_end();
"""

MIX = """
int *x = data<int>(args, 0), *y = data<int>(args, 1);
const int salt = args[2], width = count(args, 1);
"""
KERNELS = {
    # Each block owns the columns equal to its index modulo the block count.
    0: ("aiv", MIX + "for (int i = get_block_idx(args); i < width; i += args[3]) y[i] = y[i] * 3 + x[i] + salt;"),
    1: ("aiv", MIX + "for (int i = 0; i < width; ++i) y[i] = x[i] * 5 - salt;"),
    # The cube core does nothing but let the lanes go, one after the other.
    2: (
        "aic",
        "auto *c = simpler_current_core(); for (int l = 1; l < 3; "
        "++l) { simpler_counter_add(c->peers[l], 1, 1); simpler_counter_take(2, 1); }",
    ),
    3: (
        "aiv",
        MIX
        + """
        simpler_counter_take(1, 1);
        for (int i = get_sub_block_id(args); i < width; i += 2) y[i] = y[i] * 3 + x[i] + salt;
        simpler_counter_add(simpler_current_core()->peers[0], 2, 1);
        """,
    ),
}


def oracle(pool: np.ndarray, plan: list[tuple[int, ...]]) -> np.ndarray:
    pool = pool.copy()
    with np.errstate(over="ignore"):
        for source, destination, salt, _, _, mode in plan:
            x = pool[source].copy()
            if mode:
                x = x * np.int32(5) - np.int32(salt)
            pool[destination] = pool[destination] * np.int32(3) + x + np.int32(salt)
    return pool


rows = st.tuples(
    st.integers(0, 5),
    st.integers(0, 5),
    st.integers(-9, 9),
    st.sampled_from([-1, 0, 0, 1]),
    st.integers(1, 4),
    st.integers(0, 2),
).filter(lambda row: row[0] != row[1])


@pytest.mark.parametrize(
    ("runtime", "rings"),
    [
        ("tensormap_and_ringbuffer", {}),
        ("tensormap_and_ringbuffer", {"ring_task_window": 256, "ring_heap": 256 * 1024}),
        ("host_build_graph", {}),
    ],
)
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(plan=st.lists(rows, min_size=1, max_size=80))
def test_result_equals_program_order(lab, runtime, rings, plan):
    pool = np.arange(6 * 16, dtype=np.int32).reshape(6, 16)
    expected = oracle(pool, plan)
    lab.run(BODY, KERNELS, [pool, np.array(plan, np.int32)], runtime=runtime, **rings)
    np.testing.assert_array_equal(pool, expected)


@pytest.mark.parametrize("window", [4, 64])
def test_long_program_through_small_rings(lab, window):
    generator = np.random.default_rng(7)
    plan = [(a, b, int(s), 0, 1, int(m)) for a, b, s, m in generator.integers(0, 3, (3000, 4)) if a != b]
    body = BODY.replace("ChipTensor source", "PTO2_SCOPE_GUARD(); ChipTensor source")
    pool = np.arange(6 * 16, dtype=np.int32).reshape(6, 16)
    expected = oracle(pool, plan)
    lab.run(body, KERNELS, [pool, np.array(plan, np.int32)], ring_task_window=window, ring_heap=4096)
    np.testing.assert_array_equal(pool, expected)


BOXES = """
const ChipTensor &x = orch_args.tensor(0).ref(), &plan = orch_args.tensor(1).ref();
const int32_t *p = plan.data_as<int32_t>();
for (uint32_t i = 0; i < plan.shapes[0]; ++i, p += 6) {
    uint32_t shapes[2] = {(uint32_t)p[2], (uint32_t)p[3]}, offsets[2] = {(uint32_t)p[0], (uint32_t)p[1]};
    ChipTensor v = x.view(shapes, offsets);
    if (p[5]) rt_scope_begin();
    CoreTaskArgs a; a.add_inout(v); a.add_scalar(p[4]); rt_submit_aiv_task(0, a);
    if (p[5]) rt_scope_end();
}
"""
BOX_KERNEL = (
    "aiv",
    """
    auto *t = reinterpret_cast<ChipTensor *>(args[0]);
    int *x = data<int>(args, 0), salt = args[1];
    for (volatile int spin = (salt & 7) * 200; spin > 0; spin = spin - 1) continue;
    for (uint32_t r = 0; r < t->shapes[0]; ++r)
        for (uint32_t c = 0; c < t->shapes[1]; ++c) x[r * t->strides[0] + c] = x[r * t->strides[0] + c] * 3 + salt;
    """,
)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 10**6), count=st.integers(1, 400), largest=st.sampled_from([2, 5, 16]))
def test_overlapping_boxes_are_updated_in_program_order(lab, seed, count, largest):
    generator = np.random.default_rng(seed)
    x = np.arange(256, dtype=np.int32).reshape(16, 16)
    expected = x.copy()
    plan = []
    for _ in range(count):
        r, c = map(int, generator.integers(0, 16, 2))
        h, w = (min(int(n), 16 - o) for n, o in zip(generator.integers(1, largest + 1, 2), (r, c)))
        salt = int(generator.integers(-99, 99))
        plan.append((r, c, h, w, salt, int(generator.integers(0, 2))))
        box = expected[r : r + h, c : c + w]
        with np.errstate(over="ignore"):
            box[...] = box * np.int32(3) + np.int32(salt)
    lab.run(BOXES, {0: BOX_KERNEL}, [x, np.array(plan, np.int32)])
    np.testing.assert_array_equal(x, expected)
