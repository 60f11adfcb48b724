"""Text of nodes: expressions, statements, types, names, programs."""

# ruff: noqa: E501 - a table reads best with one case a line

import pytest
from pypto.ir.printer import python_print

from pypto import InternalError, ir

INDEX, INT, INT32 = ir.DataType.INDEX, ir.DataType.INT64, ir.DataType.INT32
FP32, FP16, BOOL = ir.DataType.FP32, ir.DataType.FP16, ir.DataType.BOOL
SPAN = ir.Span.unknown()
A, B, C = (ir.Var(name, ir.ScalarType(INDEX), SPAN) for name in "abc")


def text(node, **options):
    return python_print(node, format=False, **options)


def binary(cls, a, b, dtype=INDEX):
    return cls(a, b, dtype, SPAN)


def const(value, dtype=INDEX):
    return ir.ConstInt(value, dtype, SPAN)


@pytest.mark.parametrize(
    ("expr", "expected"),
    [
        (A - B - C, "a - b - c"), (A - (B - C), "a - (b - c)"), (A * (B + C), "a * (b + c)"), (A + B * C, "a + b * c"),
        ((A + B) // 4 % 2, "(a + b) // 4 % 2"), (-(A + B), "-(a + b)"), (-A * B, "-a * b"), (A - -B, "a - -b"),
        (A ** B ** C, "a ** b ** c"), ((A ** B) ** C, "(a ** b) ** c"), ((-A) ** B, "(-a) ** b"),
        (A << 1 & B | C ^ A, "a << 1 & b | c ^ a"), (~A & B, "~a & b"),
        (binary(ir.Lt, binary(ir.Lt, A, B, BOOL), C, BOOL), "(a < b) < c"),
        (ir.and_(ir.or_(A, B), ir.not_(C)), "(a or b) and not c"), (ir.not_(ir.eq(A, B)), "not a == b"),
        (ir.min_(A + 1, B), "pl.min(a + 1, b)"), (ir.max_(A, 4), "pl.max(a, 4)"), (ir.cast(A, INT32), "pl.cast(a, pl.INT32)"),
        (binary(ir.Pow, const(-2), A), "(-2) ** a"), (const(-3) * A, "-3 * a"),
        (const(42), "42"), (const(42, INT32), "pl.const(42, pl.INT32)"), (const(-1, INT), "pl.const(-1, pl.INT64)"),
        (const(32) + const(32), "pl.const(32, pl.INDEX) + pl.const(32, pl.INDEX)"),
        (A + (const(1) + const(2)), "a + (pl.const(1, pl.INDEX) + pl.const(2, pl.INDEX))"),
        (ir.ConstFloat(1.0, FP32), "1.0"), (ir.ConstFloat(0.1, FP32), "0.10000000000000001"),
        (ir.ConstFloat(1e30, FP32), "1e30"), (ir.ConstFloat(-0.0, FP32), "-0.0"),
        (ir.ConstFloat(-2.5, FP16), "pl.const(-2.5, pl.FP16)"), (ir.ConstBool(True), "True"),
        (ir.MakeTuple([A, const(0)]), "[a, 0]"),
    ],
)  # fmt: skip
def test_expressions(expr, expected):
    assert text(expr) == expected


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (ir.Call(ir.Op("tile.and"), [A, B]), "pl.tile.and_(a, b)"),
        (ir.Call(ir.Op("my_op"), [A]), "my_op(a)"),
        (ir.Call(ir.Op("pld.system.rank"), []), "pld.system.rank()"),
        (ir.Call(ir.Op("tile.load"), [A], {"target_memory": ir.Mem.Vec}, SPAN), "pl.tile.load(a, target_memory=pl.Mem.Vec)"),
        (ir.Call(ir.Op("tile.store"), [A], {"atomic": 1}, SPAN), "pl.tile.store(a, atomic=pl.AtomicType.Add)"),
        (ir.Call(ir.Op("tile.cast"), [A], {"target_type": FP16, "mode": 1}, SPAN), 'pl.tile.cast(a, target_type=pl.FP16, mode="rint")'),
        (ir.Call(ir.Op("tile.alloc"), [const(1), const(64)]), "pl.tile.alloc(pl.Mem.Vec, 64)"),
        (ir.Call(ir.Op("tile.full"), [A, ir.ConstFloat(1.0, FP32)], {"dtype": FP32}, SPAN), "pl.tile.full(a, dtype=pl.FP32, value=1.0)"),
        (ir.Call(ir.Op("system.task_dummy"), [], {}, {"manual_dep_edges": [A]}, ir.ScalarType(INDEX), SPAN), "pl.system.task_dummy(deps=[a])"),
        (ir.Call(ir.Op("tile.abs"), [A], {}, {"note": 'say "hi"', "flag": True}, ir.ScalarType(INDEX), SPAN), 'pl.tile.abs(a, attrs={"note": "say \\"hi\\"", "flag": True})'),
        (ir.Call(ir.GlobalVar("k"), [A], {}, {"device": B, "arg_directions": [ir.ArgDirection.Input]}, ir.ScalarType(INDEX), SPAN),
         'k(a, device=b, attrs={"arg_directions": [pl.adir.input]})'),
        (ir.Submit(ir.GlobalVar("k"), [A], [B], ir.ScalarType(INDEX), SPAN), "pl.submit(k, a, deps=[b])"),
        (ir.Submit(ir.GlobalVar("k"), [A], [], {}, {"dump_vars": [A]}, ir.ScalarType(INDEX), SPAN, core_num=4, sync_start=True),
         "pl.spmd_submit(k, a, core_num=4, sync_start=True, dumps=[a])"),
    ],
)  # fmt: skip
def test_calls(call, expected):
    assert text(call) == expected


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (ir.ScalarType(INT), "pl.Scalar[pl.INT64]"), (ir.ArrayType(INT32, 8), "pl.Array[8, pl.INT32]"),
        (ir.TupleType([]), "pl.Tuple[()]"), (ir.TupleType([ir.ScalarType(INT), ir.PtrType()]), "pl.Tuple[pl.Scalar[pl.INT64], pl.Ptr]"),
        (ir.TensorType([64, A + 1], FP32), "pl.Tensor[[64, a + 1], pl.FP32]"),
        (ir.TensorType([8, 8], FP32, None, ir.TensorView([1, 8], ir.TensorLayout.DN, [4, 8])),
         "pl.Tensor[[8, 8], pl.FP32, pl.TensorView(valid_shape=[4, 8], stride=[1, 8], layout=pl.TensorLayout.DN)]"),
        (ir.DistributedTensorType([4], FP32), "pld.DistributedTensor[[4], pl.FP32]"),
        (ir.TileType([16, 16], FP16, ir.MemRef("m", 0, 512), ir.TileView(valid_shape=[8, A]), ir.Mem.Vec),
         'pl.Tile[[16, 16], pl.FP16, pl.MemRef("m", pl.const(0, pl.INT64), 512), pl.Mem.Vec, pl.TileView(valid_shape=[8, a])]'),
        (ir.TileType([16], FP16, ir.MemRef("m", slots=2)[1], None, ir.Mem.Vec), 'pl.Tile[[16], pl.FP16, pl.MemRef("m", slots=2)[1], pl.Mem.Vec]'),
        (ir.CommCtxType(), "pld.CommCtxType"), (ir.UnknownType(), "pl.UnknownType"),
    ],
)  # fmt: skip
def test_types(kind, expected):
    assert text(kind) == expected


