"""Placement scopes, multi-block launches, task launches and dependencies."""

from __future__ import annotations

import pypto.language as pl
import pytest
from language_support import body, rejected, round_trip, statements
from pypto.language.parser.diagnostics import ParserSyntaxError, ParserTypeError, UnsupportedFeatureError

from pypto import ir

T = "pl.Tensor[[64, 64], pl.FP32]"


def orchestration(text, params=f"x: {T}, y: pl.Out[{T}]", options=""):
    """A program with a kernel ``k(x, out)`` and an orchestration ``main`` with this body."""
    lines = "\n".join(f"        {line}" for line in text.strip("\n").split("\n"))
    return pl.parse(
        f"@pl.program\nclass P:\n"
        f"    @pl.function(type=pl.FunctionType.InCore)\n"
        f"    def k(self, x: {T}, out: pl.Out[{T}]) -> {T}:\n"
        f"        return out\n"
        f"    @pl.function(type=pl.FunctionType.Orchestration{options})\n"
        f"    def main(self, {params}):\n{lines}\n"
    )


def main_of(program):
    return statements(program["main"])


def test_at_core_group():
    scope, _ = statements(body('with pl.at(level=pl.Level.CORE_GROUP, name_hint="k"):\n    y = pl.add(x, x)\nreturn y'))
    assert isinstance(scope, ir.InCoreScopeStmt)
    assert scope.name_hint == "k"


def test_at_options_become_attrs():
    program = orchestration(
        "with pl.at(level=pl.Level.CORE_GROUP) as t0:\n    y[:] = pl.add(x, x)\n"
        "with pl.at(pl.Level.CORE_GROUP, "
        "optimizations=[pl.split(pl.SplitMode.UP_DOWN), pl.cross_core_slot(slot_num=4)],"
        " deps=[t0], no_dep_args=[x], dumps=[y], allow_early_resolve=True) as t1:\n    y[:] = pl.mul(x, x)\nreturn y"
    )
    seed, first, seed_1, second, _ = main_of(program)
    assert first.attrs["task_id_var"] is seed.var
    assert seed_1.value.op.name == "system.task_invalid"
    assert second.split is ir.SplitMode.UP_DOWN
    assert second.attrs["slot_num"] == 4
    assert second.attrs["manual_dep_edges"][0] is seed.var
    assert second.attrs["arg_direction_overrides_vars"][0] is program["main"].params[0]
    assert second.attrs["dump_vars"][0] is program["main"].params[1]
    round_trip(program)


@pytest.mark.parametrize(
    ("error", "message", "header"),
    [
        (ParserSyntaxError, "role= is not supported", "pl.at(level=pl.Level.CORE_GROUP, role=pl.Role.SubWorker)"),
        (ParserSyntaxError, "requires level", "pl.at()"),
        (ParserSyntaxError, "Unknown keyword argument 'colour'", "pl.at(level=pl.Level.HOST, colour=1)"),
        (ParserSyntaxError, "must be a list literal", "pl.at(level=pl.Level.CORE_GROUP, optimizations=x)"),
        (ParserSyntaxError, "Unsupported entry", "pl.at(level=pl.Level.CORE_GROUP, optimizations=[3])"),
        (ParserSyntaxError, "must be positive",
         "pl.at(level=pl.Level.CORE_GROUP, optimizations=[pl.cross_core_slot(slot_num=0)])"),
        (ParserSyntaxError, "valid non-keyword identifier", 'pl.at(level=pl.Level.CORE_GROUP, name_hint="a b")'),
        (ParserSyntaxError, "boolean literal", "pl.at(level=pl.Level.CORE_GROUP, windowize=1)"),
        (ParserSyntaxError, "not supported inline", "pl.at(level=pl.Level.HOST, role=pl.Role.SubWorker)"),
        (ParserTypeError, "is not a tensor", "pl.at(level=pl.Level.CORE_GROUP, dumps=[n])"),
        (ParserTypeError, "twice", "pl.at(level=pl.Level.CORE_GROUP, no_dep_args=[x, x])"),
        (ParserSyntaxError, "only applies to", "pl.cluster() as t"),
        (ParserSyntaxError, "no positional arguments", "pl.cluster(3)"),
        (ParserSyntaxError, "only allowed in a function with auto_scope=False", "pl.scope()"),
        (ParserSyntaxError, "takes no arguments", "pl.manual_scope(1)"),
    ],
)  # fmt: skip
def test_refused_scope_headers(error, message, header):
    rejected(error, message, f"with {header}:\n    y = pl.add(x, x)", params=f"x: {T}, n: pl.Scalar[pl.INDEX]")


