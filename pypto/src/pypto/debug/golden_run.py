"""Running generated torch scripts: a program on tensors, and every dumped pass against expected results."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pypto.debug.torch_codegen import function_name, torch_codegen
from pypto.ir import Function, FunctionType, ParamDirection, Program, TensorType


def entry_function(node: Program | Function) -> Function:
    """The only function, else the orchestration; ``ValueError`` when that is ambiguous."""
    if isinstance(node, Function):
        return node
    functions = list(node.functions.values())
    if len(functions) == 1:
        return functions[0]
    entries = [f for f in functions if f.func_type is FunctionType.Orchestration]
    called = {name for f in functions for name in _callees(f)}
    roots = [f for f in entries if f.name not in called] or [f for f in functions if f.name not in called]
    if len(roots) != 1:
        names = ", ".join(f.name for f in roots)
        raise ValueError(f"the program has no single entry function (candidates: {names or 'none'})")
    return roots[0]


def _callees(function: Function) -> set[str]:
    from pypto.codegen.orchestration.tasks import calls_of

    return {call.op.name for call in calls_of(function)} if function.body is not None else set()


@functools.lru_cache(maxsize=256)
def _compiled(node: Any) -> Any:
    scope: dict[str, Any] = {"__name__": "generated_torch"}
    exec(compile(torch_codegen(node), "<generated torch>", "exec"), scope)
    return scope[function_name(entry_function(node).name)]


def run_as_torch(node: Program | Function, args: list) -> None:
    """Run a program on torch tensors through its generated script; outputs are written in place.

    Raises:
        ValueError: the program uses an operator without torch meaning, or has no single entry.
    """
    from pypto.debug.torch_support import fresh_launch

    entry = entry_function(node)
    with fresh_launch():
        result = _compiled(node)(*[_number(a) for a in args])
    _write_back(entry, args, result)


def _number(value: Any) -> Any:
    return getattr(value, "value", value) if not hasattr(value, "dtype") else value


def _write_back(entry: Function, args: list, result: Any) -> None:
    """Returned tensors that are not the output arguments themselves are copied into them."""
    outputs = [
        value
        for param, direction, value in zip(entry.params, entry.param_directions, args)
        if direction is not ParamDirection.In and isinstance(param.type, TensorType)
    ]
    results = result if isinstance(result, tuple) else (result,)
    for target, value in zip(outputs, results):
        if hasattr(value, "data_ptr") and value.shape == target.shape and value.data_ptr() != target.data_ptr():
            target.copy_(value)


def validate_pass_ir_codegen_results(
    ir_dir: str, tensors: Mapping[str, Any], expected: Mapping[str, Any], *, rtol: float = 5e-2, atol: float = 5e-2
) -> None:
    """Run every dumped pass (a folder sorted by name, or one file) and compare what it computes.

    Raises:
        FileNotFoundError: no dump.
        ValueError: an ambiguous entry, or a parameter without tensor.
        AssertionError: a stage computes something else.
    """
    import torch

    import pypto.language as pl

    root = Path(ir_dir)
    files = [root] if root.is_file() else sorted(root.glob("*.py"))
    if not files:
        raise FileNotFoundError(f"no dumped IR in {root}; compile with dump_passes=True")
    for file in files:
        program = pl.parse(file.read_text(encoding="utf-8"), filename=str(file))
        entry = entry_function(program)
        args = [_argument(p.name_hint, tensors) for p in entry.params]
        args = [a.clone() if isinstance(a, torch.Tensor) else a for a in args]
        run_as_torch(program, args)
        print(f"{'=' * 20} {file.stem} {'=' * 20}")
        by_name = {p.name_hint.split("__ssa_v")[0]: a for p, a in zip(entry.params, args)}
        for key, want in expected.items():
            got = by_name[key]
            difference = (got.double() - want.double()).abs().max().item()
            passed = torch.allclose(got.double(), want.double(), rtol=rtol, atol=atol)
            print(f"validate tensor: '{key}', max_abs_diff: {difference:g}, pass: {passed}")
            if not passed:
                raise AssertionError(f"{file.stem}: tensor '{key}' differs by {difference:g}")


def _argument(name: str, tensors: Mapping[str, Any]) -> Any:
    for key in (name, name.split("__ssa_v")[0]):
        if key in tensors:
            return tensors[key]
    raise ValueError(f"no tensor is given for parameter '{name}'")
