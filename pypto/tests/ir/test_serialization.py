"""Bytes of nodes: what survives, and the errors for what cannot be read or written."""

import msgspec
import pytest
from pypto.ir.serialization import FORMAT, VERSION

from pypto import InternalError, ir

INDEX, FP32 = ir.DataType.INDEX, ir.DataType.FP32
SPAN = ir.Span("m.py", 2, 3, 4, 5)


def round_trip(node):
    restored = ir.deserialize(ir.serialize(node))
    ir.assert_structural_equal(node, restored, True)
    return restored


def test_sharing_names_and_spans_survive():
    x = ir.Var("x", ir.ScalarType(INDEX), SPAN)
    restored = round_trip(ir.Add(x, x, INDEX, SPAN))
    assert restored.left is restored.right
    assert restored.left.name_hint == "x" and restored.span == SPAN


def test_comments_and_attributes_survive():
    x = ir.Var("x", ir.ScalarType(INDEX))
    attrs = {
        "i": 1, "f": 2.5, "b": True, "s": "t", "d": FP32, "m": ir.Mem.Vec, "l": ir.TensorLayout.ND, "v": x, "n": None,
        "vs": [x, x], "dirs": [ir.ArgDirection.Input], "nested": {"k": [1, 2]},
    }  # fmt: skip
    scope = ir.RuntimeScopeStmt(body=ir.AssignStmt(x, ir.ConstInt(1, INDEX)), attrs=attrs)
    ir.attach_leading_comments(scope, ["why"])
    restored = round_trip(scope)
    assert restored.leading_comments == ["why"]
    assert restored.attrs["v"] is restored.body.var is restored.attrs["vs"][1]
    plain = {k: v for k, v in restored.attrs.items() if k not in ("v", "vs")}
    assert plain == {k: v for k, v in attrs.items() if k not in ("v", "vs")}
    assert restored.attrs["b"] is True


def test_allocation_identity_survives():
    base = ir.Var("buf", ir.PtrType())
    memref = ir.MemRef(base, 64, 512, is_pinned=True, slots=2, slot=1)
    tile = ir.Var("t", ir.TileType([16, 16], FP32, memref, ir.TileView(valid_shape=[8, 16]), ir.Mem.Vec))
    body = ir.SeqStmts([ir.AssignStmt(base, ir.Call(ir.Op("tile.alloc"), [])), ir.EvalStmt(tile)])
    restored = round_trip(body)
    kind = restored[1].expr.type
    assert kind.memref.base_ is restored[0].var
    assert (kind.memref.size_, kind.memref.is_pinned_, kind.memref.slot_count_) == (512, True, 2)
    assert kind.memref.slot_index_.value == 1 and kind.memref.byte_offset_.value == 64
    assert kind.memory_space is ir.Mem.Vec and len(kind.tile_view.valid_shape) == 2


def test_program_and_submit_survive():
    task = ir.TupleType([ir.ScalarType(ir.DataType.TASK_ID)])
    t = ir.Var("t", ir.ScalarType(ir.DataType.TASK_ID))
    submit = ir.Submit(
        ir.GlobalVar("k"),
        [],
        [t],
        {},
        {},
        task,
        SPAN,
        core_num=4,
        sync_start=True,
    )
    main = ir.Function("main", [t], [], ir.EvalStmt(submit), SPAN, requires_runtime_binding=True, level=ir.Level.HOST)
    kernel = ir.Function("k", [], [], ir.ReturnStmt([]), SPAN, type=ir.FunctionType.InCore)
    restored = round_trip(ir.Program([main, kernel], "P", SPAN))
    assert restored.name == "P" and [key.name for key in restored.functions] == ["k", "main"]
    again = restored["main"]
    assert again.requires_runtime_binding and again.level is ir.Level.HOST and again.name == "main"
    assert isinstance(again.body.expr.op, ir.GlobalVar) and again.body.expr.sync_start
    assert again.body.expr.deps[0] is again.params[0]


