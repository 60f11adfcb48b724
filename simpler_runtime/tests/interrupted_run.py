"""One run that only an interrupt ends, in a process of its own: ``python interrupted_run.py FOLDER CASE``.

Prints what the run raised, then that the next run worked and that the handler is the old one.
"""

from __future__ import annotations

import faulthandler
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
from conftest import Lab
from simpler_runtime import CallConfig, TaskArgs, TensorArgType, Worker

CASE = sys.argv[2]
LIMIT_S = 150  # the run did not end: say where everybody is, and end
faulthandler.dump_traceback_later(LIMIT_S, exit=True)

ARGS = "const ChipTensor &x = orch_args.tensor(0).ref();"
SUBMIT = "{ CoreTaskArgs a; a.add_inout(x); rt_submit_aiv_task(0, a); }"
MIXED = "{ CoreTaskArgs a; a.add_inout(x); rt_submit_task(MixedKernels{1, 0, 0}, a); }"
STARTED = "__atomic_store_n(reinterpret_cast<int *>(x.buffer.addr), 1, __ATOMIC_SEQ_CST);"
SPINNING = "data<std::atomic<int>>(args, 0)->store(1); for (volatile int n = 0;; n = n + 1) continue;"
POLLING = "data<std::atomic<int>>(args, 0)->store(1); for (;;) sched_yield();"
BODIES = {
    "kernel": SUBMIT,
    "kernels": "for (int i = 0; i < 4; ++i) { CoreTaskArgs a; a.add_no_dep(x); rt_submit_aiv_task(0, a); }",
    "blocks": "CoreTaskArgs a; a.add_inout(x); a.launch_spec.set_block_num(100); rt_submit_aiv_task(0, a);",
    "gang": "CoreTaskArgs a; a.add_inout(x); a.launch_spec.set_block_num(4); "
    "a.launch_spec.set_require_sync_start(true); rt_submit_aiv_task(0, a);",
    "mixed": MIXED,
    "value": SUBMIT + "uint32_t i[1] = {0}; get_tensor_data<int>(x, 1, i);",
    "submitting": STARTED + "for (;;) { PTO2_SCOPE() " + SUBMIT + " }",
    "logging": STARTED + 'for (;;) LOG_DEBUG("again");',
    "spinning": STARTED + "for (volatile int n = 0;; n = n + 1) continue;",
}
QUIET = ("submitting", "logging", "spinning")


def build(lab: Lab):
    kernel = POLLING if CASE == "mixed" else "" if CASE in QUIET else SPINNING
    body = ARGS + BODIES.get(CASE, BODIES["kernel"])
    endless = lab.build(body, {0: ("aiv", kernel), 1: ("aic", kernel)}, count=1)
    return endless, lab.build(ARGS + SUBMIT, {0: ("aiv", "")}, count=1)


def interrupt_when(memory: np.ndarray, times: int) -> None:
    def send() -> None:
        while not memory[0]:
            time.sleep(0.01)
        for _ in range(times):
            time.sleep(0.05)
            os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=send, daemon=True).start()


def runner(worker: Worker, memory: np.ndarray) -> Callable:
    """Calls a program in the way of the case."""
    if worker.level == 3:

        def start(handle) -> None:
            args = TaskArgs()
            args.add_tensor(worker.make_tensor_arg(memory), TensorArgType.INOUT)

            def orchestrate(orch, task_args, config) -> None:
                for chip in range(2):
                    orch.submit_next_level(handle, task_args, config, worker=chip)

            worker.run(orchestrate, args, CallConfig())

        return start
    args = TaskArgs()
    args.add_tensor(worker.make_tensor_arg(memory), TensorArgType.INOUT)
    if CASE == "submit":
        return lambda handle: worker.submit(handle, args).wait()
    return lambda handle: worker.run(handle, args)


def patient(*_: object) -> None:
    print("told", flush=True)


def main() -> None:
    handler = patient if CASE == "own handler" else signal.default_int_handler
    signal.signal(signal.SIGINT, handler)
    endless, healthy = build(Lab(Path(sys.argv[1])))
    level = {"chips": {"level": 3, "device_ids": [0, 1]}}.get(CASE, {"level": 2})
    memory = np.zeros(8, np.int32)
    with Worker(platform="a2a3sim", **level) as worker:
        start = runner(worker, memory)
        bad, good = worker.register(endless), worker.register(healthy)
        start(good)
        for _ in range(int(sys.argv[3]) if len(sys.argv) > 3 else 1):
            memory[0] = 0
            interrupt_when(memory, 2 if CASE == "own handler" else 1)
            try:
                start(bad)
            except BaseException as error:
                print(type(error).__name__, str(error).split(":")[0], flush=True)
            start(good)
            assert signal.getsignal(signal.SIGINT) is handler
            # The handler that the operating system knows is Python's as well: it notices a signal.
            if handler is signal.default_int_handler:
                try:
                    signal.raise_signal(signal.SIGINT)
                except KeyboardInterrupt:
                    print("alive", flush=True)
            else:
                signal.raise_signal(signal.SIGINT)


main()
