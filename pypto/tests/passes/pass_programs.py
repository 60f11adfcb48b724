"""Small programs for tests of passes, written as text, and the questions tests ask about the result."""

from __future__ import annotations

import textwrap

import pypto.language as pl
from pypto.backend import BackendType, use_backend
from pypto.passes.lib.walk import defined_vars, iter_calls, iter_stmts

from pypto import ir, passes

A2A3, A5 = BackendType.Ascend910B, BackendType.Ascend950


def parse(text: str) -> ir.Program:
    """The program of a class body (functions only), as the text parser reads it."""
    body = textwrap.indent(textwrap.dedent(text).strip(), "    ")
    return pl.parse_program(f"import pypto.language as pl\n\n\n@pl.program\nclass Prog:\n{body}\n")


def kernel(body: str, params: str = "", *, kind: str = "AIV", returns: str = "", attrs: str = "") -> ir.Program:
    """A program with one kernel ``k``."""
    head = f"@pl.function(type=pl.FunctionType.{kind})\ndef k(self, {params}){' -> ' + returns if returns else ''}:\n"
    lines = textwrap.dedent(body).strip()
    if attrs:
        lines = f"pl.func_attr({attrs})\n{lines}"
    return parse(head + textwrap.indent(lines, "    "))


def run(program: ir.Program, *names: str, backend: BackendType | None = A2A3, planner=None, **factory_args):
    """Apply passes by factory name inside a context without verification."""
    planner = passes.MemoryPlanner.PYPTO if planner is None else planner

    def apply() -> ir.Program:
        result = program
        with passes.PassContext([], memory_planner=planner):
            for name in names:
                result = getattr(passes, name)(**factory_args)(result)
        return result

    if backend is None:
        return apply()
    with use_backend(backend):
        return apply()


def tiles(program: ir.Program, function: str = "k") -> dict[str, tuple | None]:
    """Tile name -> (allocation, offset, size), None without a MemRef; the last definition of a name counts."""
    found: dict[str, tuple | None] = {}
    for stmt in iter_stmts(program.get_function(function).body):
        for var in defined_vars(stmt):
            if not isinstance(var.type, ir.TileType):
                continue
            ref = var.type.memref
            if ref is None:
                found[var.name_hint] = None
                continue
            offset = ref.byte_offset_
            found[var.name_hint] = (
                ref.base_.name_hint,
                offset.value if isinstance(offset, ir.ConstInt) else str(offset),
                ref.size_,
            )
    return found


def roots(program: ir.Program, function: str = "k") -> dict[str, str | None]:
    """Tile name -> allocation name."""
    return {name: place and place[0] for name, place in tiles(program, function).items()}


def calls(program: ir.Program, function: str = "k") -> list[str]:
    """Operator and function names in program order."""
    return [call.op.name for _, call in iter_calls(program.get_function(function).body)]


def find_calls(program: ir.Program, name: str, function: str = "k") -> list:
    """Every call of an operator or function."""
    return [call for _, call in iter_calls(program.get_function(function).body) if call.op.name == name]


def text(program: ir.Program, function: str | None = None) -> str:
    """Printed program or function."""
    return (program if function is None else program.get_function(function)).as_python()
