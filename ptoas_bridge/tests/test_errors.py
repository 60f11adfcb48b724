"""Wrong inputs: the position and the text of the answer. `§` marks where the error must point."""

from __future__ import annotations

import pytest
from pto_text import HEADER, PV, TB, VECTOR, VIEWS, kernel, tile

from ptoas_bridge import AssemblerError, assemble

COL = tile(32, 1, blayout="col_major")
ROW = tile(1, 32)
MASK = tile(32, 32, "ui8")
HALF = tile(dtype="f16")
INTS = tile(dtype="i32")
MAT = tile(32, 32, "f16", "mat", blayout="col_major", slayout="row_major")
LEFT = tile(32, 32, "f16", "left", slayout="row_major")
RIGHT = tile(32, 32, "f16", "right", slayout="col_major")
ACC = tile(32, 32, "f32", "acc", blayout="col_major", slayout="row_major", fractal=1024)
LONG = (
    "!pto.tile_buf<loc=vec, dtype=f32, rows=16, cols=16, v_row={v_row}, v_col=16, blayout=row_major, "
    "slayout=none_box, fractal={fractal}, pad={pad}>"
)
CUBE = "pto.kernel_kind = #pto.kernel_kind<cube>"


def tiles(*types: str) -> str:
    """Allocations %t0, %t1, ... of the given types at distinct addresses."""
    lines = []
    for number, type_ in enumerate(types):
        lines.append(f"  %ad{number} = arith.constant {number * 16384} : i64")
        lines.append(f"  %t{number} = pto.alloc_tile addr = %ad{number} : {type_}")
    return "\n".join(lines) + "\n"


def on(op: str, *types: str, extra: str = "") -> str:
    """A kernel that allocates tiles of `types` (%t0, ...) and then runs `op`."""
    return kernel(tiles(*types) + extra + "  " + op)


def dps(name: str, ins: list[str], outs: list[str], attrs: str = "") -> str:
    """`§pto.name ins(%t0, ... : T, ...) outs(...)` over tiles of the given types."""
    types = ins + outs
    text = f"§pto.{name} ins({', '.join(f'%t{i}' for i in range(len(ins)))}{attrs} : {', '.join(ins)})"
    text += f" outs({', '.join(f'%t{len(ins) + i}' for i in range(len(outs)))} : {', '.join(outs)})"
    return on(text, *types)


SYNTAX = {
    "unknown operation": (kernel("  §pto.tfoo ins(%x : f32)"), "custom op 'pto.tfoo' is unknown"),
    "undeclared value": (kernel("  %a = arith.addi §%nope, %c0 : index"), "use of undeclared SSA value name '%nope'"),
    "redefinition": (kernel("  §%c0 = arith.constant 1 : index"), "redefinition of SSA value '%c0'"),
    "type clash of an operand": (
        kernel("  %a = arith.addi §%c0, %c1 : i32"),
        "use of value '%c0' expects different type than prior uses: 'i32' vs 'index'",
    ),
    "element type of a view": (
        kernel(
            "  %v = pto.make_tensor_view §%h, shape = [%c32], strides = [%c1] : !pto.tensor_view<?xf32>",
            args="%h: !pto.ptr<f16>",
        ),
        "use of value '%h' expects different type than prior uses: '!pto.ptr<f32, gm>' vs '!pto.ptr<f16, gm>'",
    ),
    "missing comma before strides": (
        kernel("  %v = pto.make_tensor_view %x, shape = [%c32] §strides = [%c1] : !pto.tensor_view<?xf32>"),
        "expected ','",
    ),
    "missing brace": ("module {\n func.func @k() {\n  return\n }§", "expected '}' before the end of the file"),
    "no return": ("func.func @k() {\n %c = arith.constant 0 : i32\n§}", "must end with 'return'"),
    "stray text at top level": ("§hello", "expected 'module' or 'func.func', got 'hello'"),
    "unknown type": (kernel("", args="%x: §!pto.foo<f32>"), "unknown type '!pto.foo'"),
    "unknown element type": (kernel("", args="%x: !pto.ptr<§f31>"), "unknown element type 'f31'"),
    "unknown enumeration value": (kernel("  pto.barrier §#pto.pipe<PIPE_Q>"), "unknown value 'PIPE_Q' of #pto.pipe"),
    "attribute of another kind": (kernel("  pto.barrier §#pto.layout<nd>"), "expected #pto.pipe<...>"),
    "duplicate attribute": (kernel("  pto.trap {a = 1, §a = 2}"), "duplicate key 'a' in dictionary attribute"),
    "float literal for an integer": (kernel("  %f = arith.constant §1.5 : i32"), "for the integer type 'i32'"),
    "integer literal for a float": (kernel("  %f = arith.constant §1 : f32"), "write 1.0"),
    "integer out of range": (kernel("  %f = arith.constant §300 : i8"), "out of range for attribute of type 'i8'"),
    "unknown predicate": (kernel("  %f = arith.cmpi §lt, %c0, %c1 : index"), "unknown predicate 'lt'"),
    "too few operands": (on(f"pto.tadd §ins(%t0 : {TB}) outs(%t0 : {TB})", TB), "expects 2 operands in 'ins', got 1"),
    "if without else that yields": (
        kernel("  %b = arith.constant true\n  %r = §scf.if %b -> (index) {\n scf.yield %c0 : index\n }"),
        "must have an else block if defining values",
    ),
    "yield of another type": (
        kernel("  %r = scf.for %i = %c0 to %c32 step %c1 iter_args(%a = %c0) -> (index) {\n §scf.yield %a0 : i64\n }"),
        "expects operands of types (index)",
    ),
    "number of results": (kernel("  §%r, %s = arith.addi %c0, %c1 : index"), "operation defines 1 results but"),
    "event list": (kernel("  pto.set_flag[<PIPE_V>, <PIPE_MTE3>§]"), "expected ','"),
}

