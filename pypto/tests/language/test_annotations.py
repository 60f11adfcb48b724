"""Type annotations: written forms, symbols, views and memory descriptors."""

from __future__ import annotations

import ast

import pypto.language as pl
import pytest
from language_support import body, rejected, statements
from pypto.language.parser.diagnostics import ParserTypeError
from pypto.language.parser.expr_evaluator import ExprEvaluator
from pypto.language.parser.type_resolver import TypeResolver

from pypto import ir


def resolve(text, scope=None, **closure):
    resolver = TypeResolver(ExprEvaluator({"pl": pl, **closure}), scope_lookup=(scope or {}).get)
    return resolver.resolve_type(ast.parse(text, mode="eval").body)


def test_shapes_from_python_values():
    config, dims, base = {"m": 8}, [4, 5, 6], 16
    kind = resolve(
        "pl.Tensor[[config['m'], dims[2], base * 2, len(dims)], pl.FP16]", config=config, dims=dims, base=base
    )
    assert [d.value for d in kind.shape] == [8, 6, 32, 3]


def test_one_dynamic_object_is_one_symbol():
    m = pl.dynamic("M")
    first, second = resolve("pl.Tensor[[M, 8], pl.FP32]", M=m), resolve("pl.Tensor[[M, 9], pl.FP32]", M=m)
    assert first.shape[0] is second.shape[0]
    assert first.shape[0].name_hint == "M"
    other = resolve("pl.Tensor[[M], pl.FP32]", M=pl.dynamic("M"))
    assert other.shape[0] is not first.shape[0]


def test_symbolic_arithmetic_is_kept_as_a_tree():
    kind = resolve("pl.Tensor[[M * 2 + 1], pl.FP32]", M=pl.dynamic("M"))
    assert isinstance(kind.shape[0], ir.Add)
    assert isinstance(kind.shape[0].left, ir.Mul)


def test_scalar_parameter_binds_a_symbol_of_later_annotations():
    f = body("return x", params="n: pl.Scalar[pl.INDEX], x: pl.Tensor[[n, 4], pl.FP32]")
    assert f.params[1].type.shape[0] is f.params[0]


def test_view_and_memref_slots():
    kind = resolve(
        'pl.Tensor[[4, 8], pl.FP32, pl.TensorView(valid_shape=[4, 6], layout=pl.ND), pl.MemRef("m", 0, 128)]'
    )
    assert [d.value for d in kind.tensor_view.valid_shape] == [4, 6]
    assert kind.memref.base_.name_hint == "m"
    tile = resolve('pl.Tile[[16, 16], pl.FP16, pl.Mem.Mat, pl.MemRef("t", 32, 512)]')
    assert (tile.memory_space, tile.memref.byte_offset_.value) == (ir.Mem.Mat, 32)


def test_omitted_view_fields_are_those_of_the_memory_space():
    tile = resolve("pl.Tile[[16, 16], pl.FP16, pl.Mem.Left, pl.TileView(blayout=pl.TileLayout.row_major)]")
    assert tile.tile_view.slayout is ir.TileLayout.row_major
    assert resolve("pl.Tile[[16, 16], pl.FP16, pl.Mem.Left, pl.TileView()]").tile_view is None


def test_memrefs_of_one_name_share_their_allocation():
    f = body(
        "t = pl.load(x, [0, 0], [16, 64])\n"
        'u: pl.Tile[[16, 64], pl.FP32, pl.MemRef("buf", 0, 4096), pl.Mem.Vec] = pl.add(t, 1.0)\n'
        'v: pl.Tile[[16, 64], pl.FP32, pl.MemRef("buf", 0, 4096), pl.Mem.Vec] = pl.add(u, 1.0)'
    )
    _, u, v = statements(f)
    assert ir.MemRef.same_allocation(u.var.type.memref, v.var.type.memref)
    assert u.value.type.memref is None


