"""Structural equality: what counts, how variables are matched, and what a failed assertion says."""

import pytest
from pypto.ir.node import make

from pypto import ir

INT, INT32, INDEX, BOOL = ir.DataType.INT64, ir.DataType.INT32, ir.DataType.INDEX, ir.DataType.BOOL
SPAN = ir.Span.unknown()


def var(name="x", dtype=INT):
    return ir.Var(name, ir.ScalarType(dtype), SPAN)


def const(value, dtype=INT):
    return ir.ConstInt(value, dtype, SPAN)


def add(a, b):
    return ir.Add(a, b, INT, SPAN)


def loop(dtype=INT, stop=8, kind=ir.ForKind.Sequential, attrs=None):
    i, x = var("i", dtype), var("y", INT)
    body = ir.AssignStmt(x, const(1), SPAN)
    bounds = (const(0, dtype), const(stop, dtype), const(1, dtype))
    return ir.ForStmt(i, *bounds, [], body, [], SPAN, kind, attrs)


def function(name="f", type=ir.FunctionType.Opaque, value=1, hint="p"):
    p = var(hint)
    q = var("q")
    body = ir.SeqStmts([ir.AssignStmt(q, add(p, const(value)), SPAN), ir.ReturnStmt([q], SPAN)], SPAN)
    return ir.Function(name, [p], [ir.ScalarType(INT)], body, ir.Span("f.py", value, 1), type=type)


def message(lhs, rhs, auto=False):
    with pytest.raises(ValueError) as caught:
        ir.assert_structural_equal(lhs, rhs, auto)
    return str(caught.value)


def test_free_variables_need_auto_mapping():
    x, y = var("x"), var("y")
    assert not ir.structural_equal(add(x, const(1)), add(y, const(1)))
    assert ir.structural_equal(add(x, const(1)), add(y, const(1)), True)


def test_mapping_is_a_bijection():
    x, y, z = var("x"), var("y"), var("z")
    assert ir.structural_equal(add(x, x), add(y, y), True)
    assert not ir.structural_equal(add(x, x), add(y, z), True)
    assert not ir.structural_equal(add(x, y), add(z, z), True)


def test_a_variable_of_both_sides_stands_for_itself():
    x, y = var("x"), var("y")
    assert not ir.structural_equal(add(x, y), add(x, x), True)
    assert ir.structural_hash(add(x, y), True) != ir.structural_hash(add(x, x), True)


def test_names_spans_and_comments_do_not_count():
    lhs, rhs = function("f", hint="p"), function("g", hint="other")
    ir.attach_leading_comments(lhs.body[0], ["a comment"])
    assert ir.structural_equal(lhs, rhs)
    assert ir.structural_hash(lhs) == ir.structural_hash(rhs)


def test_function_type_counts():
    assert not ir.structural_equal(function(), function(type=ir.FunctionType.InCore))


def test_index_and_int64_are_interchangeable_in_constants_and_loop_variables_only():
    assert ir.structural_equal(const(4, INT), const(4, INDEX))
    assert ir.structural_hash(const(4, INT)) == ir.structural_hash(const(4, INDEX))
    assert ir.structural_equal(loop(INT), loop(INDEX))
    assert ir.structural_hash(loop(INT)) == ir.structural_hash(loop(INDEX))
    assert not ir.structural_equal(ir.ScalarType(INT), ir.ScalarType(INDEX))
    assert not ir.structural_equal(const(4, INT), const(4, INT32))
    assert not ir.structural_equal(var("x", INT), var("x", INDEX), True)


def test_float_constants():
    f = [ir.ConstFloat(v, ir.DataType.FP32, SPAN) for v in (0.0, -0.0, float("nan"), float("nan"))]
    assert ir.structural_equal(f[0], f[1]) and ir.structural_hash(f[0]) == ir.structural_hash(f[1])
    assert not ir.structural_equal(f[2], f[3])


def test_attribute_order_does_not_count_but_types_of_values_do():
    def call(**kwargs):
        return ir.Call(ir.Op("o"), [], kwargs, SPAN)

    assert ir.structural_equal(call(a=1, b=2), call(b=2, a=1))
    assert ir.structural_hash(call(a=1, b=2)) == ir.structural_hash(call(b=2, a=1))
    assert not ir.structural_equal(call(a=1), call(a=True))
    assert not ir.structural_equal(call(a=1), call(a=1.0))


def test_operator_and_function_of_one_name_are_the_same_target():
    assert ir.structural_equal(ir.Call(ir.Op("o"), [], SPAN), ir.Call(ir.GlobalVar("o"), [], SPAN))


def test_submit_is_no_call_and_its_dependencies_are_ordered():
    task = ir.ScalarType(ir.DataType.TASK_ID)
    t, u = ir.Var("t", task), ir.Var("u", task)
    k = ir.GlobalVar("k")
    assert not ir.structural_equal(ir.Submit(k, [], [], task, SPAN), ir.Call(k, [], task, SPAN))
    assert not ir.structural_equal(ir.Submit(k, [], [t, u], task, SPAN), ir.Submit(k, [], [u, t], task, SPAN))


def test_placement_of_a_value_does_not_count():
    kinds = [ir.TileType([16], INT32, ir.MemRef(name, 0, 64), None, ir.Mem.Vec) for name in ("a", "b")]
    assert kinds[0] == kinds[1] and hash(kinds[0]) == hash(kinds[1])
    assert not kinds[0].shares_memref_with(kinds[1])