TYPES = {
    "valid rows": (on("", LONG.format(v_row="§20", fractal=512, pad=0)), "tile_buf valid_row (20) exceeds row (16)"),
    "fractal": (
        on("", LONG.format(v_row=16, fractal=16, pad=0).replace("fractal", "§fractal")),
        "unsupported s_fractal_size: 16, must be one of {32, 512, 1024}",
    ),
    "pad": (on("", LONG.format(v_row=16, fractal=512, pad=7).replace("pad=", "§pad=")), "unknown pad: 7"),
    "location": (on("", "!pto.tile_buf<§ub, 16x16xf32>"), "unknown loc: ub"),
    "rows": (on("", "§!pto.tile_buf<vec, 0x16xf32>"), "tile_buf rows/cols must be positive"),
    "unknown key": (on("", "!pto.tile_buf<vec, 16x16xf32, §foo=1>"), "unknown key in tile_buf compact syntax: foo"),
    "repeated key": (
        on("", "!pto.tile_buf<vec, 16x16xf32, §pad=1, pad=1>"),
        "duplicate pad in tile_buf compact",
    ),
    "key order": (
        on("", "!pto.tile_buf<loc=vec, §rows=16, dtype=f32, cols=16>"),
        "expected 'dtype' in tile_buf, got 'rows'",
    ),
    "slot count 1": (
        kernel("  %m = pto.alloc_multi_tile addr = %a0 : !pto.multi_tile_buf<vec, 16x16xf32, §count=1>"),
        "multi_tile_buf count must be >= 2 (got 1)",
    ),
    "slot count 17": (
        kernel("  %m = pto.alloc_multi_tile addr = %a0 : !pto.multi_tile_buf<vec, 16x16xf32, §count=17>"),
        "multi_tile_buf count must be <= 16 (got 17)",
    ),
    "view rank": (kernel("", args="%x: !pto.tensor_view<§1x1x1x1x1x1xf32>"), "a view has 1 to 5 dimensions, got 6"),
    "array extent": (
        kernel("  %a = pto.declare_local_array -> !pto.local_array<§0xi32>"),
        "local_array dimensions must be static and positive",
    ),
}

