"""Stored sequences: immutable, hashable, comparable with lists, the same whoever builds the node."""

import copy
import pickle

import pytest
from pypto.ir.node import NodeTuple, make, replace

from pypto import ir

SPAN = ir.Span.unknown()
X = ir.Var("x", ir.ScalarType(ir.DataType.INDEX), SPAN)
NOTHING = ir.EvalStmt(X, SPAN)


def test_a_sequence_equals_a_list_and_a_tuple_of_equal_elements():
    assert NodeTuple([X]) == [X]
    plain = [X]
    assert plain == NodeTuple([X])
    assert NodeTuple([X]) == (X,)
    assert NodeTuple() == []
    assert NodeTuple([X]) != []
    assert NodeTuple([1]) != [2]
    assert hash(NodeTuple([1, 2])) == hash((1, 2))


def test_a_sequence_is_a_list_and_a_tuple_to_those_who_ask():
    stored = ir.SeqStmts([NOTHING], SPAN).stmts
    assert isinstance(stored, list) and isinstance(stored, tuple) and not isinstance(stored, str)
    again = pickle.loads(pickle.dumps(NodeTuple([1, 2])))
    assert type(again) is type(copy.deepcopy(again)) is NodeTuple and again == [1, 2]


def test_sequences_join_with_lists_and_tuples():
    assert type(NodeTuple([1]) + [2]) is NodeTuple
    assert NodeTuple([1]) + [2] == [1, 2]
    assert [1] + NodeTuple([2]) == [1, 2]
    assert type([1] + NodeTuple([2])) is list
    with pytest.raises(TypeError):
        NodeTuple([1]) + 2


@pytest.mark.parametrize(
    ("node", "field", "values"),
    [
        (ir.Call(ir.Op("f"), [X], SPAN), "args", [X]),
        (ir.Submit(ir.Op("f"), [X], [X]), "deps", [X]),
        (ir.MakeTuple([X], SPAN), "elements", [X]),
        (ir.SeqStmts([NOTHING], SPAN), "stmts", [NOTHING]),
        (ir.YieldStmt([X], SPAN), "value", [X]),
        (ir.TensorView([], ir.TensorLayout.ND, [X]), "valid_shape", [X]),
        (ir.TupleType([X.type]), "types", [X.type]),
        (ir.Function("f", [X], [], NOTHING, SPAN), "params", [X]),
    ],
)
def test_fields_compare_with_lists_also_after_a_copy(node, field, values):
    assert getattr(node, field) == values
    assert getattr(replace(node, **{field: tuple(values)}), field) == values


def test_nodes_built_from_plain_tuples_store_sequences():
    call = ir.Call(ir.Op("f"), [X], SPAN)
    built = make(ir.Call, call.op, (X, X), {}, {}, call.type, SPAN)
    assert built.args == [X, X]
    assert ir.structural_equal(built, ir.Call(call.op, [X, X], SPAN))