def test_explicit_layout_spells_out_the_implicit_view():
    tile = ir.TileType([128, 128], FP32, None, None, ir.Mem.Acc)
    assert text(tile) == "pl.Tile[[128, 128], pl.FP32, pl.Mem.Acc]"
    assert text(tile, explicit_layout=True).endswith(
        "pl.TileView(blayout=pl.TileLayout.col_major, slayout=pl.TileLayout.row_major, fractal=1024)]"
    )


def loop(start, stop, step, **options):
    return ir.ForStmt(ir.Var("i", ir.ScalarType(INDEX)), start, stop, step, [], ir.SeqStmts([]), [], SPAN, **options)


@pytest.mark.parametrize(
    ("stmt", "first"),
    [
        (loop(0, 8, 1), "for i in pl.range(8):"), (loop(2, 8, 1), "for i in pl.range(2, 8):"),
        (loop(0, 8, 2), "for i in pl.range(0, 8, 2):"), (loop(A, 8, 1), "for i in pl.range(a, 8):"),
        (loop(const(0, INT), const(8, INT), const(1, INT)),
         "for i in pl.range(pl.const(0, pl.INT64), pl.const(8, pl.INT64), pl.const(1, pl.INT64)):"),
        (loop(0, 8, 1, kind=ir.ForKind.Pipeline, attrs={"pipeline_stages": 2}), "for i in pl.pipeline(8, stage=2):"),
        (loop(0, 8, 1, kind=ir.ForKind.Parallel, attrs={"pipeline_stages": 2}),
         'for i in pl.parallel(8, attrs={"pipeline_stages": 2}):'),
        (ir.InCoreScopeStmt(ir.SplitMode.UP_DOWN, "n", body=ir.SeqStmts([]), attrs={"slot_num": 4}),
         'with pl.at(level=pl.Level.CORE_GROUP, optimizations=[pl.split(pl.SplitMode.UP_DOWN), pl.cross_core_slot(slot_num=4)], name_hint="n"):'),
        (ir.HierarchyScopeStmt(ir.Level.HOST, ir.Role.Orchestrator, body=ir.SeqStmts([])),
         "with pl.at(level=pl.Level.HOST, role=pl.Role.Orchestrator):"),
        (ir.ClusterScopeStmt("c", body=ir.SeqStmts([])), 'with pl.cluster(name_hint="c"):'),
        (ir.SpmdScopeStmt(4, True, body=ir.SeqStmts([])), "with pl.spmd(4, sync_start=True):"),
        (ir.RuntimeScopeStmt(True, body=ir.SeqStmts([])), "with pl.scope(mode=pl.ScopeMode.MANUAL):"),
        (ir.SplitAivScopeStmt(ir.SplitMode.NONE, body=ir.SeqStmts([])),
         "for aiv_id in pl.split_aiv(2, mode=pl.SplitMode.NONE):"),
    ],
)  # fmt: skip
def test_headers(stmt, first):
    assert text(stmt).splitlines() == [first, "    pass"]


