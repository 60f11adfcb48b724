"""Passes of programs on several ranks: signals, domains, collectives, contexts, fences."""

from __future__ import annotations

import pypto.language as pl
import pytest
from pass_programs import calls, find_calls, run, text

import pypto
from pypto import ir, passes

PROGRAM = """
import pypto.language as pl
import pypto.language.distributed as pld


@pl.program
class Prog:
    @pl.function(type=pl.FunctionType.AIV)
    def put(
        self, x: pl.Tensor[[8, 64], pl.FP32], w: pl.Out[pld.DistributedTensor[[8, 64], pl.FP32]]
    ) -> pld.DistributedTensor[[8, 64], pl.FP32]:
        t: pl.Tile[[8, 64], pl.FP32, pl.Mem.Vec] = pl.tile.load(x, [0, 0], [8, 64], [8, 64], target_memory=pl.Mem.Vec)
        r: pld.DistributedTensor[[8, 64], pl.FP32] = pl.tile.store(t, [0, 0], w)
        return w

    @pl.function(type=pl.FunctionType.Orchestration)
    def rank(
        self, x: pl.Tensor[[8, 64], pl.FP32], w: pl.Out[pld.DistributedTensor[[8, 64], pl.FP32]]
    ) -> pld.DistributedTensor[[8, 64], pl.FP32]:
        r: pld.DistributedTensor[[8, 64], pl.FP32] = self.put(x, w)
        return w

    @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
    def main(self, x: pl.Tensor[[8, 64], pl.FP32]):
        buf = pld.tensor.alloc_window_buffer(2048)
        w = pld.tensor.window(buf, [8, 64], dtype=pl.FP32)
{body}
"""
DISPATCH = """
        for r in pl.range({ranks}):
            self.rank(x, w, device=r)
"""
PASSES = ("synthesize_allreduce_signals", "materialize_comm_domain_scopes", "lower_host_tensor_collectives")


def host(body: str) -> ir.Program:
    return pl.parse_program(PROGRAM.format(body=body.strip("\n")))


def domains(program: ir.Program) -> list[ir.CommDomainScopeStmt]:
    found: list[ir.CommDomainScopeStmt] = []

    class Collect(ir.IRVisitor):
        def visit_comm_domain_scope_stmt(self, stmt):
            found.append(stmt)
            super().visit_comm_domain_scope_stmt(stmt)

    Collect().visit_program(program)
    return found


def test_window_dispatched_to_a_counted_loop_belongs_to_those_devices():
    (scope,) = domains(run(host(DISPATCH.format(ranks=3)), *PASSES))
    assert [d.value for d in scope.devices] == [0, 1, 2]
    assert [s.name_hint for s in scope.slots] == ["buf"]


def test_window_without_a_dispatch_is_reported():
    with pytest.raises(pypto.InternalError, match="not consumed by any chip_orch dispatch"):
        run(host("        pass"), *PASSES)


def test_allreduce_without_signal_gets_one_in_the_domain_of_its_data():
    body = (
        DISPATCH.format(ranks="pld.system.world_size()") + "        s = pld.tensor.allreduce(w, op=pld.ReduceOp.Sum)\n"
    )
    after = run(host(body), *PASSES)
    (scope,) = domains(after)
    assert [s.name_hint for s in scope.slots] == ["buf", "__allreduce_signal_buf_0"]
    (call,) = find_calls(after, "builtin.tensor.allreduce", "main")
    assert call.arg_directions == [ir.ArgDirection.InOut, ir.ArgDirection.InOut]
    assert isinstance(call.attrs["device"], ir.Var)


def test_allreduce_without_signal_in_a_loop_is_rejected():
    body = DISPATCH.format(ranks=2) + (
        "        for i in pl.range(3):\n            s = pld.tensor.allreduce(w, op=pld.ReduceOp.Sum)\n"
    )
    with pytest.raises(ValueError, match="inside a for/while"):
        run(host(body), *PASSES)


def test_data_and_signal_must_be_different_windows():
    body = DISPATCH.format(ranks=2) + (
        "        g = pld.tensor.window(buf, [2], dtype=pl.INT32)\n"
        "        s = pld.tensor.allreduce(w, g, op=pld.ReduceOp.Sum)\n"
    )
    with pytest.raises(ValueError, match="must be different window allocations"):
        run(host(body), *PASSES)


def test_context_travels_from_the_host_to_the_kernel():
    after = run(host(DISPATCH.format(ranks=2)), "derive_call_directions", *PASSES, "materialize_dist_tensor_ctx")
    for name in ("put", "rank"):
        assert after.get_function(name).params[-1].name_hint == "w_ctx"
    assert find_calls(after, "put", "rank")[0].args[-1] is after.get_function("rank").params[-1]
    assert calls(after, "main")[-2:] == ["pld.system.get_comm_ctx", "rank"]


def test_window_store_is_published_once():
    program = host(DISPATCH.format(ranks=2))
    after = run(program, "insert_comm_fence")
    assert calls(after, "put")[-3:] == ["tile.store", "system.cacheinvalid", "system.fence"]
    assert find_calls(after, "system.cacheinvalid", "put")[0].args[0] is after.get_function("put").params[1]
    assert run(after, "insert_comm_fence") is after
    assert "cacheinvalid" not in text(after, "rank")


def problems(name: str, program: ir.Program) -> list[str]:
    wanted = passes.IRPropertySet([getattr(passes.IRProperty, name)])
    return [d.message for d in passes.PropertyVerifierRegistry.verify(wanted, program)]


def test_window_buffers_belong_to_one_domain():
    before = host(DISPATCH.format(ranks="pld.system.world_size()"))
    assert any("outside any communication domain" in p for p in problems("CommDomainScopesMaterialized", before))
    after = run(before, *PASSES)
    assert problems("CommDomainScopesMaterialized", after) == []
    main = after.get_function("main")
    (scope,) = [s for s in ir.flatten_to_stmts(main.body) if isinstance(s, ir.CommDomainScopeStmt)]
    again = ir.CommDomainScopeStmt(list(scope.devices), list(scope.slots), "again", body=scope.body, span=scope.span)
    twice = ir.Function(
        "main", list(zip(main.params, main.param_directions)), list(main.return_types),
        ir.SeqStmts([scope, again], main.span), main.span, type=main.func_type, level=main.level, role=main.role,
    )  # fmt: skip
    (found,) = problems("CommDomainScopesMaterialized", ir.Program([twice], "p", main.span))
    assert "appears in multiple CommDomainScopeStmts" in found
