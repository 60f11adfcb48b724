"""The builders: what they build, where spans come from, and the errors of misuse."""

import pytest
from pypto.pypto_core.ir import IRBuilder as RawBuilder

from pypto import ir

INDEX, INT, FP32 = ir.DataType.INDEX, ir.DataType.INT64, ir.DataType.FP32
SCALAR = ir.ScalarType(INDEX)


def test_function_with_loop_branch_and_scope():
    ib = ir.IRBuilder()
    with ib.function("f", type=ir.FunctionType.InCore, attrs={"a": 1}) as f:
        n = f.param("n", SCALAR, direction=ir.ParamDirection.InOut)
        f.return_type(SCALAR)
        ib.add_function_attrs({"b": 2})
        with ib.for_loop(ib.var("i", SCALAR), 0, n, 1) as loop:
            acc = loop.iter_arg("acc", 0)
            loop.return_var("total")
            with ib.if_stmt(acc < n) as branch:
                branch.return_var("r", SCALAR)
                ib.emit(ir.YieldStmt([acc]))
                branch.else_()
                ib.emit(ir.YieldStmt([n]))
            ib.emit(ir.YieldStmt([branch.output() + 1]))
        with ib.scope(ir.ScopeKind.Runtime, manual=True):
            ib.let("x", loop.output() + 1)
        ib.return_stmt(loop.outputs())
    function = f.get_result()
    assert [type(s) for s in function.body.stmts] == [ir.ForStmt, ir.RuntimeScopeStmt, ir.ReturnStmt]
    assert function.attrs == {"a": 1, "b": 2} and function.param_directions == [ir.ParamDirection.InOut]
    assert function.span.filename == __file__ and function.span.end_line >= function.span.begin_line
    assert function.body[2].value[0] is function.body[0].return_vars[0]
    assert function.body[0].span.filename == __file__


def test_program_takes_return_types_of_its_functions():
    ib = ir.IRBuilder()
    with ib.program("P") as p:
        k = p.declare_function("k")
        with ib.function("k") as f:
            x = f.param("x", SCALAR)
            f.return_type(SCALAR)
            ib.return_stmt(x)
        p.add_function(f.get_result())
        with ib.function("main") as f:
            y = f.param("y", SCALAR)
            z = ib.let("z", ir.Call(k, [y]))
        p.add_function(f.get_result())
        assert p.get_global_var("k") is k
        with pytest.raises(RuntimeError, match="not declared"):
            p.get_global_var("absent")
    assert z.type == SCALAR
    assert [key.name for key in p.get_result().functions] == ["k", "main"]


def test_comments_go_to_the_next_statement():
    ib = ir.IRBuilder()
    with ib.function("f") as f:
        ib.push_pending_leading_comments(["on the loop"])
        with ib.for_loop(ib.var("i", SCALAR), 0, 4, 1):
            ib.break_stmt()
        assert ib.pop_pending_leading_comments() == []
    loop = f.get_result().body
    assert loop.leading_comments == ["on the loop"] and loop.body.leading_comments == []


def test_state_is_consistent_after_an_error():
    ib = ir.IRBuilder()
    nested = pytest.raises(RuntimeError, match="Cannot begin function 'inner': already inside function 'outer'")
    with nested, ib.function("outer"), ib.function("inner"):
        pass
    assert not ib.in_function()
    unequal = pytest.raises(RuntimeError, match="1 iter_args but 0 return_vars")
    with unequal, ib.function("f"), ib.for_loop(ib.var("i", SCALAR), 0, 4, 1) as loop:
        loop.iter_arg("acc", 0)
    assert not ib.in_function() and not ib.in_loop()