ALLOCATION = {
    "row size": (kernel(f"  %t = §pto.alloc_tile addr = %a0 : {tile(4, 7)}"), "32-byte aligned, but got 28 bytes"),
    "column size": (
        kernel(f"  %t = §pto.alloc_tile addr = %a0 : {tile(4, 1, blayout='col_major')}"),
        "column byte size (rows * sizeof(dtype)) to be 32-byte aligned, but got 16 bytes",
    ),
    "box rows": (
        kernel(f"  %t = §pto.alloc_tile addr = %a0 : {MAT.replace('32x32', '8x32')}"),
        "boxed tile rows to be a multiple of innerRows (16), but got 8",
    ),
    "missing valid_row": (
        kernel(f"  %t = §pto.alloc_tile addr = %a0 : {tile(valid='?x32')}"),
        "valid_row operand is required because result type v_row is ?",
    ),
    "needless valid_col": (
        kernel(f"  %t = §pto.alloc_tile addr = %a0 valid_col = %c1 : {TB}"),
        "valid_col operand must be absent because result type v_col is 32",
    ),
    "misaligned address": (
        kernel(f"  %b = arith.constant 4 : i64\n  %t = §pto.alloc_tile addr = %b : {TB}"),
        "addr must be aligned to 32 bytes for local tile memory space, got 4",
    ),
    "negative address": (
        kernel(f"  %b = arith.constant -32 : i64\n  %t = §pto.alloc_tile addr = %b : {TB}"),
        "addr must be non-negative",
    ),
    "missing address": (kernel(f"  %t = §pto.alloc_tile : {TB}"), "requires 'addr' operand when --pto-level=level3"),
    "slot index": (
        kernel(
            f"  %m = pto.alloc_multi_tile addr = %a0 : !pto.multi_tile_buf<{TB}, count=2>\n"
            f"  %t = §pto.multi_tile_get %m[%c32] : !pto.multi_tile_buf<{TB}, count=2> -> {TB}"
        ),
        "slot index 32 is out of range [0, 2)",
    ),
    "window outside": (
        on(f"%v = §pto.subview %t0[%c32, %c0] sizes [16, 32] : {TB} -> {tile(16)}", TB),
        "window at dim 0 exceeds the source",
    ),
    "window of another pad": (
        on(f"%v = §pto.subview %t0[%c0, %c0] sizes [16, 32] : {TB} -> {tile(16, pad=1)}", TB),
        "expects result pad to match source pad",
    ),
    "window without valid": (
        on(f"%v = §pto.subview %t0[%c0, %c0] sizes [16, 32] : {TB} -> {tile(16, valid='?x32')}", TB),
        "requires valid operands because the result valid shape is ?",
    ),
    "boxed window": (
        on(f"%v = §pto.subview %t0[%c0, %c1] sizes [32, 16] : {MAT} -> {MAT.replace('32x32', '32x16')}", MAT),
        "boxed offset at dim 1 must be a multiple of 16, got 1",
    ),
    "reshape of other size": (on(f"%v = §pto.treshape %t0 : {TB} -> {tile(16)}", TB), "same total byte size"),
    "reshape to another memory": (on(f"%v = §pto.treshape %t0 : {HALF} -> {MAT}", HALF), "use the same loc"),
    "valid shape of a static tile": (
        on(f"§pto.set_validshape %t0, %c1, %c1 : {TB}", TB),
        "expects source tile_buf to have dynamic validShape (?, ?)",
    ),
    "tassign with sync": (on(f"%u = §pto.tassign %t0, %a0 : {TB} -> {TB}", TB), "requires --enable-insert-sync to be"),
}

VIEW_RULES = {
    "shape count": (
        kernel("  %v = §pto.make_tensor_view %x, shape = [%c32], strides = [%c32, %c1] : !pto.tensor_view<?x?xf32>"),
        "shape/strides operand counts must match tensor_view rank=2",
    ),
    "offset count": (
        kernel(VIEWS + "  %w = §pto.partition_view %xv, offsets = [%c0], sizes = [%c1, %c32] : "
               "!pto.tensor_view<?x?xf32> -> !pto.partition_tensor_view<1x32xf32>"),
        "offset count (1) must match source rank",
    ),
    "past the end": (
        kernel(VIEWS + "  %w = §pto.partition_view %xv, offsets = [%c1, %c0], sizes = [%c32, %c32] : "
               f"!pto.tensor_view<?x?xf32> -> {PV}"),
        "offset+size at dim 0 (33) exceeds static source dim (32)",
    ),
    "zero size": (
        kernel(VIEWS + "  %w = §pto.partition_view %xv, offsets = [%c0, %c0], sizes = [%c0, %c32] : "
               "!pto.tensor_view<?x?xf32> -> !pto.partition_tensor_view<?x32xf32>"),
        "size at dim 0 must be positive",
    ),
    "size mismatch": (
        kernel(VIEWS + "  %w = §pto.partition_view %xv, offsets = [%c0, %c0], sizes = [%c1, %c32] : "
               f"!pto.tensor_view<?x?xf32> -> {PV}"),
        "size/result mismatch at dim 0",
    ),
    "load into an accumulator": (
        kernel(VIEWS + tiles(ACC) + f"  §pto.tload ins(%xp : {PV}) outs(%t0 : {ACC})"),
        "expects dst to use loc=vec or loc=mat",
    ),
    "load of another width": (
        kernel(VIEWS + tiles(HALF) + f"  §pto.tload ins(%xp : {PV}) outs(%t0 : {HALF})"),
        "element types to have the same byte size",
    ),
    "store of a larger tile": (
        kernel(VIEWS + tiles(tile(64)) + f"  §pto.tstore ins(%t0 : {tile(64)}) outs(%yp : {PV})"),
        "expects dst static element count (1024)",
    ),
    "relu on a vector store": (
        kernel(VIEWS + tiles(TB) + f"  §pto.tstore ins(%t0 : {TB}) outs(%yp : {PV}) "
               "{reluPreMode = #pto<relu_pre_mode normal_relu>}"),
        "expects reluPreMode to be used only with an acc src",
    ),
    "scalar of another type": (
        kernel("  %v = §pto.load_scalar %x[%c0] : !pto.ptr<f32> -> i32"),
        "expects the result type to match the pointer element type f32",
    ),
}  # fmt: skip

