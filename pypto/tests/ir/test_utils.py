"""Substitution, cloning, yields, parents, calls, default memory, view semantics."""

import math

import pytest
from pypto.ir import tensor_view_semantics as views
from pypto.ir.callers import caller_warning_stacklevel, span_or_capture, warn_caller

from pypto import ir

INDEX, FP32 = ir.DataType.INDEX, ir.DataType.FP32


def var(name, type=None):
    return ir.Var(name, type or ir.ScalarType(INDEX))


def const(value):
    return ir.ConstInt(value, INDEX)


def test_substitution_reaches_types_and_keeps_untouched_parts():
    n, m = var("n"), var("m")
    tile = var("t", ir.TileType([16, 16], FP32, None, ir.TileView(valid_shape=[n, 16]), ir.Mem.Vec))
    untouched = ir.AssignStmt(var("a"), const(1))
    body = ir.SeqStmts([ir.AssignStmt(tile, const(0)), untouched, ir.EvalStmt(tile)])
    new = ir.substitute_stmt(body, [(n, m)])
    assert new[0].var is new[2].expr is not tile
    assert new[0].var.type.tile_view.valid_shape[0] is m
    assert new[1] is untouched
    assert ir.substitute_stmt(body, [(var("other"), m)]) is body


def test_substitution_is_transitive_and_survives_cycles():
    a, b = var("a"), var("b")
    assert ir.substitute_expr(a + 1, [(a, b), (b, a)]).left is b
    c = var("c")
    assert ir.substitute_expr(a, [(a, b)]) is b
    assert ir.substitute_expr(c, []) is c


def test_clone_has_fresh_definitions_and_seeded_uses():
    n, m = var("n"), var("m")
    arg = ir.IterArg("acc", ir.ScalarType(INDEX), n)
    i, r = var("i"), var("r")
    loop = ir.ForStmt(i, 0, n, 1, [arg], ir.YieldStmt([arg + i]), [r])
    clone, pairs = ir.deep_clone(loop, [(n, m)])
    assert {old for old, _ in pairs} == {arg, i, r}
    assert clone.stop is m and clone.iter_args[0].initValue is m
    assert clone.body.value[0].left is clone.iter_args[0] is not arg
    assert clone.body.value[0].right is clone.loop_var is not i


def test_yields():
    inner = ir.YieldStmt([const(1)])
    scope = ir.RuntimeScopeStmt(body=ir.SeqStmts([ir.BreakStmt(), inner]))
    assert ir.find_yield_stmt(scope) is inner is ir.get_last_yield_stmt(scope)
    assert ir.get_last_yield_stmt(ir.SeqStmts([inner, ir.BreakStmt()])) is None
    assert ir.get_last_yield_stmt(None) is None


def test_parents():
    leaf = ir.BreakStmt()
    body = ir.SeqStmts([leaf, ir.ContinueStmt()])
    loop = ir.ForStmt(var("i"), 0, 4, 1, [], body, [])
    analysis = ir.ParentStmtAnalysis()
    analysis.build_map(ir.Function("f", [], [], loop))
    assert analysis.get_parent(leaf) is body and analysis.get_parent(body) is loop
    assert not analysis.has_parent(loop) and analysis.get_parent(loop) is None
    analysis.clear()
    assert not analysis.has_parent(leaf)


def test_make_call():
    call = ir.make_call(ir.GlobalVar("k"), [var("x"), 1], directions=[ir.input, ir.scalar_dir])
    assert call.arg_directions == [ir.ArgDirection.Input, ir.ArgDirection.Scalar]
    assert call.span.filename == __file__
    assert ir.set_call_attrs(call, {}).arg_directions == []
    with pytest.raises(ValueError, match="must match args length"):
        ir.make_call(ir.GlobalVar("k"), [var("x")], directions=[])


def test_return_types_of_calls_take_the_extents_of_the_arguments():
    n, m, k = var("n"), var("m"), var("k")
    params = [var("a", ir.TensorType([n, 4], FP32)), var("b", ir.TensorType([m, m], FP32)), k]
    args = [var("x", ir.TensorType([32, 4], FP32)), var("y", ir.TensorType([8, 9], FP32)), const(5)]
    fixed = ir.TensorType([4], FP32)
    types = ir.deduce_call_return_type(params, args, [ir.TensorType([n, m, k], FP32), fixed])
    assert types[0].shape[0].value == 32 and types[0].shape[1] is m and types[0].shape[2].value == 5
    assert types[1] is fixed


