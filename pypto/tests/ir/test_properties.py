"""Properties of random programs: serialisation and text round trips, equality and hash agree, copies are equal."""

import pypto.language as pl
from hypothesis import given, settings
from hypothesis import strategies as st
from pypto.ir.printer import python_print

from pypto import ir

INDEX, INT32, FP32 = ir.DataType.INDEX, ir.DataType.INT32, ir.DataType.FP32
SPAN = ir.Span("model.py", 3, 5)
TILE = ir.TileType([16, 16], FP32, None, None, ir.Mem.Vec)
TENSOR = ir.TensorType([64, 64], FP32)


class Source:
    """Draws a function body; ``scalars`` are the INDEX variables in scope."""

    def __init__(self, data):
        self.data = data
        self.count = 0

    def pick(self, *choices):
        return self.data.draw(st.sampled_from(choices))

    def var(self, hint, type):
        self.count += 1
        return ir.Var(self.pick(hint, f"{hint}_{self.count}", f"{hint}__ssa_v0"), type, SPAN)

    def expr(self, scalars, depth=3):
        leaf = depth == 0 or self.data.draw(st.booleans())
        if leaf:
            if self.data.draw(st.booleans()):
                return self.pick(*scalars)
            return ir.ConstInt(self.data.draw(st.integers(-20, 20)), INDEX, SPAN)
        left, right = self.expr(scalars, depth - 1), self.expr(scalars, depth - 1)
        cls = self.pick(ir.Add, ir.Sub, ir.Mul, ir.FloorDiv, ir.FloorMod, ir.Min, ir.Max)
        return cls(left, right, INDEX, SPAN)

    def condition(self, scalars):
        cls = self.pick(ir.Lt, ir.Le, ir.Eq, ir.Ne, ir.Gt, ir.Ge)
        first = cls(self.expr(scalars, 1), self.expr(scalars, 1), ir.DataType.BOOL, SPAN)
        if self.data.draw(st.booleans()):
            return first
        second = ir.Lt(self.expr(scalars, 1), self.expr(scalars, 1), ir.DataType.BOOL, SPAN)
        return self.pick(ir.And, ir.Or)(first, second, ir.DataType.BOOL, SPAN)

    def body(self, scalars, depth):
        stmts = []
        scalars = list(scalars)
        for _ in range(self.data.draw(st.integers(1, 3))):
            kind = self.pick("assign", "assign", "for", "carry", "if", "while") if depth else "assign"
            if kind == "assign":
                var = self.var("x", ir.ScalarType(INDEX))
                stmts.append(ir.AssignStmt(var, self.expr(scalars), SPAN))
                scalars.append(var)
            elif kind == "for":
                i = self.var("i", ir.ScalarType(INDEX))
                loop_kind = self.pick(ir.ForKind.Sequential, ir.ForKind.Parallel)
                inner = self.body([*scalars, i], depth - 1)
                bounds = [ir.ConstInt(self.data.draw(st.integers(0, 4)), INDEX, SPAN), self.expr(scalars, 1)]
                stmts.append(
                    ir.ForStmt(i, *bounds, ir.ConstInt(self.pick(1, 2), INDEX), [], inner, [], SPAN, loop_kind)
                )
            elif kind == "carry":
                i, arg = self.var("i", ir.ScalarType(INDEX)), ir.IterArg("acc", ir.ScalarType(INDEX), scalars[0], SPAN)
                result = self.var("acc", ir.ScalarType(INDEX))
                inner = ir.flatten_to_stmts(self.body([*scalars, i, arg], depth - 1))
                inner.append(ir.YieldStmt([self.expr([*scalars, arg], 1)], SPAN))
                stop = self.expr(scalars, 1)
                stmts.append(ir.ForStmt(i, 0, stop, 1, [arg], ir.SeqStmts(inner, SPAN), [result], SPAN))
                scalars.append(result)
            elif kind == "if":
                other = self.body(scalars, depth - 1) if self.data.draw(st.booleans()) else None
                stmts.append(ir.IfStmt(self.condition(scalars), self.body(scalars, depth - 1), other, [], SPAN))
            else:
                stmts.append(ir.WhileStmt(self.condition(scalars), [], self.body(scalars, depth - 1), [], SPAN))
        return stmts[0] if len(stmts) == 1 else ir.SeqStmts(stmts, SPAN)

    def program(self):
        n, x = ir.Var("n", ir.ScalarType(INDEX), SPAN), ir.Var("x", TENSOR, SPAN)
        tile, out = ir.Var("t", TILE, SPAN), ir.Var("out", TENSOR, SPAN)
        offset = ir.MakeTuple([ir.mul(n, 16, SPAN), ir.ConstInt(0, INDEX)], SPAN)
        shape = ir.MakeTuple([ir.ConstInt(16, INDEX)] * 2, SPAN)
        load = ir.create_op_call("tile.load", [x, offset, shape, shape], {"target_memory": ir.Mem.Vec}, SPAN)
        stmts = [
            ir.AssignStmt(tile, load, SPAN),
            *ir.flatten_to_stmts(self.body([n], 2)),
            ir.ReturnStmt([out], SPAN),
        ]
        kernel = ir.Function(
            "kernel", [n, x, (out, ir.ParamDirection.Out)], [TENSOR], ir.SeqStmts(stmts, SPAN), SPAN,
            type=ir.FunctionType.InCore,
        )  # fmt: skip
        return ir.Program([kernel], "Random", SPAN)