INSTRUCTIONS = {
    "element type": (dps("tadd", [MASK, MASK], [MASK]), "expects A2/A3 tadd src0, src1, and dst element type to be"),
    "mixed element types": (dps("tadd", [TB, INTS], [TB]), "to have the same element type, got f32, i32, f32"),
    "valid shapes": (dps("tadd", [TB, tile(valid="16x32")], [TB]), "src1 and dst to have the same valid_shape"),
    "matrix tile in an add": (dps("tadd", [MAT, MAT], [MAT]), "expects src0 to use loc=vec, got loc=mat"),
    "column vector in an add": (dps("tadd", [COL, COL], [COL]), "to use row_major layout"),
    "scalar type": (
        on(f"§pto.tmuls ins(%t0, %c1 : {TB}, index) outs(%t0 : {TB})", TB),
        "expects the scalar type to match the element type f32, got index",
    ),
    "convert pair": (dps("tcvt", [INTS], [tile(dtype="i8")]), "expects a supported A2/A3 tcvt element type pair"),
    "convert shape": (dps("tcvt", [TB], [tile(16, dtype="f16")]), "expects src and dst to have compatible shapes"),
    "select scratch": (
        dps("tsel", [MASK, TB, TB, MASK], [TB]),
        "expects A2/A3 tsel tmp element type to be 4 bytes wide, got ui8",
    ),
    "select without scratch": (dps("tsel", [MASK, TB, TB], [TB]), "requires explicit tmp when PlanMemory is skipped"),
    "row sum shape": (dps("trowsum", [TB, TB], [TB]), "expects dst valid_shape[1] to be 1"),
    "empty row sum": (
        dps("trowsum", [tile(valid="0x32")], [tile(32, 1, valid="0x1", blayout="col_major")]),
        "expects src valid_shape[0] to be non-zero",
    ),
    "column sum scratch": (
        on(f"§pto.tcolsum ins(%t0, %t1 {{isBinary = true}} : {tile(4, 64)}, {tile(4, 32)}) outs(%t2 : {tile(1, 64)})",
           tile(4, 64), tile(4, 32), tile(1, 64)),
        "to be at least src valid_shape[1] when isBinary is true; got 32 vs 64",
    ),
    "argmax scratch": (
        dps("trowargmax", [tile(2, 128, valid="2x127"), tile(2, 8, "i32")],
            [tile(8, 1, "i32", valid="2x1", blayout="col_major")]),
        "expects A2/A3 tmp valid_shape[1] to be at least 16 for src valid_shape[1] = 127",
    ),
    "broadcast operand": (dps("trowexpandadd", [TB, TB], [TB]), "expects src1 to be a column vector"),
    "matmul types": (
        dps("tmatmul", [LEFT, RIGHT], [ACC.replace("f32", "i32")]),
        "expects (dst, lhs, rhs) element types to match one of",
    ),
    "matmul location": (dps("tmatmul", [MAT, RIGHT], [ACC]), "expects lhs to use loc=left, got loc=mat"),
    "matmul shape": (
        dps("tmatmul", [LEFT.replace("32x32", "32x64"), RIGHT], [ACC]),
        "expects lhs.cols to equal rhs.rows, got 64 and 32",
    ),
    "gemv rows": (dps("tgemv", [LEFT, RIGHT], [ACC]), "expects dst valid_shape[0] to be 1 for tgemv"),
    "move pair": (dps("tmov", [TB], [MAT.replace("f16", "f32")]), "expects A2/A3 tmov to use a supported src/dst loc"),
    "extract window": (
        on(f"§pto.textract ins(%t0, %c1, %c0 : {TB}, index, index) outs(%t1 : {TB})", TB, TB),
        "expects indexRow + dst.rows <= src.rows",
    ),
    "insert types": (
        on(f"§pto.tinsert ins(%t0, %c0, %c0 : {ACC}, index, index) outs(%t1 : {MAT.replace('f16', 'f32')})",
           ACC, MAT.replace("f16", "f32")),
        "expects A2/A3 tinsert element types to be src=f32, dst=f16/bf16",
    ),
    "fillpad": (dps("tfillpad", [TB], [TB]), "expects dst PadVal != Null for tfillpad"),
    "fillpad mode": (
        on(f"§pto.tfillpad ins(%t0 : {TB}) outs(%t1 : {tile(pad=1)}) {{mode = 1}}", TB, tile(pad=1)),
        "does not accept 'mode'",
    ),
    "gather index type": (dps("tgather", [TB, HALF, TB], [TB]), "expects indices element type to be i32, got f16"),
    "merge sort rows": (
        on(f"§pto.tmrgsort ins(%t0, %n : {TB}, i32) outs(%t0 : {TB})", TB, extra="  %n = arith.constant 64 : i32\n"),
        "expects src rows == 1",
    ),
    "a5 instruction": (dps("thistogram", [TB, TB], [TB]), "thistogram is only supported on A5"),
    "random on a3": (
        on(f"§pto.trandom ins(%n, %n, %n, %n, %n, %n : i32, i32, i32, i32, i32, i32) outs(%t0 : {INTS})", INTS,
           extra="  %n = arith.constant 64 : i32\n"),
        "trandom is only supported for A5 targets",
    ),
    "quantisation offset": (
        on(f"§pto.tquant ins(%t0, %t1 : {TB}, {COL}) outs(%t2 : {MASK}) {{quant_type = #pto<quant_type INT8_ASYM>}}",
           TB, COL, MASK),
        "INT8_ASYM quantization requires an offset operand",
    ),
    "sequence on a3 without scratch": (
        on(f"§pto.tci ins(%n : i32) outs(%t0 : {tile(1, 32, 'i32')}) {{descending = false}}", tile(1, 32, "i32"),
           extra="  %n = arith.constant 0 : i32\n"),
        "requires explicit tmp when PlanMemory is skipped",
    ),
    "element of another type": (
        on(f"%v = §pto.tgetval ins(%t0, %c0 : {TB}, index) outs : i32", TB),
        "expects the result type to be the element type f32",
    ),
}  # fmt: skip

