"""Declarative end-to-end tests: one class says what to compile, what to run and what to expect."""

from __future__ import annotations

import argparse
import contextlib
import inspect
import sys
from collections.abc import Iterator
from enum import IntEnum
from pathlib import Path
from typing import Any

from simpler_runtime.callables import DEFAULT_ENTRY, ArgDirection, ChipCallable
from simpler_runtime.errors import UnsupportedFeatureError
from simpler_runtime.platforms import DEFAULT_RUNTIME, check_runtime, parse_platform

from simpler_runtime import CallConfig, ChipStorageTaskArgs, KernelSource, RuntimeEnv, Worker, build_callable
from simpler_setup.pto_isa import ensure_pto_isa_root

_CASE_SETTINGS = ("aicpu_thread_num", "runtime_env", "device_count", "num_sub_workers")


class SceneTestLevel(IntEnum):
    CHIP = 2
    NODE = 3
    NETWORK1 = 4


class TensorArg:
    """A named tensor argument."""

    def __init__(self, name: str, value: Any) -> None:
        self.name = name
        self.value = value


class Scalar:
    """A named scalar argument."""

    def __init__(self, name: str, value: Any) -> None:
        self.name = name
        self.value = value


class TaskArgsBuilder:
    """Named arguments in order; tensors and scalars are also attributes."""

    def __init__(self, *specs: TensorArg | Scalar) -> None:
        self.specs: list[TensorArg | Scalar] = []
        self.add(*specs)

    def add(self, *specs: TensorArg | Scalar) -> TaskArgsBuilder:
        for spec in specs:
            if any(spec.name == known.name for known in self.specs):
                raise ValueError(f"argument {spec.name!r} is given twice")
            if isinstance(spec, TensorArg) and any(isinstance(known, Scalar) for known in self.specs):
                raise ValueError(f"tensor {spec.name!r} comes after a scalar: all tensors first")
            self.specs.append(spec)
            setattr(self, spec.name, spec.value)
        return self

    def tensors(self) -> list[TensorArg]:
        return [spec for spec in self.specs if isinstance(spec, TensorArg)]

    def clone(self) -> TaskArgsBuilder:
        return TaskArgsBuilder(
            *(
                TensorArg(s.name, s.value.clone()) if isinstance(s, TensorArg) else Scalar(s.name, s.value)
                for s in self.specs
            )
        )


class CallableNamespace:
    """Callables by name, as attributes."""

    def __init__(self, entries: dict[str, Any]) -> None:
        self.__dict__.update(entries)


def scene_test(level: int = 2, runtime: str = DEFAULT_RUNTIME, **_: Any):
    """Class decorator: the level and the runtime variant a scene runs on."""
    check_runtime(runtime)

    def decorate(cls: type) -> type:
        cls._st_level = int(level)
        cls._st_runtime = runtime
        return cls

    return decorate


def scene_level(level: int):
    """Class decorator that only sets the level."""

    def decorate(cls: type) -> type:
        cls._st_level = int(level)
        return cls

    return decorate