@st.composite
def programs(draw):
    return Source(draw(st.data())).program()


@settings(max_examples=60, deadline=None)
@given(programs())
def test_serialisation_round_trip(program):
    restored = ir.deserialize(ir.serialize(program))
    ir.assert_structural_equal(program, restored)
    assert ir.structural_hash(program) == ir.structural_hash(restored)
    assert python_print(restored, format=False) == python_print(program, format=False)
    assert ir.serialize(ir.deserialize(ir.serialize(restored))) == ir.serialize(restored)


@settings(max_examples=60, deadline=None)
@given(programs())
def test_text_round_trip(program):
    text = python_print(program, format=False)
    restored = pl.parse_program(text)
    ir.assert_structural_equal(program, restored)
    assert ir.structural_hash(program) == ir.structural_hash(restored)
    assert python_print(restored, format=False) == text


@settings(max_examples=60, deadline=None)
@given(programs())
def test_clone_is_equal_and_shares_no_definition(program):
    body = program["kernel"].body
    clone, pairs = ir.deep_clone(body)
    ir.assert_structural_equal(body, clone)
    assert ir.structural_hash(body) == ir.structural_hash(clone)
    fresh = {id(new) for _, new in pairs}
    assert all(id(var) in fresh for var in ir.collect_def_vars(clone))


@settings(max_examples=60, deadline=None)
@given(programs(), programs())
def test_equal_programs_have_equal_hashes(one, other):
    if ir.structural_equal(one, other):
        assert ir.structural_hash(one) == ir.structural_hash(other)
    else:
        try:
            ir.assert_structural_equal(one, other)
        except ValueError as error:
            assert str(error).startswith("Structural equality assertion failed")
        else:
            raise AssertionError("assert_structural_equal accepted unequal programs")


@settings(max_examples=150, deadline=None)
@given(programs(), st.data())
def test_damaged_bytes_give_one_of_the_documented_errors(program, data):
    payload = bytearray(ir.serialize(program))
    for _ in range(data.draw(st.integers(1, 4))):
        payload[data.draw(st.integers(0, len(payload) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(payload)))
    for damaged in (bytes(payload), bytes(payload[:cut])):
        try:
            restored = ir.deserialize(damaged)
        except (ValueError, TypeError, RuntimeError):
            continue
        assert isinstance(restored, ir.IRNode)


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=64))
def test_random_bytes_give_one_of_the_documented_errors(data):
    try:
        ir.deserialize(data)
    except (ValueError, TypeError, RuntimeError):
        return
    raise AssertionError("random bytes were read as a node")