def test_missing_optional_fields_get_defaults():
    tile = ir.Var("t", ir.TileType([16], FP32, None, ir.TileView(pad=ir.PadValue.zero), ir.Mem.Vec))
    document = msgspec.msgpack.decode(ir.serialize(tile))
    for row in document["nodes"]:
        if isinstance(row, dict) and "tile_view" in row:
            row["tile_view"] = {"pad": "zero"}
    view = ir.deserialize(msgspec.msgpack.encode(document)).type.tile_view
    assert view.pad is ir.PadValue.zero and view.compact is ir.CompactMode.null and view.fractal == 512


def test_files(tmp_path):
    x = ir.Var("x", ir.ScalarType(INDEX))
    ir.serialize_to_file(x, tmp_path / "x.bin")
    assert ir.deserialize_from_file(tmp_path / "x.bin").name_hint == "x"
    with pytest.raises(ValueError, match="Failed to open file for reading"):
        ir.deserialize_from_file(tmp_path / "absent")
    with pytest.raises(ValueError, match="Failed to open file for writing"):
        ir.serialize_to_file(x, tmp_path / "absent" / "x.bin")


def document(nodes, root=0, **changes):
    fields = {"format": FORMAT, "version": VERSION, "spans": [["", -1, -1, -1, -1]], "nodes": nodes, "root": root}
    return msgspec.msgpack.encode({**fields, **changes})


INT_ROW = ["ConstInt", 0, 1, 0x15]


@pytest.mark.parametrize(
    ("data", "error", "text"),
    [
        (b"", RuntimeError, "not a serialised IR node"),
        (b"junk", ValueError, "not a serialised IR node"),
        (msgspec.msgpack.encode([1]), ValueError, "no map"),
        (msgspec.msgpack.encode({"a": 1}), InternalError, "needs its format"),
        (msgspec.msgpack.encode({"type": "Foo"}), TypeError, "Unknown IR node type in deserialization: Foo"),
        (document([["Foo", 0]]), TypeError, "Unknown IR node type in deserialization: Foo"),
        (document([INT_ROW], version=99), ValueError, "version 99"),
        (document([INT_ROW], root=1), ValueError, "row 1"),
        (document([INT_ROW], root=-1), ValueError, "row number"),
        (document([["Neg", 0, 0, 0x15]]), ValueError, "not read yet"),
        (document([["Neg", 7, 0, 0x15]]), ValueError, "row 0"),
        (document([["BreakStmt", 0, []], ["Neg", 0, 0, 0x15]], root=1), ValueError, "does not fit"),
        (document([["ConstInt", 0, 1, 0x99]]), ValueError, "0x99"),
        (document([{"type_kind": "ScalarType", "dtype": 0x15}]), ValueError, "does not fit"),
        (document([["ConstInt", 0, 1, 0x15, 1, 2, 3]]), ValueError, "fields"),
        (document("nodes"), ValueError, "table of nodes"),
    ],
)  # fmt: skip
def test_unreadable_data(data, error, text):
    with pytest.raises(error, match=text):
        ir.deserialize(data)


def test_deeply_nested_data_is_refused():
    with pytest.raises((ValueError, RuntimeError)):
        ir.deserialize(b"\x91" * 100_000 + b"\x00")


def test_what_cannot_be_written():
    with pytest.raises(TypeError, match="IR node"):
        ir.serialize(ir.ScalarType(INDEX))
    with pytest.raises(TypeError, match="object"):
        ir.serialize(ir.RuntimeScopeStmt(body=ir.BreakStmt(), attrs={"x": object()}))


def test_deep_expressions():
    expr = ir.Var("x", ir.ScalarType(INDEX))
    for _ in range(20_000):
        expr = ir.Add(expr, ir.ConstInt(1, INDEX), INDEX, SPAN)
    assert ir.structural_equal(expr, ir.deserialize(ir.serialize(expr)), True)
