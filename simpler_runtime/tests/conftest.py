"""Builds small orchestration and kernel sources for the tests and runs them."""

from __future__ import annotations

import hashlib
import importlib
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

# pytest's importlib mode registers the project folder as a namespace package of the same name, which would hide the
# real package.
if getattr(sys.modules.get("simpler_runtime"), "__file__", None) is None:
    sys.modules.pop("simpler_runtime", None)
    importlib.import_module("simpler_runtime")

from simpler_runtime import CallConfig, ChipStorageTaskArgs, KernelSource, Worker, build_callable

ORCHESTRATION = """
#include "pto_orchestration_api.h"
{helpers}
extern "C" {{
__attribute__((visibility("default")))
PTO2OrchestrationConfig aicpu_orchestration_config(const ChipTaskArgs &orch_args) {{
    return PTO2OrchestrationConfig{{.expected_arg_count = {count}}};
}}
__attribute__((visibility("default")))
void aicpu_orchestration_entry(const ChipTaskArgs &orch_args) {{
{body}
}}
}}
"""

KERNEL = """
#include "tensor.h"
#include "intrinsic.h"
#include "simulated_core.h"
#include <atomic>
{helpers}
template <typename T> static T *data(int64_t *args, int i) {{
    auto *t = reinterpret_cast<ChipTensor *>(args[i]);
    return reinterpret_cast<T *>(t->buffer.addr) + t->start_offset;
}}
static inline uint64_t count(int64_t *args, int i) {{ return reinterpret_cast<ChipTensor *>(args[i])->numel(); }}
extern "C" void kernel_entry(int64_t *args) {{
{body}
}}
"""


@pytest.fixture(scope="session", autouse=True)
def _folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


class Lab:
    """Turns C++ snippets into callables and runs them on one worker per platform and runtime."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._workers: dict[tuple[str, str], Worker] = {}

    def _write(self, text: str) -> Path:
        path = self._folder / f"{hashlib.sha256(text.encode()).hexdigest()[:20]}.cpp"
        if not path.exists():
            path.write_text(text)
        return path

    def build(self, body, kernels=(), *, count, platform="a2a3sim", runtime="tensormap_and_ringbuffer", helpers=""):
        """``kernels`` maps ids to (core_type, body) or (core_type, body, helpers)."""
        text = ORCHESTRATION.format(body=body, count=count, helpers=helpers)
        sources = []
        for func_id, (core_type, code, *more) in dict(kernels).items():
            source = self._write(KERNEL.format(body=code, helpers="\n".join(more)))
            sources.append(KernelSource(func_id, source, core_type, name=f"kernel_{func_id}"))
        return build_callable(self._write(text), sources, platform=platform, runtime=runtime)

    def worker(self, platform="a2a3sim", runtime="tensormap_and_ringbuffer") -> Worker:
        key = (platform, runtime)
        if key not in self._workers:
            self._workers[key] = Worker(level=2, platform=platform, runtime=runtime)
            self._workers[key].init()
        return self._workers[key]

    def run(
        self,
        body,
        kernels=(),
        tensors=(),
        scalars=(),
        *,
        config=None,
        platform="a2a3sim",
        runtime="tensormap_and_ringbuffer",
        helpers="",
        **rings,
    ):
        count = len(tensors) + len(scalars)
        target = self.build(body, kernels, count=count, platform=platform, runtime=runtime, helpers=helpers)
        worker = self.worker(platform, runtime)
        handle = worker.register(target)
        args = ChipStorageTaskArgs()
        for tensor in tensors:
            args.add_tensor(tensor)
        for scalar in scalars:
            args.add_scalar(scalar)
        config = config or CallConfig()
        for name, value in rings.items():
            setattr(config.runtime_env, name, value)
        try:
            worker.run(handle, args, config)
        finally:
            worker.unregister(handle)

    def close(self) -> None:
        for worker in self._workers.values():
            worker.close()


@pytest.fixture(scope="session")
def lab(_folder: Path) -> Iterator[Lab]:
    laboratory = Lab(_folder)
    yield laboratory
    laboratory.close()


@pytest.fixture
def fresh_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PTO_CACHE_DIR", os.fspath(tmp_path / "cache"))
    return tmp_path / "cache"
