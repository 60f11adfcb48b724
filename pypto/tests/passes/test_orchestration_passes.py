"""Passes over orchestration functions: return order, directions, scopes, carries, fusion, symbols, phase fences."""

from __future__ import annotations

import pytest
from pass_programs import calls, find_calls, parse, run, text

from pypto import ir

D = ir.ArgDirection
T = "pl.Tensor[[64, 16], pl.FP32]"
KERNEL = f"""
@pl.function(type=pl.FunctionType.AIV)
def k(self, x: {T}, o: pl.Out[{T}]) -> {T}:
    t: pl.Tile[[64, 16], pl.FP32, pl.Mem.Vec] = pl.tile.load(x, [0, 0], [64, 16], [64, 16], target_memory=pl.Mem.Vec)
    r: {T} = pl.tile.store(t, [0, 0], o)
    return o
"""


def program(body: str, *, params: str = f"x: {T}, y: pl.Out[{T}]", kernels: str = KERNEL) -> ir.Program:
    lines = "\n".join("    " + line for line in body.strip("\n").splitlines())
    return parse(f"{kernels}\n@pl.function(type=pl.FunctionType.Orchestration)\ndef main(self, {params}):\n{lines}\n")


def directions(after: ir.Program, name: str = "k", function: str = "main") -> list[list[D]]:
    return [call.arg_directions for call in find_calls(after, name, function)]


CREATE = "t = pl.tensor.create([64, 16], dtype=pl.FP32)\n"


def test_second_writer_of_a_buffer_is_inout():
    after = run(program(f"{CREATE}u: {T} = self.k(x, t)\nv: {T} = self.k(x, u)"), "derive_call_directions")
    assert directions(after) == [[D.Input, D.OutputExisting], [D.Input, D.InOut]]


@pytest.mark.parametrize(("kind", "expected"), [("range", D.InOut), ("parallel", D.OutputExisting)])
def test_only_ordered_loops_turn_outputs_into_inout(kind, expected):
    body = f"""
for i, (c,) in pl.{kind}(4, init_values=(y,)):
    d: {T} = self.k(x, c)
    r: {T} = pl.yield_(d)
"""
    assert directions(run(program(body), "derive_call_directions")) == [[D.Input, expected]]


def test_existing_directions_are_kept_and_the_pass_is_idempotent():
    once = run(program(f"u: {T} = self.k(x, y)"), "derive_call_directions")
    assert run(once, "derive_call_directions") is once


def test_wrapper_parameters_say_what_their_bodies_do():
    group = f"""
@pl.function(type=pl.FunctionType.Group)
def g(self, x: {T}, o: {T}) -> {T}:
    r: {T} = self.k(x, o)
    return o
"""
    after = run(program(f"u: {T} = self.g(x, y)", kernels=KERNEL + group), "derive_call_directions")
    assert after.get_function("g").param_directions == [ir.ParamDirection.In, ir.ParamDirection.Out]


SWAPPED = f"""
@pl.function(type=pl.FunctionType.AIV)
def k(self, x: {T}, a: pl.Out[{T}], b: pl.Out[{T}]) -> tuple[{T}, {T}]:
    t: pl.Tile[[64, 16], pl.FP32, pl.Mem.Vec] = pl.tile.load(x, [0, 0], [64, 16], [64, 16], target_memory=pl.Mem.Vec)
    p: {T} = pl.tile.store(t, [0, 0], a)
    q: {T} = pl.tile.store(t, [0, 0], b)
    return q, p
"""


def test_returns_follow_the_declaration_order_and_callers_are_reindexed():
    body = f"r: pl.Tuple[{T}, {T}] = self.k(x, y, z)\nfirst: {T} = r[0]\nsecond: {T} = r[1]"
    before = program(body, params=f"x: {T}, y: pl.Out[{T}], z: pl.Out[{T}]", kernels=SWAPPED)
    after = run(before, "normalize_return_order")
    kernel = after.get_function("k")
    returned = kernel.body[-1].value
    assert [v.name_hint for v in returned] == ["a", "b"]
    assert all(v is p for v, p in zip(returned, kernel.params[1:]))
    items = [s.value.index for s in after.get_function("main").body if isinstance(s.value, ir.TupleGetItemExpr)]
    assert items == [1, 0]
    assert run(after, "normalize_return_order") is after