def test_runtime_scopes():
    program = orchestration(
        "with pl.scope():\n    y = self.k(x, y)\nwith pl.manual_scope():\n    y = self.k(x, y)\nreturn y",
        options=", auto_scope=False",
    )
    automatic, manual, _ = main_of(program)
    assert (automatic.manual, manual.manual) == (False, True)
    assert program["main"].attrs["auto_scope"] is False
    round_trip(program)
    with pytest.raises(ParserSyntaxError, match="may not be nested"):
        orchestration("with pl.manual_scope():\n    with pl.manual_scope():\n        y = self.k(x, y)")


def test_spmd_loop_binds_the_block_index():
    f = body(
        'for i in pl.spmd(8, name_hint="q"):\n'
        "    t = pl.load(x, [i * 8, 0], [8, 64])\n    x = pl.store(t, [i * 8, 0], x)"
    )
    spmd = statements(f)[0]
    assert (spmd.name_hint, spmd.body.name_hint) == ("q_spmd", "q")
    first = ir.flatten_to_stmts(spmd.body.body)[0]
    assert (first.var.name_hint, first.value.op.name) == ("i", "tile.get_block_idx")
    round_trip(f)


def test_spmd_dispatch_is_not_wrapped_and_inline_bodies_are():
    program = orchestration(
        "with pl.spmd(4):\n    y = self.k(x, y)\n"
        "with pl.spmd(4) as t:\n    i = pl.tile.get_block_idx()\n    u = pl.load(x, [i * 16, 0], [16, 64])\n"
        "    y = pl.store(u, [i * 16, 0], y)\nreturn y"
    )
    dispatch, _, inline, _ = main_of(program)
    assert isinstance(dispatch.body, ir.AssignStmt)
    assert isinstance(inline.body, ir.InCoreScopeStmt)
    round_trip(program)


@pytest.mark.parametrize(
    ("message", "text"),
    [
        ("neither reads the per-block index", "with pl.spmd(4):\n    y = pl.add(x, x)"),
        ("launches 2 kernels", "with pl.spmd(4):\n    y = self.k(x, y)\n    y = self.k(x, y)"),
        ("does not accept 'deps=' here", "with pl.spmd(4, deps=[]):\n    y = self.k(x, y)"),
        ("does not accept 'deps=' here", "for i in pl.spmd(4, deps=[]):\n    y = self.k(x, y)"),
        ("requires core_num", "with pl.spmd():\n    y = self.k(x, y)"),
        ("must be a positive integer", "with pl.spmd(0):\n    y = self.k(x, y)"),
        ("must be an integer expression", "with pl.spmd(True):\n    y = self.k(x, y)"),
        ("multiple values", "with pl.spmd(4, core_num=4):\n    y = self.k(x, y)"),
        ("single loop variable", "for i, j in pl.spmd(4):\n    y = self.k(x, y)"),
        ("cannot capture a TaskId", "with pl.cluster():\n    with pl.spmd(4) as t:\n        y = self.k(x, y)"),
        ("exactly 2 lanes", "for a in pl.split_aiv(4, mode=pl.SplitMode.NONE):\n    y = self.k(x, y)"),
        ("requires mode", "for a in pl.split_aiv(2):\n    y = self.k(x, y)"),
    ],
)
def test_refused_launch_scopes(message, text):
    with pytest.raises(ParserSyntaxError, match=message):
        orchestration(text)


