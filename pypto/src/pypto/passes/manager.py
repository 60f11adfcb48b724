"""The pass manager: the default strategy for the active planner, with optional dumps."""

from __future__ import annotations

from pypto.ir.enums import OptimizationStrategy
from pypto.ir.program import Program
from pypto.passes.context import (
    DiagnosticPhase,
    MemoryPlanner,
    PassContext,
    active_buffer_ir,
    active_diagnostic_phase,
    active_memory_planner,
    active_runtime,
    active_verification_level,
)
from pypto.passes.dumps import DumpWriter, PassDumpLevel, coerce_dump_level
from pypto.passes.instruments import CallbackInstrument
from pypto.passes.pass_ import Pass
from pypto.passes.pipeline import PipelineOptions, default_passes
from pypto.passes.sequence import PassPipeline


class PassManager:
    """The passes of a strategy, frozen for the memory planner that is active at construction."""

    def __init__(
        self,
        strategy: OptimizationStrategy = OptimizationStrategy.Default,
        *,
        analyze_auto_scopes_for_deps: bool = False,
    ):
        if not isinstance(strategy, OptimizationStrategy):
            known = ", ".join(s.name for s in OptimizationStrategy)
            raise ValueError(f"Unsupported optimization strategy: {strategy!r} (expected one of: {known})")
        self.strategy = strategy
        self.analyze_auto_scopes_for_deps = analyze_auto_scopes_for_deps
        self._planner: MemoryPlanner = active_memory_planner()
        self._buffer_ir = active_buffer_ir()
        self._pipeline = PassPipeline()
        options = PipelineOptions(self._planner, self._buffer_ir, analyze_auto_scopes_for_deps)
        for pass_ in default_passes(options):
            self._pipeline.add_pass(pass_)

    @classmethod
    def get_strategy(
        cls,
        strategy: OptimizationStrategy = OptimizationStrategy.Default,
        *,
        analyze_auto_scopes_for_deps: bool = False,
    ) -> PassManager:
        """The same as the constructor."""
        return cls(strategy, analyze_auto_scopes_for_deps=analyze_auto_scopes_for_deps)

    @property
    def passes(self) -> tuple[Pass, ...]:
        return tuple(self._pipeline.get_passes())

    @property
    def pass_names(self) -> list[str]:
        return self._pipeline.get_pass_names()

    def get_pass_names(self) -> list[str]:
        return self.pass_names

    def run_passes(
        self,
        input_ir: Program,
        dump_ir: PassDumpLevel | bool = False,
        output_dir: str | None = None,
        prefix: str = "pl",
    ) -> Program:
        """Apply every pass to ``input_ir``.

        Args:
            dump_ir: NONE/False, CONCISE/True or EXPLICIT: print the program after each pass into ``output_dir``.
            prefix: import alias that dumps use.

        Raises:
            ValueError: a dump without ``output_dir``, or an input that is no Program.
            RuntimeError: the active memory planner or Buffer-IR mode differs from the one at construction.
        """
        if not isinstance(input_ir, Program):
            raise ValueError(f"run_passes needs an ir.Program, got {type(input_ir).__name__}")
        self._check_planner_consistency()
        level = coerce_dump_level(dump_ir)
        if level is PassDumpLevel.NONE:
            with _profiled_passes() as context:
                result = self._pipeline.run(input_ir) if context is None else self._run_in(context, input_ir)
        else:
            if output_dir is None:
                raise ValueError("output_dir is required when dumping IR")
            result = self._run_in(_dumping_context(DumpWriter(str(output_dir), level, prefix), input_ir), input_ir)
        return result if result is not input_ir else Program(dict(result.functions), result.name, result.span)

    def _run_in(self, context: PassContext, program: Program) -> Program:
        with context:
            return self._pipeline.run(program)

    def _check_planner_consistency(self) -> None:
        self._check_frozen("memory_planner", self._planner, active_memory_planner())
        self._check_frozen("enable_buffer_ir", self._buffer_ir, active_buffer_ir())

    @staticmethod
    def _check_frozen(what: str, frozen: object, active: object) -> None:
        if frozen != active:
            raise RuntimeError(
                f"this PassManager was built for {what}={frozen}, but the active PassContext says {active}; "
                "build the manager inside the context it runs in"
            )


def _derived_context(instruments: list, phase: DiagnosticPhase) -> PassContext:
    """The active context (or the defaults) with other instruments and diagnostic phase."""
    outer = PassContext.current()
    return PassContext(
        instruments,
        verification_level=active_verification_level(),
        diagnostic_phase=phase,
        disabled_diagnostics=outer.get_disabled_diagnostics() if outer else None,
        memory_planner=active_memory_planner(),
        enable_pypto_l0c_double_buffer=bool(outer and outer.get_enable_pypto_l0c_double_buffer()),
        runtime=active_runtime(),
        enable_buffer_ir=active_buffer_ir(),
    )


def _dumping_context(writer: DumpWriter, program: Program) -> PassContext:
    outer = PassContext.current()
    count = 0

    def dump(pass_: Pass, result: Program) -> None:
        nonlocal count
        count += 1
        writer.after(count, pass_.get_name(), result)

    writer.frontend(program)
    phase = active_diagnostic_phase()
    if phase is DiagnosticPhase.POST_PASS:
        phase = DiagnosticPhase.PRE_PIPELINE  # the dump logs hold the post-pass warnings already
    instruments = outer.get_instruments() if outer else []
    return _derived_context([*instruments, *_profiling_instruments(), CallbackInstrument(after_pass=dump)], phase)


def _profiling_instruments() -> list:
    from pypto import compile_profiling

    profiler = compile_profiling.get_active_profiler()
    if profiler is None:
        return []
    stages: list = []

    def begin(pass_: Pass, program: Program) -> None:
        stage = profiler.stage(pass_.get_name())
        stage.__enter__()
        stages.append(stage)

    def end(pass_: Pass, program: Program) -> None:
        stages.pop().__exit__(None, None, None)

    return [CallbackInstrument(begin, end, "ProfilingInstrument")]


class _profiled_passes:
    """``with`` gives a context that times each pass when a profiler is active, else None."""

    def __enter__(self) -> PassContext | None:
        timers = _profiling_instruments()
        if not timers:
            return None
        outer = PassContext.current()
        return _derived_context([*(outer.get_instruments() if outer else []), *timers], active_diagnostic_phase())

    def __exit__(self, *exc_info: object) -> None:
        return None