def test_declared_slots():
    f = body(
        "for i in pl.range(4):\n"
        '    t: pl.Tile[[16, 64], pl.FP32, pl.MemRef("ring", slots=2)[i % 2], pl.Mem.Vec] = '
        "pl.load(x, [i * 16, 0], [16, 64])"
    )
    memref = statements(f)[0].body.var.type.memref
    assert memref.is_pinned_
    assert memref.slot_count_ == 2
    assert isinstance(memref.slot_index_, ir.FloorMod)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("pl.Tensor[[8]]", "requires"),
        ("pl.Tensor[shape, pl.FP32]", "must be a list or tuple"),
        ("pl.Tensor[nowhere, pl.FP32]", "Unknown shape variable"),
        ("pl.Tensor[[nowhere], pl.FP32]", "Unknown shape variable"),
        ("pl.Tensor[[8], pl.FP32, pl.TensorView(width=[1])]", "Unknown TensorView keyword 'width'"),
        ("pl.Tensor[[8], pl.FP32, pl.TensorView([1])]", "positional arguments"),
        ("pl.Tensor[[8], pl.FP32, pl.WRONG]", "Unknown layout"),
        ("pl.Tile[[8, 8], pl.FP32, pl.NZ]", "does not accept layouts"),
        ('pl.Tile[[8, 8], pl.FP32, pl.MemRef("m", 0, 64)]', "explicit memory space"),
        ('pl.Tile[[8, 8], pl.FP32, pl.Mem.Vec, pl.MemRef("m", slots=2)[5]]', "Slot 5 is out of range"),
        ("tuple[tuple[pl.Scalar[pl.FP32]], pl.Scalar[pl.FP32]]", "Nested tuple types"),
        ("pl.Array[n, pl.INT32]", "compile-time integer"),
        ("pl.Array[4, pl.FP32]", "integer, BOOL or TASK_ID"),
    ],
)
def test_malformed_annotations(text, message):
    with pytest.raises(ParserTypeError, match=message):
        resolve(text, shape="8x8")


def test_local_annotation_must_agree_with_the_value():
    error = rejected(ParserTypeError, "has dtype fp16 but expression has dtype fp32",
                     "y: pl.Tensor[[64, 64], pl.FP16] = pl.add(x, 1.0)")  # fmt: skip
    assert "pl.Tensor[[64, 64], pl.FP32]" in error.hint
    rejected(ParserTypeError, "shape dimension 1 = 32", "y: pl.Tensor[[64, 32], pl.FP32] = pl.add(x, 1.0)")
    rejected(ParserTypeError, "rank 1 but expression has rank 2", "y: pl.Tensor[[64], pl.FP32] = pl.add(x, 1.0)")
    rejected(ParserTypeError, "type Tile", "y: pl.Tile[[64, 64], pl.FP32] = pl.add(x, 1.0)")


def test_integer_literal_takes_the_annotated_dtype():
    f = body("n: pl.Scalar[pl.INT64] = 3\nm = 3")
    n, m = statements(f)
    assert n.value.dtype == ir.DataType.INT64
    assert m.value.dtype == ir.DataType.INDEX


def test_runtime_annotation_objects_are_inert():
    tensor = pl.Tensor[[4, 4], pl.FP32]
    with pytest.raises(ValueError, match="annotation-only Tensor"):
        tensor.unwrap()
    with pytest.raises(NotImplementedError, match="parsed inside a decorated function"):
        tensor[0]
    with pytest.raises(TypeError, match="multiple values for argument 'shape'"):
        pl.Tensor([1], pl.FP32, shape=[2])
    with pytest.raises(ValueError, match="must be a valid identifier"):
        pl.dynamic("not a name")


def test_a_view_belongs_to_the_type_that_was_written_with_it():
    view = ir.TensorView([64, 1], ir.TensorLayout.ND)
    first, second = (resolve("pl.Tensor[[4, 8], pl.FP32, VIEW]", VIEW=view) for _ in range(2))
    first.tensor_view.layout = ir.TensorLayout.NZ
    assert second.tensor_view.layout is view.layout is ir.TensorLayout.ND


def test_a_printed_view_read_on_its_own_keeps_its_symbols():
    resolver = TypeResolver(ExprEvaluator({"pl": pl}))
    text = "pl.Tensor[[8, 64], pl.FP32, pl.TensorView(valid_shape=[n, n], layout=pl.TensorLayout.ND)]"
    rows, columns = resolver.resolve_type(ast.parse(text, mode="eval").body).tensor_view.valid_shape
    assert rows is columns and rows.name_hint == "n"


def test_a_scalar_parameter_precedes_the_annotations_that_read_it():
    text = 'n = pl.dynamic("n")\n\n@pl.function\ndef f({}):\n    return x\n'
    scalar, shaped = "n: pl.Scalar[pl.INDEX]", "x: pl.Tensor[[n, 4], pl.FP32]"
    pl.parse(text.format(f"{scalar}, {shaped}"))
    with pytest.raises(ParserTypeError, match=r"'n' has the name of a symbol .* an earlier parameter"):
        pl.parse(text.format(f"{shaped}, {scalar}"))
