"""Passes and code generation of a specialised program under a run configuration."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator, Mapping
from typing import Any

from pypto.ir.program import Program
from pypto.language.parser.diagnostics.reports import rename

#: Options that an active PassContext decides; setting them in the configuration as well is a contradiction.
_CONTEXT_OPTIONS = ("memory_planner", "diagnostic_phase", "disabled_diagnostics")


def lower(program: Program, config: Any) -> Program:
    """The program after the passes of the configured strategy; nothing is written.

    The instruments of an active PassContext run, except the ones that write reports. An explicit configuration
    selects the target of the process when none is selected yet, so that code can be generated from the result.

    Raises:
        RuntimeError: the configuration sets an option that the active PassContext decides.
    """
    from pypto.backend import is_backend_configured, set_backend_type, use_backend
    from pypto.passes import PassManager

    check_config(config)
    if config is not None and not is_backend_configured():
        set_backend_type(config.backend_type)
    config = _or_default(config)
    with use_backend(config.backend_type), _quiet_context(config):
        manager = PassManager(config.strategy, analyze_auto_scopes_for_deps=config.analyze_auto_scopes_for_deps)
        return manager.run_passes(program)


def compile_program(program: Program, config: Any) -> Any:
    """The artifact of a program; it stops at the ``.pto`` text when ``PTOAS_ROOT`` names no assembler."""
    from pypto.ir.compile import compile as build

    options = _or_default(config).compile_kwargs()
    if options.get("output_dir") is None:
        options.pop("output_dir", None)
    return build(program, skip_ptoas=_assembler_is_missing(), **options)


def prepare_run(config: Any) -> None:
    """Have what runs the program ready by the time it is compiled."""
    from pypto.runtime.binaries import load_simulator

    load_simulator(_or_default(config).platform)


def check_config(config: Any) -> None:
    """``TypeError`` when ``config`` is neither None nor a ``RunConfig``."""
    if config is not None:
        from pypto.runtime.run_config import check_config as check

        check(config)


@contextlib.contextmanager
def user_names(aliases: Mapping[str, str]) -> Iterator[None]:
    """Errors raised inside speak of the user's names instead of the names made for rebindings (``x_v1``)."""
    try:
        yield
    except Exception as error:
        if aliases:
            error.args = tuple(_renamed(a, aliases) if isinstance(a, str) else a for a in error.args)
            if isinstance(getattr(error, "message", None), str):
                error.message = _renamed(error.message, aliases)
            rename(error, lambda text: _renamed(text, aliases))
        raise


def _renamed(text: str, aliases: Mapping[str, str]) -> str:
    pattern = r"\b(" + "|".join(re.escape(a) for a in sorted(aliases, key=len, reverse=True)) + r")(?=\b|__)"
    return re.sub(pattern, lambda m: aliases[m[1]], text)


def _or_default(config: Any) -> Any:
    if config is not None:
        return config
    from pypto.runtime import RunConfig

    return RunConfig()


@contextlib.contextmanager
def _quiet_context(config: Any) -> Iterator[None]:
    from pypto.passes import MemoryPlanner, PassContext, ReportInstrument, get_default_verification_level

    outer = PassContext.current()
    if outer is None:
        context = PassContext(
            [],
            verification_level=get_default_verification_level(),
            diagnostic_phase=config.diagnostic_phase,
            disabled_diagnostics=config.disabled_diagnostics,
            memory_planner=config.memory_planner or MemoryPlanner.PYPTO,
        )
    else:
        for name in _CONTEXT_OPTIONS:
            if getattr(config, name) is not None:
                raise RuntimeError(
                    f"lower() was called with {name} while a PassContext is already active. Set the "
                    f"{name.replace('_', ' ')} on the existing PassContext instead."
                )
        context = PassContext(
            [i for i in outer.get_instruments() if not isinstance(i, ReportInstrument)],
            verification_level=outer.get_verification_level(),
            diagnostic_phase=outer.get_diagnostic_phase(),
            disabled_diagnostics=outer.get_disabled_diagnostics(),
            memory_planner=outer.get_memory_planner(),
            enable_pypto_l0c_double_buffer=outer.get_enable_pypto_l0c_double_buffer(),
            runtime=outer.get_runtime(),
            enable_buffer_ir=outer.get_enable_buffer_ir(),
        )
    with context:
        yield


def _assembler_is_missing() -> bool:
    if not os.environ.get("PTOAS_ROOT"):
        return False
    import ptoas_bridge

    return ptoas_bridge.find_ptoas_binary() is None