def test_views_and_spaces_count():
    plain = ir.TileType([16, 16], INT32, None, None, ir.Mem.Vec)
    offset = [ir.TileType([16, 16], INT32, None, ir.TileView(start_offset=o), ir.Mem.Vec) for o in (None, 0)]
    assert plain == offset[0] and plain != offset[1]
    assert plain != ir.TileType([16, 16], INT32)
    assert ir.TensorType([4], INT32) != ir.DistributedTensorType([4], INT32)


def test_types_are_dictionary_keys():
    n = var("n", INDEX)
    kinds = {
        ir.TensorType([4, n], INT32): 1, ir.TupleType([ir.ScalarType(INT)]): 2, ir.PtrType(): 3, ir.UnknownType(): 4,
        ir.ArrayType(INT32, 4): 5, ir.TileType([4], INT32): 6, ir.VoidType(): 7, ir.MemRefType(): 8,
    }  # fmt: skip
    assert kinds[ir.TensorType([4, n], INT32)] == 1
    assert kinds[ir.TupleType([ir.ScalarType(INT)])] == 2
    assert ir.TensorType([4, var("n", INDEX)], INT32) not in kinds


def test_deep_expressions_need_no_recursion():
    a, b = var(), var()
    for _ in range(20_000):
        a, b = add(a, const(1)), add(b, const(1))
    assert ir.structural_equal(a, b, True)
    assert ir.structural_hash(a, True) == ir.structural_hash(b, True)


def test_null_operands():
    assert not ir.structural_equal(var(), None)
    assert ir.structural_equal(None, None)


@pytest.mark.parametrize(
    ("lhs", "rhs", "reason"),
    [
        (const(1), const(2), "int64_t value mismatch (1 != 2)"),
        (const(1), const(1, INT32), "ScalarType dtype mismatch (int64 != int32)"),
        (const(1), var(), "Node type mismatch (ConstInt != Var)"),
        (ir.ScalarType(INT), ir.ScalarType(INT32), "ScalarType dtype mismatch (int64 != int32)"),
        (ir.TensorType([4, 4], INT), ir.TensorType([4], INT), "TensorType shape rank mismatch (2 != 1)"),
        (ir.TensorType([4], INT), ir.TileType([4], INT), "Type name mismatch (TensorType != TileType)"),
        (ir.TupleType([ir.PtrType()] * 2), ir.TupleType([ir.PtrType()]), "TupleType size mismatch (2 != 1)"),
        (ir.ArrayType(INT, 4), ir.ArrayType(INT, 8), "int64_t value mismatch (4 != 8)"),
        (loop(), loop(kind=ir.ForKind.Parallel), "ForKind mismatch (Sequential != Parallel)"),
        (loop(), loop(attrs={"a": 1}), "Kwargs size mismatch (0 != 1)"),
        (loop(attrs={"a": 1}), loop(attrs={"b": 1}), "Kwargs key mismatch"),
        (ir.YieldStmt([const(1)]), ir.YieldStmt([const(1)] * 2), "Vector size mismatch (1 items != 2 items)"),
        (ir.Call(ir.Op("a"), []), ir.Call(ir.Op("b"), []), "Op name mismatch ('a' != 'b')"),
        (ir.Program([function("f")]), ir.Program([function("g")]), "Map key mismatch ('f' != 'g')"),
        (var("x"), var("y"), "Variable pointer mismatch (without auto-mapping)"),
    ],
)  # fmt: skip
def test_reasons(lhs, rhs, reason):
    assert f"Reason: {reason}" in message(lhs, rhs)


def test_message_shows_path_sides_and_reason():
    lhs, rhs = ir.Program([function(value=1)]), ir.Program([function(value=2)])
    assert message(lhs, rhs).splitlines()[:3] == [
        "Structural equality assertion failed at: ['f'].body[0].value.right.value",
        "",
        "Reason: int64_t value mismatch (1 != 2)",
    ]
    branches = [ir.IfStmt(ir.ConstBool(True), ir.BreakStmt(), other, []) for other in (ir.BreakStmt(), None)]
    assert message(*branches).splitlines()[:9] == [
        "Structural equality assertion failed at: else_body",
        "",
        "Left-hand side:",
        "  break",
        "",
        "Right-hand side:",
        "  (null)",
        "",
        "Reason: Optional field presence mismatch",
    ]


def test_path_of_a_type_difference_is_that_of_its_variable():
    def program(dtype):
        x = var("x", dtype)
        body = ir.SeqStmts([ir.BreakStmt(), ir.AssignStmt(x, const(1), SPAN)], SPAN)
        return ir.Program([ir.Function("main", [], [], body, SPAN)])

    assert message(program(INT), program(INT32)).splitlines()[0].endswith("at: ['main'].body[1].var")


def test_window_buffers_keep_their_identity():
    base = ir.Var("win", ir.PtrType(), SPAN)
    buffers = [ir.WindowBuffer(base, 64) for _ in range(2)]
    assert not ir.structural_equal(*buffers)
    assert ir.structural_equal(*buffers, True)
    assert "size.value" in message(buffers[0], ir.WindowBuffer(base, 128), True).splitlines()[0]


@pytest.mark.parametrize("devices", [(), (0, 1)])
def test_sequences_are_compared_by_their_elements(devices):
    scope = ir.CommDomainScopeStmt(devices, [], body=ir.EvalStmt(const(1), SPAN))
    other = make(ir.CommDomainScopeStmt, tuple(devices), (), "", scope.body, SPAN, {}, [])
    assert other.devices == list(devices)
    assert ir.structural_equal(scope, other)
    plain = ir.Call(ir.Op("f"), [], {"axes": devices}, SPAN)
    assert ir.structural_equal(plain, ir.Call(ir.Op("f"), [], {"axes": type(scope.devices)(devices)}, SPAN))