def test_split_region_is_wrapped_outside_kernels_only():
    text = "for a in pl.split_aiv(2, mode=pl.SplitMode.UP_DOWN):\n    t = pl.load(x, [a * 32, 0], [32, 64])"
    assert isinstance(statements(body(text))[0], ir.InCoreScopeStmt)
    kernel = pl.parse(
        "@pl.function(type=pl.FunctionType.InCore)\ndef k(x: " + T + "):\n    " + text.replace("\n", "\n    ")
    )
    region = statements(kernel)[0]
    assert isinstance(region, ir.SplitAivScopeStmt)
    assert ir.flatten_to_stmts(region.body)[0].value.op.name == "tile.get_subblock_idx"


# -- launches ----------------------------------------------------------------------------------------------------


def test_submit_gives_results_and_a_task_id():
    program = orchestration(
        "with pl.manual_scope():\n    y, a = pl.submit(self.k, x, y)\n"
        "    y, b = pl.spmd_submit(self.k, x, y, core_num=4, sync_start=True, deps=[a, None], dumps=[x])\nreturn y"
    )
    launch, result, task, spmd, *_ = ir.flatten_to_stmts(main_of(program)[0].body)
    assert isinstance(launch.value, ir.Submit)
    assert isinstance(launch.value.type, ir.TupleType)
    assert task.var.type == ir.ScalarType(ir.DataType.TASK_ID)
    assert result.var is program["main"].params[1]
    assert isinstance(spmd, ir.AssignStmt)
    second = spmd.value
    assert (second.core_num.value, second.sync_start) == (4, True)
    assert second.deps == (task.var,)
    assert second.attrs["dump_vars"] == [program["main"].params[0]]
    round_trip(program)


def test_array_elements_are_collected_into_one_dependency():
    program = orchestration(
        "tids = pl.array.create(3, pl.TASK_ID)\n"
        "for i in pl.range(3):\n    y, t = pl.submit(self.k, x, y)\n    tids[i] = t\n"
        "y, last = pl.submit(self.k, x, y, deps=[tids[i] for i in range(3) if i != 1])\nreturn y"
    )
    submit = next(s.value for s in main_of(program)[2:] if isinstance(getattr(s, "value", None), ir.Submit))
    assert len(submit.deps) == 1
    assert submit.deps[0].type.extent.value == 2
    round_trip(program)


@pytest.mark.parametrize(
    ("error", "message", "text"),
    [
        (ParserTypeError, "deps= entries must be a TaskId", "y, t = pl.submit(self.k, x, y, deps=[x])"),
        (ParserTypeError, "must iterate over a Python range",
         "a = pl.array.create(3, pl.TASK_ID)\ny, t = pl.submit(self.k, x, y, deps=[a[i] for i in pl.range(3)])"),
        (ParserSyntaxError, "exactly 2 targets", "a, b, c = pl.submit(self.k, x, y)"),
        (ParserTypeError, "unpacks 2 result value", "(a, b), t = pl.submit(self.k, x, y)"),
        (ParserSyntaxError, "must be self.<kernel>", "y, t = pl.submit(x, y)"),
        (ParserTypeError, r"expects 1..2 argument\(s\), got 3", "y, t = pl.submit(self.k, x, y, y)"),
        (ParserTypeError, "does not accept keyword argument 'speed'", "y, t = pl.submit(self.k, x, y, speed=1)"),
        (ParserSyntaxError, "requires core_num", "y, t = pl.spmd_submit(self.k, x, y)"),
        (ParserTypeError, "not an argument of this submit", "y, t = pl.submit(self.k, x, y, dumps=[w])"),
        (ParserTypeError, "does not accept keyword argument 'deps'", "y = self.k(x, y, deps=[])"),
        (ParserTypeError, r"expects 2 argument\(s\), got 1", "y = self.k(x)"),
        (ParserSyntaxError, "statement of its own", "y = pl.add(pl.submit(self.k, x, y), x)"),
        (ParserTypeError, "requires keyword argument 'deps'", "t = pl.system.task_dummy()"),
    ],
)  # fmt: skip
def test_refused_launches(error, message, text):
    with pytest.raises(error, match=message):
        orchestration(text, params=f"x: {T}, y: pl.Out[{T}], w: {T}")