def test_a_pipeline_loop_without_stages_cannot_be_printed():
    with pytest.raises(InternalError, match="pipeline_stages"):
        text(loop(0, 8, 1, kind=ir.ForKind.Pipeline))


def test_carried_values_and_results():
    i, r = ir.Var("i", ir.ScalarType(INDEX)), ir.Var("r", ir.ScalarType(INDEX))
    arg = ir.IterArg("acc", ir.ScalarType(INDEX), const(0))
    stmt = ir.ForStmt(i, 0, 4, 1, [arg], ir.YieldStmt([arg + i]), [r], SPAN)
    assert text(stmt).splitlines() == [
        "for i, (acc,) in pl.range(4, init_values=(0,)):",
        "    r: pl.Scalar[pl.INDEX] = pl.yield_(acc + i)",
    ]
    assert text(stmt, concise=True).splitlines()[1] == "    r = pl.yield_(acc + i)"


def test_carried_while():
    x, y = (ir.IterArg(n, ir.ScalarType(INDEX), const(0)) for n in "xy")
    results = [ir.Var(n, ir.ScalarType(INDEX)) for n in "rs"]
    stmt = ir.WhileStmt(ir.lt(x, 4), [x, y], ir.YieldStmt([x + 1, y]), results, SPAN)
    assert text(stmt).splitlines() == [
        "for (x, y) in pl.while_(init_values=(0, 0)):",
        "    pl.cond(x < 4)",
        "    r, s = pl.yield_(x + 1, y)",
    ]


def test_branches_with_results():
    r = ir.Var("r", ir.ScalarType(INDEX))
    stmt = ir.IfStmt(ir.lt(A, B), ir.YieldStmt([A]), ir.YieldStmt([B]), [r], SPAN)
    assert text(stmt).splitlines() == [
        "if a < b:",
        "    r: pl.Scalar[pl.INDEX] = pl.yield_(a)",
        "else:",
        "    r: pl.Scalar[pl.INDEX] = pl.yield_(b)",
    ]


def test_variables_of_one_hint_get_suffixes():
    first, second = (ir.Var("x", ir.ScalarType(INDEX)) for _ in range(2))
    stmt = ir.SeqStmts([ir.AssignStmt(first, const(1)), ir.AssignStmt(second, first + 1)])
    assert text(stmt, concise=True) == "x = 1\nx_1 = x + 1"


def test_hints_become_identifiers():
    stmt = ir.AssignStmt(ir.Var("for", ir.ScalarType(INDEX)), ir.Var("2 words", ir.ScalarType(INDEX)))
    assert text(stmt, concise=True) == "for_ = _2_words"


def test_free_variables_of_a_function_are_marked():
    p, leaked = ir.Var("p", ir.ScalarType(INDEX)), ir.Var("p", ir.ScalarType(INDEX))
    function = ir.Function("f", [p], [], ir.ReturnStmt([p + leaked]), SPAN)
    assert "return p + p_1__FREE_VAR" in text(function)