def test_default_memory():
    t = var("t", ir.TileType([16, 16], FP32))
    x = var("x", ir.TensorType([4, 4], FP32))
    function = ir.memref_init(ir.Function("f", [x], [], ir.SeqStmts([ir.AssignStmt(t, x), ir.EvalStmt(t)])))
    tile = function.body[0].var
    assert tile is function.body[1].expr and tile.type.memory_space is ir.Mem.Vec and tile.type.memref.size_ == 1024
    assert function.params[0].type.memref.size_ == 64 and function.body[0].value is function.params[0]
    assert ir.memref_init(function) is function


@pytest.mark.parametrize(
    ("shape", "layout", "strides"),
    [
        ((8, 16), "ND", [16, 1]), ((4, 4, 8), "ND", [32, 8, 1]), ((4, 8), "DN", [1, 4]), ((2, 4, 8), "DN", [32, 1, 4]),
        ((5, 3, 4, 8), "DN", [96, 32, 1, 4]), ((), "ND", []), ((7,), "ND", [1]),
    ],
)  # fmt: skip
def test_packed_strides(shape, layout, strides):
    layout = ir.TensorLayout[layout]
    dims = [const(d) for d in shape]
    packed = views.build_logical_strides_from_layout(dims, layout)
    assert [s.value for s in packed] == strides
    assert views.is_canonical_view(dims, packed, layout)


def test_views_that_are_not_canonical():
    dims, n = [const(4), const(8)], var("n")
    for stride, reason in (([], "empty"), ([1], "rank"), ([4, 1], "smaller than packed"), ([8, 2], "innermost")):
        ok, why = views.check_canonical_view(dims, [const(s) for s in stride], ir.TensorLayout.ND)
        assert not ok and reason in why
    assert views.is_canonical_view([n, n], [n, const(1)], ir.TensorLayout.ND)
    assert "symbolic" in views.check_canonical_view([n, n], [n, const(1)], ir.TensorLayout.ND, False)[1]
    with pytest.raises(ValueError, match="NZ"):
        views.build_logical_strides_from_layout(dims, ir.TensorLayout.NZ)
    assert views.derive_layout_from_strides(dims, [const(1), const(4)]) is ir.TensorLayout.DN
    assert views.compute_shape_product(dims) == 32 and views.compute_shape_product([n]) == -1


def test_a_span_is_captured_where_the_caller_stands():
    def here(offset):
        return span_or_capture(frame_offset=offset)

    given = ir.Span("m.py", 1, 1)
    assert span_or_capture(given) is given
    inner, outer = here(0), here(1)
    assert inner.filename == outer.filename == __file__
    assert inner.begin_line < outer.begin_line


def test_warnings_name_the_first_frame_outside_the_package():
    assert caller_warning_stacklevel() == 1
    with pytest.warns(UserWarning, match="look") as caught:
        warn_caller("look")
    assert caught[0].filename == __file__


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"device_ids": []}, "must not be empty"),
        ({"device_ids": [0, -1]}, "must be non-negative"),
        ({"device_ids": [1, 1]}, "must be distinct"),
        ({"num_sub_workers": -1}, "num_sub_workers"),
        ({"aicpu_thread_num": 1}, "aicpu_thread_num"),
    ],
)
def test_distributed_configurations_are_checked(options, text):
    assert ir.DistributedConfig() == ir.DistributedConfig(device_ids=[0], runtime="tensormap_and_ringbuffer")
    with pytest.raises(ValueError, match=text):
        ir.DistributedConfig(**options)


@pytest.mark.parametrize(
    ("shape", "layout", "strides"),
    [
        ((8, 16), "ND", [16, 1]), ((4, 4, 8), "ND", [32, 8, 1]), ((4, 8), "DN", [1, 4]), ((2, 4, 8), "DN", [32, 1, 4]),
        ((), "ND", []),
    ],
)  # fmt: skip
def test_extents_of_views_may_be_numbers(shape, layout, strides):
    layout = ir.TensorLayout[layout]
    assert [s.value for s in views.build_logical_strides_from_layout(shape, layout)] == strides
    assert views.is_canonical_view(shape, strides, layout)
    assert views.compute_shape_product(shape) == math.prod(shape)
    if shape:
        assert views.derive_layout_from_strides(shape, strides) is layout
        assert not views.is_canonical_view(shape, [0] * len(shape), layout)