class SceneTestCase:
    """Base of a scene. Subclasses define CALLABLE, CASES, ``generate_args`` and ``compute_golden``."""

    CALLABLE: dict[str, Any] = {}
    CASES: list[dict[str, Any]] = []
    RTOL = 1e-5
    ATOL = 1e-5
    _st_level = 2
    _st_runtime = DEFAULT_RUNTIME

    def generate_args(self, params: dict[str, Any]) -> TaskArgsBuilder:
        raise NotImplementedError(f"{type(self).__name__} must define generate_args(params)")

    def compute_golden(self, args: TaskArgsBuilder, params: dict[str, Any]) -> None:
        raise NotImplementedError(f"{type(self).__name__} must define compute_golden(args, params)")

    def compare_outputs(
        self, test_args: TaskArgsBuilder, golden_args: TaskArgsBuilder, output_names: list[str], params: Any = None
    ) -> None:
        """Every OUT and INOUT tensor within RTOL and ATOL; AssertionError naming the worst element otherwise."""
        import torch

        for name in output_names:
            got, want = getattr(test_args, name), getattr(golden_args, name)
            if torch.allclose(got.double(), want.double(), rtol=self.RTOL, atol=self.ATOL, equal_nan=True):
                continue
            error = (got.double() - want.double()).abs()
            worst = int(error.argmax())
            raise AssertionError(
                f"output {name!r}: {int((error > self.ATOL).sum())} of {error.numel()} elements differ; worst at flat "
                f"index {worst}: got {got.flatten()[worst].item()!r}, expected {want.flatten()[worst].item()!r}"
            )

    # ---- building and running

    def test_run(self, st_platform: str | None = None, st_worker: Worker | None = None, request: Any = None) -> None:
        """What pytest calls: every case of every simulated platform (or of the given platform, on the given worker)."""
        named = {name for case in self.CASES for name in case.get("platforms", ("a2a3sim",))}
        for platform in [st_platform] if st_platform else sorted(name for name in named if name.endswith("sim")):
            cases = list(self.cases(platform))
            if not cases:
                continue
            target = self.build(platform)
            with contextlib.ExitStack() as stack:
                worker = st_worker or stack.enter_context(Worker(level=2, platform=platform, runtime=self._st_runtime))
                for case in cases:
                    self.run_case(worker, target, case)

    @classmethod
    def build(cls, platform: str) -> ChipCallable:
        """Compiles CALLABLE for a platform."""
        if cls._st_level != 2:
            raise UnsupportedFeatureError(f"scene tests of level {cls._st_level}")
        folder = Path(inspect.getfile(cls)).parent
        orchestration = cls.CALLABLE["orchestration"]
        kernels = [
            KernelSource(
                entry["func_id"],
                (folder / entry["source"]).resolve(),
                entry["core_type"],
                tuple(entry.get("signature", ())),
                entry.get("name", Path(entry["source"]).stem),
            )
            for entry in cls.CALLABLE.get("incores", ())
        ]
        return build_callable(
            (folder / orchestration["source"]).resolve(),
            kernels,
            platform=platform,
            include_dirs=[Path(ensure_pto_isa_root()) / "include"] if kernels else [],
            signature=orchestration.get("signature", ()),
            func_name=orchestration.get("function_name", DEFAULT_ENTRY),
            runtime=cls._st_runtime,
        )

    @classmethod
    def cases(cls, platform: str, manual: str = "exclude", names: tuple[str, ...] = ()) -> Iterator[dict[str, Any]]:
        """The cases of a platform, filtered by name and by the manual mark (exclude, include, only)."""
        for case in cls.CASES:
            if platform not in case.get("platforms", (platform,)):
                continue
            mark = case.get("manual", False)
            is_manual = platform in mark if isinstance(mark, (list, tuple)) else bool(mark)
            if (manual == "exclude" and is_manual) or (manual == "only" and not is_manual):
                continue
            if names and case["name"] not in names:
                continue
            yield case

    def run_case(
        self,
        worker: Worker,
        target: ChipCallable,
        case: dict[str, Any],
        *,
        rounds: int = 1,
        skip_golden: bool = False,
        diagnostics: dict[str, Any] | None = None,
    ) -> None:
        """Runs one case on a ready worker and compares its outputs."""
        config = self._call_config(case)
        for name, value in (diagnostics or {}).items():
            setattr(config, name, value)
        params = case.get("params", {})
        args = self.generate_args(params)
        golden = args.clone()
        signature = self.CALLABLE["orchestration"].get("signature", ())
        outputs = [
            spec.name
            for spec, direction in zip(args.tensors(), signature)
            if direction in (ArgDirection.OUT, ArgDirection.INOUT)
        ]
        initial = args.clone() if rounds > 1 else None
        call = ChipStorageTaskArgs()
        for spec in args.specs:
            (call.add_tensor if isinstance(spec, TensorArg) else call.add_scalar)(spec.value)
        handle = worker.register(target)
        try:
            for index in range(rounds):
                if index and initial is not None:
                    for name in outputs:
                        getattr(args, name).copy_(getattr(initial, name))
                worker.run(handle, call, config)
        finally:
            worker.unregister(handle)
        if not skip_golden:
            self.compute_golden(golden, params)
            self.compare_outputs(args, golden, outputs, params)

    @staticmethod
    def _call_config(case: dict[str, Any]) -> CallConfig:
        config = CallConfig()
        settings = case.get("config", {})
        unknown = set(settings) - set(_CASE_SETTINGS)
        if unknown:
            raise ValueError(
                f"case {case['name']!r}: unknown config keys {sorted(unknown)}; known: {', '.join(_CASE_SETTINGS)}"
            )
        config.aicpu_thread_num = settings.get("aicpu_thread_num", 0)
        env = settings.get("runtime_env", {})
        config.runtime_env = env if isinstance(env, RuntimeEnv) else RuntimeEnv(**env)
        return config

    @classmethod
    def run_module(cls, module_name: str) -> None:
        """Command line of a scene file: runs the scenes of that module and exits with 1 if one failed."""
        sys.exit(_main(sys.modules[module_name], sys.argv[1:]))