def test_scopes_wrap_the_body_loops_and_branches_once():
    body = f"""
for i, (c,) in pl.range(4, init_values=(y,)):
    d: {T} = self.k(x, c)
    r: {T} = pl.yield_(d)
"""
    after = run(program(body), "derive_call_directions", "materialize_runtime_scopes")
    main = after.get_function("main")
    assert main.attrs["auto_scope"] is False
    assert isinstance(main.body, ir.RuntimeScopeStmt)
    assert text(after, "main").count("with pl.scope():") == 2
    assert run(after, "materialize_runtime_scopes") is after


@pytest.mark.parametrize(
    ("value", "rebinds"),
    [(f"d: {T} = self.k(x, c)", False), ("d = pl.tensor.create([64, 16], dtype=pl.FP32)", True)],
)
def test_carry_is_a_rebind_only_when_another_buffer_is_yielded(value, rebinds):
    body = f"for i, (c,) in pl.range(4, init_values=(y,)):\n    {value}\n    r: {T} = pl.yield_(d)"
    after = run(program(body), "classify_iter_arg_carry")
    assert after.get_function("main").body.attrs == {"iter_arg_rebind_0": rebinds}


PIECES = """
for i, (c,) in pl.range(4, init_values=(y,)):
    p = pl.tensor.create([1, 16], dtype=pl.FP32)
    f: pl.Tensor[[1, 16], pl.FP32] = self.fill(p)
    d = pl.tensor.assemble(c, f, [i, 0])
{more}    r = pl.yield_({last})
return r
"""
FILL = """
@pl.function(type=pl.FunctionType.AIV)
def fill(self, o: pl.Out[pl.Tensor[[1, 16], pl.FP32]]) -> pl.Tensor[[1, 16], pl.FP32]:
    return o
"""


def test_buffer_assembled_once_becomes_a_window_and_the_carry_goes():
    before = program(PIECES.format(more="", last="d"), kernels=FILL)
    after = run(before, "fuse_create_assemble_to_slice")
    assert calls(after, "main") == ["tensor.slice", "fill"]
    assert "init_values" not in text(after, "main")


def test_buffer_assembled_twice_stays():
    more = "    e = pl.tensor.assemble(d, f, [i + 8, 0])\n"
    before = program(PIECES.format(more=more, last="e"), kernels=FILL)
    assert run(before, "fuse_create_assemble_to_slice") is before


SYMBOL = """
@pl.function(type=pl.FunctionType.AIV)
def k(self, a: pl.Tensor[[16, 128], pl.FP32, pl.TensorView(valid_shape=[16, {extent}], layout=pl.TensorLayout.ND)]):
    pl.system.fence()
"""


def _with_symbol(extent: str) -> ir.Program:
    text = SYMBOL.format(extent=extent).replace("\n", "\n    ")
    import pypto.language as pl

    main = """
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, n: pl.Scalar[pl.INDEX],
             a: pl.Tensor[[16, 128], pl.FP32, pl.TensorView(valid_shape=[16, n], layout=pl.TensorLayout.ND)]):
        self.k(a)
    """
    return pl.parse_program(
        f'import pypto.language as pl\n\nV = pl.dynamic("V")\n\n\n@pl.program\nclass Prog:\n{text}\n{main}'
    )


def test_valid_shape_symbol_becomes_a_leading_argument():
    after = run(_with_symbol("V"), "derive_call_directions", "materialize_valid_shape_symbols")
    assert [p.name_hint for p in after.get_function("k").params] == ["V", "a"]
    (call,) = find_calls(after, "k", "main")
    assert [a.name_hint for a in call.args] == ["n", "a"]
    assert call.arg_directions == [D.Scalar, D.Input]
    assert run(after, "materialize_valid_shape_symbols") is after


def test_symbol_that_no_argument_can_give_is_named():
    with pytest.raises(ValueError, match="'V'"):
        run(_with_symbol("V * 2"), "materialize_valid_shape_symbols")


@pytest.mark.parametrize(
    ("producers", "consumers", "fenced"), [(4, 8, True), (3, 3, True), (2, 2, False), (4, 1, False)]
)
def test_fence_is_inserted_only_where_it_saves_edges(producers, consumers, fenced):
    body = f"""
with pl.manual_scope():
    tids = pl.array.create({producers}, pl.TASK_ID)
    for i in pl.parallel({consumers}):
        a, tid = pl.submit(self.k, x, y, deps=[tids])
"""
    after = run(program(body), "expand_manual_phase_fence")
    assert ("system.task_dummy" in calls(after, "main")) is fenced


