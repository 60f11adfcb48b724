"""A whole file: prologue, struct definitions, functions with their core guards and tails."""

from __future__ import annotations

from ..dialect import types as T
from ..dialect.ir import Function, Module
from ..errors import UnsupportedFeatureError
from . import control, instructions, pipes, scalars, system, views  # noqa: F401  (each registers its emitters)
from .cpp_types import cpp_type
from .function import FunctionEmitter
from .prologue import HELPERS, PROLOGUE

_GUARDS = {"cube": "__DAV_CUBE__", "vector": "__DAV_VEC__"}
_TAIL_MODES = {
    "barrier-all": "PTOAutoSyncTailMode::kBarrierAll",
    "mte3-to-s-event0": "PTOAutoSyncTailMode::kSetWaitMte3ToSEvent0",
}


def emit_module(module: Module) -> str:
    """C++ text of a module whose passes have run."""
    helpers: set[str] = set()
    functions = [_function(module, fn, helpers) for fn in _callees_first(module)]
    parts = [PROLOGUE]
    parts += [HELPERS[name] for name in sorted(helpers)]
    parts += _structs(module)
    return "\n".join(parts + functions).rstrip("\n")


def _callees_first(module: Module) -> list[Function]:
    """File order, except that a callee comes before its first caller."""
    order: list[Function] = []
    seen: set[str] = set()

    def visit(fn: Function) -> None:
        if fn.name in seen:
            return
        seen.add(fn.name)
        if fn.body is not None:
            for op in fn.body.walk():
                if op.name == "func.call":
                    callee = module.function(op.attrs["callee"])
                    if callee is not None:
                        visit(callee)
        order.append(fn)

    for fn in module.functions:
        visit(fn)
    return order


def _structs(module: Module) -> list[str]:
    """Definitions of the struct types in use, inner ones first."""
    found: dict[T.StructType, str] = {}

    def visit(type_: T.Type) -> None:
        if isinstance(type_, T.StructType) and type_ not in found:
            for field in type_.fields:
                visit(field)
            fields = "".join(f"  {cpp_type(f)} f{i};\n" for i, f in enumerate(type_.fields))
            found[type_] = f"struct {cpp_type(type_)} {{\n{fields}}};\n"

    for fn in module.functions:
        for arg in fn.args:
            visit(arg.type)
        for op in fn.body.walk() if fn.body is not None else ():
            for value in op.results:
                visit(value.type)
    return list(found.values())


def _signature(fn: Function, parameters: str) -> str:
    result = cpp_type(fn.result_types[0]) if fn.result_types else "void"
    if fn.is_entry:
        prefix = 'extern "C" __global__ AICORE'
    elif fn.private and fn.body is not None:
        prefix = "static AICORE"
    elif "pto.visibility" in fn.attrs and fn.attrs["pto.visibility"] == "external":
        prefix = 'extern "C" AICORE'
    else:
        prefix = "AICORE"
    return f"{prefix} {result} {fn.name}({parameters})"


def _parameter_type(module: Module, fn: Function, type_: T.Type) -> str:
    try:
        return cpp_type(type_)
    except UnsupportedFeatureError as problem:
        line, column, _ = module.source.position(fn.at)
        place = f"{module.source.filename}:{line}:{column}"
        raise UnsupportedFeatureError(f"{place}: 'func.func' {problem}", "func.func") from None


def _function(module: Module, fn: Function, helpers: set[str]) -> str:
    e = FunctionEmitter(module, fn, helpers)
    parameters = []
    for arg in fn.args:
        e.expr[arg] = e.fresh()
        reference = "&" if isinstance(arg.type, (T.StructType, T.TileType)) else ""
        parameters.append(
            f"{_parameter_type(module, fn, arg.type)}{' ' + reference if reference else ''} {e.expr[arg]}"
        )
    signature = _signature(fn, ", ".join(parameters))
    if fn.body is None:
        return f"{signature};\n"
    e.count_uses()
    *body, terminator = fn.body.ops
    lane_guard = bool(fn.attrs.get("single_lane_guard"))
    e.indent = 2 if lane_guard else 1
    e.operations(body)
    statements = e.lines
    if e.writes_scalars:
        pad = "  " * e.indent
        statements += [
            f"{pad}pipe_barrier(PIPE_ALL);",
            f"{pad}dcci((__gm__ void*)0, cache_line_t::ENTIRE_DATA_CACHE);",
            f"{pad}dsb((mem_dsb_t)0);",
        ]
    e.lines, e.indent = [], 1
    e.operations([terminator])
    lines = [f"{signature} {{", "  using T = float;", ""]
    guard = _GUARDS.get(fn.kind or "")
    if fn.result_types:
        guard = None
    if guard:
        lines.append(f"  #if defined({guard})")
        if fn.kind == "vector":
            lines += ["  set_mask_norm();", "  set_vector_mask(-1, -1);"]
    lines += e.constants
    if lane_guard:
        lines += ["  if (get_subblockid() == 0) {", *statements, "  }"]
    else:
        lines += statements
    if guard:
        lines.append(f"  #endif // {guard}")
    tail = fn.attrs.get("sync_tail")
    if tail is not None:
        lines += ["", f"  ptoas_auto_sync_tail({_TAIL_MODES[tail]});"]
    return "\n".join([*lines, *e.lines, "}", ""])