PREDICATE = f"x: {T}, y: pl.Out[{T}], c: pl.Tensor[[8], pl.INT32], u: pl.Tensor[[8], pl.UINT32]"


@pytest.mark.parametrize("text", ["c[0] > 0", "0 < c[0]", "c[3] != -1"])
def test_predicates_are_kept_as_written(text):
    program = orchestration(f"y, t = pl.submit(self.k, x, y, predicate=({text}))\nreturn y", params=PREDICATE)
    assert main_of(program)[0].value.predicate is not None
    round_trip(program)


@pytest.mark.parametrize(
    ("error", "message", "text"),
    [
        (ParserSyntaxError, "single comparison", "c[0] > 0 and c[1] > 0"),
        (ParserSyntaxError, "one tensor element", "c[0] % 2 == 0"),
        (ParserTypeError, "signed 8/16/32/64-bit", "u[0] > 0"),
        (ParserSyntaxError, "must be ScalarExpr", "c > 0"),
    ],
)
def test_refused_predicates(error, message, text):
    with pytest.raises(error, match=message):
        orchestration(f"y, t = pl.submit(self.k, x, y, predicate=({text}))", params=PREDICATE)


def test_predicate_needs_the_producer_of_its_operand():
    header = (
        "@pl.program\nclass P:\n    @pl.function(type=pl.FunctionType.InCore)\n"
        "    def g(self, c: pl.Out[pl.Tensor[[8], pl.INT32]]) -> pl.Tensor[[8], pl.INT32]:\n        return c\n"
        "    @pl.function(type=pl.FunctionType.Orchestration)\n"
        "    def main(self, c: pl.Out[pl.Tensor[[8], pl.INT32]]):\n"
        "        c, t = pl.submit(self.g, c)\n"
    )
    pl.parse(header + "        c, u = pl.submit(self.g, c, deps=[t], predicate=(c[0] > 0))\n")
    with pytest.raises(ParserSyntaxError, match="produced by the task bound to 't', but 't' is not in deps="):
        pl.parse(header + "        c, u = pl.submit(self.g, c, predicate=(c[0] > 0))\n")


def test_no_dep_marks_the_argument():
    program = orchestration("y = self.k(pl.no_dep(x), y)\nreturn y")
    assert main_of(program)[0].value.attrs["arg_direction_overrides"] == [0]


def test_dump_tag_reaches_calls_and_scopes():
    program = orchestration(
        "pl.dump_tag(x)\ny = self.k(x, y)\nwith pl.at(level=pl.Level.CORE_GROUP):\n    y[:] = pl.add(x, x)\nreturn y"
    )
    call, scope, _ = main_of(program)
    assert call.value.attrs["dump_vars"] == [program["main"].params[0]]
    assert scope.attrs["dump_vars"] == [program["main"].params[0]]
    with pytest.raises(ParserSyntaxError, match="only valid inside an Orchestration"):
        body("pl.dump_tag(x)")


# -- hosts -------------------------------------------------------------------------------------------------------