def derived(body: str, **arguments) -> ir.Program:
    before = run(program(body, **arguments), "derive_call_directions")
    return run(before, "auto_derive_task_dependencies", analyze_auto_scopes=True)


def edges(after: ir.Program) -> list[list[str]]:
    calls_of = find_calls(after, "k", "main")
    return [[e.name_hint for e in call.attrs.get("compiler_manual_dep_edges", ())] for call in calls_of]


def test_chain_of_tasks_gets_explicit_edges_and_a_manual_scope():
    after = derived(f"{CREATE}u: {T} = self.k(x, t)\nv: {T} = self.k(u, y)\nreturn v", params=f"x: {T}, y: pl.Out[{T}]")
    assert edges(after) == [[], ["u"]]
    assert directions(after)[1][0] is D.NoDep
    scoped = run(after, "materialize_runtime_scopes").get_function("main")
    assert scoped.body.manual is True


def test_disjoint_slices_are_independent_and_overlapping_ones_are_not():
    body = """
a = pl.tensor.slice(y, [32, 16], [0, 0])
b = pl.tensor.slice(y, [32, 16], [{row}, 0])
u: pl.Tensor[[32, 16], pl.FP32] = self.half(a)
v: pl.Tensor[[32, 16], pl.FP32] = self.half(b)
"""
    half = """
@pl.function(type=pl.FunctionType.AIV)
def half(self, o: pl.InOut[pl.Tensor[[32, 16], pl.FP32]]) -> pl.Tensor[[32, 16], pl.FP32]:
    return o
"""
    found = []
    for row in (32, 16):
        after = derived(body.format(row=row), kernels=half)
        found.append([len(c.attrs.get("compiler_manual_dep_edges", ())) for c in find_calls(after, "half", "main")])
    assert found == [[0, 0], [0, 1]]


def test_buffer_written_by_an_ordered_loop_stays_tracked():
    body = f"""
for i, (c,) in pl.range(4, init_values=(y,)):
    d: {T} = self.k(x, c)
    e: {T} = self.k(d, d)
    r: {T} = pl.yield_(e)
"""
    after = derived(body)
    assert all(direction is not D.NoDep for call in directions(after) for direction in call)
    assert run(after, "materialize_runtime_scopes").get_function("main").body.manual is False


def test_without_the_option_nothing_changes():
    before = run(program(f"{CREATE}u: {T} = self.k(x, t)"), "derive_call_directions")
    assert run(before, "auto_derive_task_dependencies") is before


SPMD = f"""
@pl.function(type=pl.FunctionType.Spmd)
def k(self, x: {T}, o: pl.Out[{T}]) -> {T}:
    return o
"""
LAUNCH = 'u: {T} = self.k(x, y, attrs={{"core_num": c}})\nreturn u'


def launched(lines: str, body: str) -> ir.Program:
    params = f"x: {T}, y: pl.Out[{T}], n: pl.Scalar[pl.INDEX]"
    return run(program(lines + body.format(T=T), params=params, kernels=SPMD), "legalize_spmd_launches")


def test_possibly_empty_launch_is_guarded_and_returns_the_callers_buffer_otherwise():
    after = launched("c: pl.Scalar[pl.INDEX] = n * 2\n", LAUNCH)
    main = after.get_function("main")
    guard = next(s for s in main.body if isinstance(s, ir.IfStmt))
    assert guard.else_body.value[0] is main.params[1]
    assert [v.name_hint for v in guard.return_vars] == ["u"]
    assert "if c > 0:" in text(after, "main")
    assert run(after, "legalize_spmd_launches") is after


@pytest.mark.parametrize(
    "lines",
    ["c: pl.Scalar[pl.INDEX] = pl.max(n, 1)\n", "c: pl.Scalar[pl.INDEX] = pl.const(4, pl.INDEX)\n"],
)
def test_provably_positive_launch_stays(lines):
    assert not any(isinstance(s, ir.IfStmt) for s in launched(lines, LAUNCH).get_function("main").body)


def test_branch_condition_proves_the_count():
    body = """
if n > 0:
    c: pl.Scalar[pl.INDEX] = (n + 15) // 16 * 4
    u: {T} = self.k(x, y, attrs={{"core_num": c}})
    r: {T} = pl.yield_(u)
else:
    r: {T} = pl.yield_(y)
return r
"""
    assert text(launched("", body), "main").count("if ") == 1