STRUCTURE = {
    "entry with a result": (
        "§func.func @k() -> i32 attributes {pto.entry} {\n %c = arith.constant 0 : i32\n return %c : i32\n}",
        "PTO entry functions must return void",
    ),
    "recursion": (
        "func.func @f() {\n §func.call @f() : () -> ()\n return\n}",
        "recursive function calls are not supported",
    ),
    "unknown callee": (kernel("  §func.call @nobody() : () -> ()"), "'nobody' does not reference a valid function"),
    "loop step": (
        kernel("  §scf.for %i = %c0 to %c32 step %c0 {\n }"),
        "constant step operand must be positive, got 0",
    ),
    "unsigned arithmetic": (
        kernel("  %s = §arith.addi %u, %u : ui32", args="%u: ui32"),
        "operand #0 must be signless-fixed-width-integer-like, but got 'ui32'",
    ),
    "tail hint": (
        kernel("", attrs='pto.auto_sync_tail_hint = "zz"').replace("func.func", "§func.func"),
        "invalid pto.auto_sync_tail_hint 'zz'. Expected 'barrier-all' (or 'default') or 'mte3-to-s-event0'.",
    ),
    "array index": (
        kernel(
            "  %a = pto.declare_local_array -> !pto.local_array<4xi32>\n"
            "  %v = §pto.local_array_get %a[%c32] : !pto.local_array<4xi32> -> i32"
        ),
        "index 32 at dim 0 is out of range [0, 4)",
    ),
    "struct path": (
        kernel("  %s = pto.declare_struct -> !pto.struct<i32, f32>\n"
               "  %v = §pto.struct_get %s[2] : !pto.struct<i32, f32> -> f32"),
        "path [2] does not lead to a field",
    ),
    "struct field type": (
        kernel("  %s = pto.declare_struct -> !pto.struct<i32, f32>\n"
               "  %v = §pto.struct_get %s[1] : !pto.struct<i32, f32> -> i32"),
        "expects the field type f32, got i32",
    ),
    "yielded struct": (
        kernel("  %s = pto.declare_struct -> !pto.struct<i32>\n  %b = arith.constant true\n"
               "  %r = §scf.if %b -> (!pto.struct<i32>) {\n scf.yield %s : !pto.struct<i32>\n } else {\n"
               " scf.yield %s : !pto.struct<i32>\n }"),
        "cannot yield or select a value of type '!pto.struct<i32>'",
    ),
    "hard barrier with operands": (
        kernel("  §pto.syncall(%x : !pto.ptr<f32>) mode = #pto.sync_all_mode<hard>, "
               "core_type = #pto.sync_core_type<mix>"),
        "hard mode takes no operands",
    ),
    "cross-core flag without ffts": (kernel("  §pto.sync.set #pto.pipe<PIPE_FIX>, 3"), "requires explicit `pto.set_ff"),
    "integer pointer used elsewhere": (
        kernel("  %p = §pto.inttoptr %a0 : i64 -> !pto.ptr<f32>\n"
               "  %q = pto.addptr %p, %c1 : !pto.ptr<f32> -> !pto.ptr<f32>"),
        "result may only be used as the pointer operand of pto.load_scalar or pto.store_scalar",
    ),
}  # fmt: skip