def test_host_dispatch_and_windows():
    program = pl.parse(
        "@pl.program\nclass P:\n"
        "    @pl.function(type=pl.FunctionType.Orchestration)\n"
        "    def chip(self, x: pl.Tensor[[8], pl.FP32], w: pld.DistributedTensor[[8], pl.FP32]):\n        return x\n"
        "    @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)\n"
        "    def host(self, x: pl.Tensor[[2, 8], pl.FP32]):\n"
        "        buf = pld.alloc_window_buffer([8], dtype=pl.FP32)\n"
        "        for r in pl.range(pld.world_size()):\n"
        "            win = pld.window(buf, [8], dtype=pl.FP32)\n"
        "            self.chip(x[r], win, device=r)\n"
    )
    alloc, loop = statements(program["host"])
    assert alloc.value.kwargs["name"] == "buf"
    assert isinstance(alloc.var.type, ir.PtrType)
    call = ir.flatten_to_stmts(loop.body)[1].expr
    assert call.attrs["device"] is loop.loop_var
    with pytest.raises(ParserSyntaxError, match="HOST"):
        body("buf = pld.alloc_window_buffer(64)")
    with pytest.raises(ParserTypeError, match="'device'"):
        orchestration("y = self.k(x, y, device=0)")


def test_graph_scope_is_named_as_missing():
    with pytest.raises((UnsupportedFeatureError, AttributeError)):
        body('with pl.graph("g"):\n    y = x')


def test_a_scope_is_split_by_its_options_or_by_a_region():
    text = (
        "with pl.at(level=pl.Level.CORE_GROUP{}):\n    for lane in pl.split_aiv(2, mode=pl.SplitMode.NONE):\n"
        "        t = pl.load(x, [lane * 32, 0], [32, 64])\n        x = pl.store(t, [lane * 32, 0], x)\nreturn x"
    )
    body(text.format(""))
    for mode in ("UP_DOWN", "NONE"):
        option = f", optimizations=[pl.split(pl.SplitMode.{mode})]"
        rejected(ParserSyntaxError, "mutually exclusive", text.format(option))


def test_windowize_and_other_scope_attributes_survive_printing():
    f = body("with pl.at(level=pl.Level.CORE_GROUP, windowize=True):\n    y = pl.add(x, x)\nreturn y")
    assert "with pl.at(level=pl.Level.CORE_GROUP, windowize=True):" in ir.python_print(f, format=False)
    round_trip(f)
    for scope in ("pl.at(level=pl.Level.CORE_GROUP{0})", "pl.cluster({1})", "pl.scope(mode=pl.ScopeMode.MANUAL{0})"):
        header = scope.format(', attrs={"note": 3}', 'attrs={"note": 3}')
        noted = body(f"with {header}:\n    y = pl.add(x, x)\nreturn y")
        assert statements(noted)[0].attrs == {"note": 3}
        round_trip(noted)


@pytest.mark.parametrize("device", ["1.5", "x"])
def test_a_device_is_an_integer(device):
    with pytest.raises(ParserTypeError, match="device= must be an integer"):
        pl.parse(
            "@pl.program\nclass P:\n"
            "    @pl.function(type=pl.FunctionType.Orchestration)\n"
            f"    def chip(self, x: {T}) -> {T}:\n        return x\n"
            "    @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)\n"
            f"    def host(self, x: {T}):\n        x = self.chip(x, device={device})\n        return x\n"
        )


@pytest.mark.parametrize(
    "scope",
    ["for i in pl.spmd(4):\n    ", "with pl.spmd(4):\n    i = pl.tile.get_block_idx()\n    "],
    ids=["for", "with"],
)
def test_a_dump_tag_reaches_the_blocks_of_a_launch(scope):
    program = orchestration(f"pl.dump_tag(x)\n{scope}y[i * 16 : i * 16 + 16, :] = x[i * 16 : i * 16 + 16, :]\nreturn y")
    launch = statements(program["main"])[0]
    assert launch.body.attrs["dump_vars"] == [program["main"].params[0]]
    assert "dump_vars" not in launch.attrs
    round_trip(program)