@pytest.mark.parametrize(
    ("misuse", "error", "text"),
    [
        (lambda ib: ib.for_loop(ir.Var("i", SCALAR), 0, 4, 1).__enter__(), RuntimeError, "Cannot begin for loop"),
        (lambda ib: ib.if_stmt(1).__enter__(), ValueError, "not inside a function or another valid context"),
        (lambda ib: ib.add_function_attrs({"a": 1}), ValueError, "not inside a function"),
        (lambda ib: ib.break_stmt(), RuntimeError, "Cannot emit"),
        (lambda ib: ib.memref(1, 2), TypeError, "exactly three positional arguments"),
        (lambda ib: ib.memref(ir.Mem.Vec, 0, 64), TypeError, "memory_space, addr, size, id"),
        (lambda ib: ib.make_tuple([object()]), TypeError, "Cannot convert object"),
    ],
)
def test_misuse_outside_a_function(misuse, error, text):
    with pytest.raises(error, match=text):
        misuse(ir.IRBuilder())


@pytest.mark.parametrize(
    ("misuse", "error", "text"),
    [
        (lambda ib, loop: loop.output(), RuntimeError, "not closed"),
        (lambda ib, loop: loop.iter_arg("x", 0, ir.ScalarType(FP32)), ValueError, "Type mismatch"),
        (lambda ib, loop: loop.return_var("x"), ValueError, "give its type"),
        (lambda ib, loop: ib.let("x", 1, ir.TensorType([4], FP32)), TypeError, "incompatible"),
        (lambda ib, loop: ib.add_function_attrs({"a": 1}), ValueError, "already set"),
        (lambda ib, loop: ib.scope(ir.ScopeKind.Hierarchy).__enter__(), ValueError, "needs level"),
        (lambda ib, loop: ib.scope(ir.ScopeKind.Spmd).__enter__(), ValueError, "needs core_num"),
        (lambda ib, loop: ib.scope(ir.ScopeKind.SplitAiv).__enter__(), ValueError, "needs split"),
        (lambda ib, loop: ib.scope(ir.ScopeKind.Runtime).__enter__(), ValueError, "needs manual"),
    ],
)
def test_misuse_inside_a_loop(misuse, error, text):
    ib = ir.IRBuilder()
    refused = pytest.raises(error, match=text)
    with refused, ib.function("f", attrs={"a": 1}), ib.for_loop(ib.var("i", SCALAR), 0, 4, 1) as loop:
        misuse(ib, loop)


def test_second_else_is_an_error():
    ib = ir.IRBuilder()
    refused = pytest.raises(ValueError, match="already has an else")
    with refused, ib.function("f"), ib.if_stmt(ir.ConstBool(True)) as branch:
        branch.else_()
        branch.else_()


def test_output_index_out_of_range():
    ib = ir.IRBuilder()
    with ib.function("f"):
        with ib.for_loop(ib.var("i", SCALAR), 0, 4, 1) as loop:
            loop.iter_arg("acc", 0)
            loop.return_var("r")
        with pytest.raises(IndexError, match="Return variable index 1 out of range"):
            loop.output(1)


def test_types():
    ib = ir.IRBuilder()
    memref = ib.memref(ir.Mem.Vec, 64, 512, 3)
    assert memref.name_hint == "mem_vec_3" and memref.byte_offset_.value == 64
    assert ib.memref(0, 512, 7).name_hint == "mem_7"
    tile = ib.tile_type([16, 16], FP32, memref, ib.tile_view([8, 16]), ir.Mem.Vec)
    assert tile.memref is memref and tile.tile_view.valid_shape[0].value == 8
    assert (
        ib.tensor_type([4], FP32, tensor_view=ib.tensor_view([2], ir.TensorLayout.ND)).tensor_view.stride[0].value == 2
    )


def test_raw_builder():
    raw = RawBuilder()
    span = ir.Span("a.py", 1, 1)
    raw.begin_program("P", span)
    raw.begin_function("f", span)
    n = raw.func_arg("n", SCALAR, span)
    raw.return_type(SCALAR)
    raw.begin_while_loop(ir.ConstBool(True), span)
    raw.break_stmt(span)
    raw.end_while_loop(ir.Span("a.py", 5, 2))
    raw.return_([n], span)
    function = raw.end_function(ir.Span("a.py", 9, 2))
    raw.add_function(function)
    program = raw.end_program(span)
    assert program["f"] is function and (function.span.end_line, function.body[0].span.end_line) == (9, 5)
    with pytest.raises(RuntimeError, match="outside any construct"):
        raw.end_function(span)