def pipe(body: str, init: str = "dir_mask = 1, slot_size = 4096", attrs: str = CUBE, side: str = "aic") -> str:
    return kernel(f"  %z = arith.constant 0 : i32\n  pto.{side}_initialize_pipe {{{init}}} "
                  f"(gm_slot_buffer = %x : !pto.ptr<f32>, c2v_consumer_buf = %z : i32, v2c_consumer_buf = %z : i32)\n"
                  + tiles(ACC) + body, attrs=attrs)  # fmt: skip


PIPES = {
    "split values": (pipe(f"  §pto.tpush_to_aiv(%t0 : {ACC}) {{split = 5}}"), "expects 'split' to be 0, 1, 2, 3, or 4"),
    "mixed splits": (
        pipe(f"  pto.tpush_to_aiv(%t0 : {ACC}) {{split = 0}}\n  §pto.tpush_to_aiv(%t0 : {ACC}) {{split = 1}}"),
        "cannot mix 'split = 0' with 'split = 1'",
    ),
    "wrong side": (pipe("  §pto.tfree_from_aic {split = 0}"), "must be inside a vector kernel function or section"),
    "producer": (
        pipe(f"  §pto.tpush_to_aiv(%t0 : {ACC}) {{split = 0}}").replace(ACC, LEFT),
        "must map to a supported producer pipe",
    ),
    "undeclared pipe": (pipe(f"  §pto.tpush_to_aiv(%t0 : {ACC}) {{id = 3}}"), "uses pipe id 3"),
    "direction": (pipe("", "dir_mask = 4, slot_size = 4096").replace("pto.aic_init", "§pto.aic_init"), "'dir_mask' to"),
    "local slots": (
        pipe("", "dir_mask = 1, slot_size = 4096, slot_num = 2, local_slot_num = 3").replace("pto.aic_i", "§pto.aic_i"),
        "expects 'local_slot_num' to be between 1 and slot_num (2), got 3",
    ),
    "static popped tile": (
        pipe(f"  %p = §pto.tpop_from_aic(%c1, %c1) {{split = 0}} -> {TB}", attrs=VECTOR, side="aiv"),
        "dynamic validShape (?, ?) when valid_row/valid_col operands are provided",
    ),
    "unknown peer": (
        kernel('  %b = §pto.import_reserved_buffer {name = "b", peer_func = @nobody} -> i32'),
        "expects 'peer_func' to reference an existing func.func",
    ),
    "reserved twice": (
        kernel(
            2 * '  %r = pto.reserve_buffer {name = "b", size = 64, location = #pto.address_space<vec>, auto = false, '
            "base = 0} -> i32\n"
        ).replace("%r", "%r0", 1).replace("%r = ", "%r1 = §"),
        "expects 'name' to be unique in a function",
    ),
}  # fmt: skip