def test_a_signature_quotes_the_allocations_of_the_body():
    base = ir.Var("buf", ir.PtrType())
    p, t = (ir.Var(n, ir.TileType([4], FP32, ir.MemRef(base, 0, 16), None, ir.Mem.Vec)) for n in "pt")
    body = ir.SeqStmts([ir.AssignStmt(base, ir.Call(ir.Op("tile.alloc"), [const(1), const(16)])), ir.AssignStmt(t, p)])
    lines = text(ir.Function("f", [p], [], body)).splitlines()
    assert 'pl.MemRef("buf", ' in lines[1] and "pl.MemRef(buf, " in lines[3]


def test_comments_stand_above_their_statement():
    stmts = [ir.AssignStmt(ir.Var(n, ir.ScalarType(INDEX)), const(1)) for n in "xy"]
    ir.attach_leading_comments(stmts[1], ["first", "second\nthird"])
    assert text(ir.SeqStmts(stmts), concise=True).splitlines() == ["x = 1", "# first", "# second", "# third", "y = 1"]
    assert text(stmts[1], concise=True) == "y = 1"


def test_task_id_seed_is_part_of_the_scope_header():
    tid = ir.Var("tid", ir.ScalarType(ir.DataType.TASK_ID))
    seed = ir.AssignStmt(tid, ir.Call(ir.Op("system.task_invalid"), [], tid.type, SPAN))
    scope = ir.InCoreScopeStmt(body=ir.BreakStmt(), attrs={"task_id_var": tid, "manual_dep_edges": [A]})
    lines = text(ir.SeqStmts([seed, scope])).splitlines()
    assert lines == ["with pl.at(level=pl.Level.CORE_GROUP, deps=[a]) as tid:", "    break"]


def test_program_layout():
    n = ir.Var("N", ir.ScalarType(INDEX))
    kind = ir.TensorType([n, 64], FP32)
    x, y = ir.Var("x", kind), ir.Var("y", kind)
    kernel = ir.Function(
        "z_kernel", [(x, ir.ParamDirection.Out)], [kind], ir.ReturnStmt([x]), type=ir.FunctionType.InCore
    )
    call = ir.Call(ir.GlobalVar("z_kernel"), [y], kind, SPAN)
    main = ir.Function("main", [y], [kind, kind], ir.ReturnStmt([call, y]), attrs={"auto_scope": False, "note": 1})
    assert text(ir.Program([main, kernel], "P")).splitlines() == [
        "# pypto.program: P",
        "import pypto.language as pl",
        "",
        'N = pl.dynamic("N")',
        "",
        "@pl.program",
        "class P:",
        "    @pl.function(type=pl.FunctionType.InCore, level=pl.Level.CHIP_DIE, role=pl.Role.SubWorker)",
        "    def z_kernel(x: pl.Out[pl.Tensor[[N, 64], pl.FP32]]) -> pl.Tensor[[N, 64], pl.FP32]:",
        "        return x",
        "    @pl.function(auto_scope=False)",
        "    def main(self, y: pl.Tensor[[N, 64], pl.FP32]) -> tuple[pl.Tensor[[N, 64], pl.FP32], pl.Tensor[[N, 64], pl.FP32]]:",
        '        pl.func_attr({"note": 1})',
        "        return self.z_kernel(y), y",
    ]


def test_prefix_changes_the_import():
    assert "from pypto import language as q" in text(ir.Program([], "P"), prefix="q")


def test_dependency_attributes_of_plain_operators_cannot_be_printed():
    call = ir.Call(ir.Op("tile.abs"), [A], {}, {"manual_dep_edges": [A]}, ir.ScalarType(INDEX), SPAN)
    with pytest.raises(InternalError, match=r"system\.task_dummy"):
        text(call)


def test_deep_expressions():
    left, right = A, A
    for _ in range(5000):
        left, right = left + 1, ir.Sub(B, right, INDEX, SPAN)
    assert text(left).count("+ 1") == 5000
    assert text(right).count("(") == 4999


def test_format_callback():
    from pypto.ir.printing.layout import default_format

    try:
        ir.register_format_callback(str.upper)
        assert python_print(A) == "A"
        ir.register_format_callback(None)
        assert python_print(A) == "a"
        ir.register_format_callback(lambda text: 1 / 0)
        assert python_print(A) == "a"
    finally:
        ir.register_format_callback(default_format)


def test_unknown_objects():
    assert text(object()) == "<unsupported IRNode type>"
