"""CallDirectionsResolved: every dispatch says how each argument is accessed."""

from __future__ import annotations

from pypto.ir.enums import ArgDirection, FunctionType, ParamDirection
from pypto.ir.expr import GlobalVar
from pypto.ir.program import Program
from pypto.ir.types import TensorType
from pypto.passes.diagnostics import Diagnostic
from pypto.passes.lib.walk import iter_calls
from pypto.passes.properties import IRProperty
from pypto.passes.verification import PropertyVerifierRegistry
from pypto.passes.verifiers.base import defined_functions, error

_RULE = "CallDirectionsResolved"
_A = ArgDirection
_COMPATIBLE = {
    ParamDirection.In: (_A.Input, _A.NoDep),
    ParamDirection.InOut: (_A.InOut, _A.OutputExisting, _A.NoDep),
    ParamDirection.Out: (_A.OutputExisting, _A.Output, _A.InOut, _A.NoDep),
}
_CALLERS = (FunctionType.Orchestration, FunctionType.Graph, FunctionType.Opaque)


@PropertyVerifierRegistry.register(IRProperty.CallDirectionsResolved)
def verify_call_directions(program: Program) -> list[Diagnostic]:
    """One direction per argument, compatible with the callee's parameter."""
    found: list[Diagnostic] = []
    for function in defined_functions(program):
        if function.func_type not in _CALLERS:
            continue
        for stmt, call in iter_calls(function.body):
            if not isinstance(call.op, GlobalVar) or not call.args:
                continue
            directions = call.attrs.get("arg_directions")
            where = f"call of '{call.op.name}' in function '{function.name}'"
            if not directions:
                found.append(error(_RULE, 1, f"{where} has no arg_directions", stmt.span))
                continue
            if len(directions) != len(call.args):
                message = f"{where} has {len(directions)} directions for {len(call.args)} arguments"
                found.append(error(_RULE, 2, message, stmt.span))
                continue
            callee = program.get_function(call.op.name)
            if callee is None:
                continue
            for index, (arg, direction) in enumerate(zip(call.args, directions)):
                if not isinstance(arg.type, TensorType):
                    ok = direction in (_A.Scalar, _A.NoDep, _A.Input)
                elif index < len(callee.param_directions):
                    ok = direction in _COMPATIBLE[callee.param_directions[index]]
                else:
                    ok = True
                if not ok:
                    message = (
                        f"argument {index} of the {where} has direction {direction.name}, which its callee forbids"
                    )
                    found.append(error(_RULE, 3, message, stmt.span))
    return found
