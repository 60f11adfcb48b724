"""Running one example on one platform and comparing it with torch."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from typing import Any

from pypto_lib.e2e.catalogue import load_example


@dataclass
class Outcome:
    """Result of one example on one platform; times in seconds."""

    name: str
    platform: str
    ok: bool
    max_error: float = 0.0
    script_error: float | None = None
    tasks: int | None = None
    compile_s: float = 0.0
    run_s: float = 0.0
    message: str = ""

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def copies(args: list) -> list:
    return [a.clone() if hasattr(a, "clone") else a for a in args]


def compile_example(module: Any, platform: str, args: list) -> Any:
    """The artifact of an example."""
    from pypto.runtime import RunConfig

    from pypto import ir

    config = RunConfig(platform=platform, **getattr(module, "RUN_CONFIG", {}))
    if isinstance(module.ENTRY, ir.Program):
        return ir.compile(module.ENTRY, **config.compile_kwargs()), config
    return module.ENTRY.compile(*args, config=config), config


def check_example(name: str, platform: str) -> Outcome:
    """Compile, run twice, run the generated torch script, and compare all with the hand-written reference."""
    module = load_example(name)
    outcome = Outcome(name, platform, ok=False)
    args = module.inputs()
    expected = module.reference(*copies(args))
    start = time.perf_counter()
    compiled, config = compile_example(module, platform, args)
    compiled.load()
    outcome.compile_s = time.perf_counter() - start
    for _ in range(2):
        values = copies(args)
        start = time.perf_counter()
        compiled(*values, config=config)
        outcome.run_s = time.perf_counter() - start
    outcome.max_error = max_error(module, values, expected)
    outcome.script_error = torch_script_error(module, compiled, copies(args), expected)
    outcome.ok = outcome.max_error <= module.ATOL and (outcome.script_error or 0.0) <= module.ATOL
    if not outcome.ok:
        outcome.message = f"max error {max(outcome.max_error, outcome.script_error or 0.0):g} > {module.ATOL:g}"
    return outcome


def torch_script_error(module: Any, compiled: Any, args: list, expected: Any) -> float:
    """Error of the torch script that is generated from the program's IR."""
    from pypto.debug import run_as_torch

    run_as_torch(compiled.program, args)
    return max_error(module, args, expected)


def max_error(module: Any, values: list, expected: Any) -> float:
    """Largest absolute difference over all outputs; infinite when a value is NaN in one of them only."""
    worst = 0.0
    for position, want in zip(module.OUTPUTS, expected):
        got, want = values[position].double(), want.double()
        if got.shape != want.shape:
            return float("inf")
        if not got.numel():
            continue
        same = (got == want) | (got.isnan() & want.isnan())
        difference = (got - want).abs().masked_fill(same, 0.0)
        error = difference.max().item()
        worst = max(worst, float("inf") if error != error else error)
    return worst