ALL = {
    f"{group}: {name}": case
    for group, cases in {
        "syntax": SYNTAX, "type": TYPES, "allocation": ALLOCATION, "view": VIEW_RULES, "instruction": INSTRUCTIONS,
        "structure": STRUCTURE, "pipe": PIPES,
    }.items()
    for name, case in cases.items()
}  # fmt: skip


@pytest.mark.parametrize("name", ALL)
def test_wrong_input(name):
    marked, fragment = ALL[name]
    before = marked[: marked.index("§")]
    line, column = before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1
    with pytest.raises(AssemblerError) as info:
        assemble(marked.replace("§", ""), filename="k.pto")
    error = info.value
    assert fragment in error.message
    assert (error.line, error.column) == (line, column), str(error)
    assert str(error).startswith(f"k.pto:{line}:{column}: error: ")


def test_there_are_enough_wrong_inputs():
    assert len(ALL) >= 60


def test_caret_stands_under_the_mistake():
    with pytest.raises(AssemblerError) as info:
        assemble(kernel("  %a = arith.addi %nope, %c0 : index"))
    lines = str(info.value).splitlines()
    assert lines[1][lines[2].index("^") :].startswith("%nope")


def test_location_of_the_operation_is_reported():
    text = on(f'pto.tadd ins(%t0, %t0 : {MASK}, {MASK}) outs(%t0 : {MASK}) loc("k.py":7:3)', MASK)
    with pytest.raises(AssemblerError) as info:
        assemble(text)
    assert info.value.source_loc == '"k.py":7:3'
    assert info.value.mlir_diagnostic().startswith("loc(\"k.py\":7:3): error: 'pto.tadd' op ")


def test_location_alias_is_resolved():
    text = '#loc1 = loc("k.py":9:1)\n' + on(
        f"pto.tadd ins(%t0, %t0 : {MASK}, {MASK}) outs(%t0 : {MASK}) loc(#loc1)", MASK
    )
    with pytest.raises(AssemblerError) as info:
        assemble(text)
    assert info.value.source_loc == '"k.py":9:1'


def test_levels():
    planned = f"  %t = pto.alloc_tile : {TB}"
    with pytest.raises(AssemblerError, match="unexpected 'addr' operand"):
        assemble(kernel(planned.replace(":", "addr = %a0 :", 1)), level="level2")
    assert assemble(kernel(planned), level="level2")
    with pytest.raises(AssemblerError, match=r"tassign is only supported when --pto-level=level3\."):
        assemble(kernel(planned + f"\n  %u = pto.tassign %t, %a0 : {TB} -> {TB}"), level="level2")


def test_local_slot_num_is_refused_on_a5():
    with pytest.raises(AssemblerError, match="only supported for a2/a3"):
        assemble(pipe("", "dir_mask = 1, slot_size = 4096, slot_num = 2, local_slot_num = 2"), arch="a5")


def test_sixteen_hardware_flags():
    inits = "".join(
        f"  pto.aic_initialize_pipe {{id = {i}, dir_mask = {3 if i == 0 else 1}, slot_size = 64}} "
        "(c2v_consumer_buf = %z : i32, v2c_consumer_buf = %z : i32)\n"
        for i in range(9)
    )
    with pytest.raises(AssemblerError, match="16 hardware flag ids"):
        assemble(kernel("  %z = arith.constant 0 : i32\n" + inits, attrs=CUBE))


def test_compare_needs_a_mask_that_holds_the_bits_of_its_sources():
    sources, mask = tile(32, 64), tile(32, 32, "ui8")
    text = dps("tcmp", [sources, sources], [mask], " {cmpMode = #pto<cmp gt>}").replace("§", "")
    assert "TCMP(" in assemble(text, arch="a3")
    assert "TCMP(" in assemble(text, arch="a5")
    short = dps("tcmp", [sources, sources], [tile(16, 32, "ui8")], " {cmpMode = #pto<cmp gt>}").replace("§", "")
    with pytest.raises(AssemblerError, match="same shape"):
        assemble(short, arch="a5")


def test_header_is_what_positions_rely_on():
    assert HEADER.count("\n") == 6
    assert ROW.startswith("!pto.tile_buf<vec, 1x32xf32")