def _main(module: Any, argv: list[str]) -> int:
    parser = argparse.ArgumentParser(description=(module.__doc__ or "").splitlines()[0] if module.__doc__ else None)
    parser.add_argument("-p", "--platform", default="a2a3sim")
    parser.add_argument("-d", "--device", default="0")
    parser.add_argument("--case", action="append", default=[], help="Name, Class::Name or Class:: (repeatable)")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--skip-golden", action="store_true")
    parser.add_argument("--manual", choices=["exclude", "include", "only"], default="exclude")
    parser.add_argument("--enable-chip-swimlane", nargs="?", type=int, const=4, default=0)
    parser.add_argument("--enable-swimlane-overhead", action="store_true")
    parser.add_argument("--dump-args", nargs="?", type=int, const=1, default=0)
    parser.add_argument("--enable-pmu", nargs="?", type=int, const=2, default=0)
    parser.add_argument("--enable-dep-gen", action="store_true")
    parser.add_argument("--enable-scope-stats", action="store_true")
    options = parser.parse_args(argv)
    if options.enable_swimlane_overhead and not options.enable_chip_swimlane:
        parser.error("--enable-swimlane-overhead requires --enable-chip-swimlane")
    parse_platform(options.platform)
    diagnostics = {
        "enable_chip_swimlane": options.enable_chip_swimlane,
        "enable_dump_args": options.dump_args,
        "enable_pmu": options.enable_pmu,
        "enable_dep_gen": options.enable_dep_gen,
        "enable_scope_stats": options.enable_scope_stats,
    }
    diagnostics = {name: value for name, value in diagnostics.items() if value}
    if options.rounds > 1:
        for name in diagnostics:
            print(f"warning: {name} is disabled because --rounds is greater than 1", file=sys.stderr)
        diagnostics = {}
    failed = 0
    for cls in vars(module).values():
        if not (isinstance(cls, type) and issubclass(cls, SceneTestCase) and cls.__module__ == module.__name__):
            continue
        failed += _run_class(cls, options, diagnostics)
    return 1 if failed else 0


def _run_class(cls: type[SceneTestCase], options: argparse.Namespace, diagnostics: dict[str, Any]) -> int:
    names: list[str] = []
    for selector in options.case:
        owner, separator, name = selector.rpartition("::")
        if separator and owner and owner != cls.__name__:
            continue
        names.append(name)
    if options.case and not names:
        return 0
    cases = list(cls.cases(options.platform, options.manual, tuple(name for name in names if name)))
    if not cases:
        return 0
    failed = 0
    target = cls.build(options.platform)
    with Worker(level=2, platform=options.platform, runtime=cls._st_runtime) as worker:
        for case in cases:
            label = f"{cls.__name__}::{case['name']} [{options.platform}]"
            settings = dict(diagnostics)
            if settings:
                settings["output_prefix"] = str(Path("outputs") / f"{cls.__name__}_{case['name']}")
            try:
                cls().run_case(
                    worker, target, case, rounds=options.rounds, skip_golden=options.skip_golden, diagnostics=settings
                )
                print(f"PASS {label}", flush=True)
            except Exception as error:
                failed += 1
                print(f"FAIL {label}: {error}", flush=True)
    return failed
