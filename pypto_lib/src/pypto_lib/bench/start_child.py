"""The process that the start figures time: imports, decorator to first result, further calls; prints JSON."""

from __future__ import annotations

import json
import resource
import statistics
import time


def processor_seconds() -> float:
    """Processor time of this process and of the compilers it waited for."""
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def main() -> None:
    clock = time.perf_counter
    begin = clock()
    import torch

    torch_done = clock()
    import pypto.language  # noqa: F401

    language_done, cpu_before = clock(), processor_seconds()
    # Importing the module runs its decorator; nothing of the example was touched before.
    from pypto_lib.examples.vector import patch_sum

    args = patch_sum.inputs()
    patch_sum.ENTRY(*args)
    done, cpu = clock(), processor_seconds() - cpu_before
    if not torch.equal(args[2], args[0] + args[1]):
        raise SystemExit("the sum is wrong")
    again = []
    for _ in range(200):
        start = clock()
        patch_sum.ENTRY(*args)
        again.append(clock() - start)
    times = {
        "torch": torch_done - begin,
        "language": language_done - torch_done,
        "result": done - language_done,
        "cpu": cpu,
        "again": statistics.median(again),
    }
    print(json.dumps(times))


if __name__ == "__main__":
    main()
