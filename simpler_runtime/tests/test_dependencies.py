"""Which tasks wait for each other, observed through the order in which kernels ran."""

from __future__ import annotations

import numpy as np
import pytest

ADD = (
    "aiv",
    """
    float *x = data<float>(args, 0), *y = data<float>(args, 1);
    for (uint64_t i = 0; i < count(args, 0); ++i) y[i] = x[i] + from_u64<float>(args[2]);
    """,
)
INC = ("aiv", "float *x = data<float>(args, 0); for (uint64_t i = 0; i < count(args, 0); ++i) x[i] = x[i] * 2 + 1;")


def test_output_of_a_task_reaches_its_reader_through_the_creator(lab):
    x, y = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    lab.run(
        """
        const ChipTensor &x = orch_args.tensor(0).ref(), &y = orch_args.tensor(1).ref();
        PTO2_SCOPE() {
            TensorCreateInfo ci(x.shapes, 1);
            CoreTaskArgs a; a.add_input(x); a.add_output(ci); a.add_scalar(1.0f);
            TaskOutputTensors out = rt_submit_aiv_task(0, a);
            const ChipTensor &t = out.get_ref(0);
            CoreTaskArgs b; b.add_input(t); b.add_output(y); b.add_scalar(2.0f);
            rt_submit_aiv_task(0, b);
        }
        """,
        {0: ADD},
        [x, y],
    )
    np.testing.assert_array_equal(y, x + 3)


@pytest.mark.parametrize("runtime", ["tensormap_and_ringbuffer", "host_build_graph"])
def test_chain_of_inout_tasks_runs_in_submission_order(lab, runtime):
    x = np.zeros(4, np.float32)
    lab.run(
        """
        const ChipTensor &x = orch_args.tensor(0).ref();
        for (int i = 0; i < 10; ++i) { CoreTaskArgs a; a.add_inout(x); rt_submit_aiv_task(0, a); }
        """,
        {0: INC},
        [x],
        runtime=runtime,
    )
    np.testing.assert_array_equal(x, np.full(4, 1023, np.float32))


def test_strided_external_tensor_keeps_its_layout(lab):
    base = np.arange(24, dtype=np.float32).reshape(4, 6)
    shape = np.zeros(4, np.float32)
    lab.run(
        """
        const ChipTensor &x = orch_args.tensor(0).ref(), &y = orch_args.tensor(1).ref();
        CoreTaskArgs a; a.add_input(x); a.add_output(y); rt_submit_aiv_task(0, a);
        """,
        {
            0: (
                "aiv",
                "auto *t = reinterpret_cast<ChipTensor *>(args[0]); float *y = data<float>(args, 1);"
                " y[0] = t->shapes[0]; y[1] = t->shapes[1]; y[2] = t->strides[0]; y[3] = t->is_contiguous;",
            )
        },
        [base[:, 1:3], shape],
    )
    np.testing.assert_array_equal(shape, [4, 2, 6, 0])
