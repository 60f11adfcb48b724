"""Sine and cosine: range reduction by multiples of pi in five steps, then an odd polynomial.

With k the nearest multiple, t = x - k*pi is computed with pi split into five parts (Cody and Waite), and the result
is (-1)^k * t * p(t*t). Cosine shifts by half a period inside the reduction. The error is about 1e-5 up to 2*pi*1024.
"""

from __future__ import annotations

import struct

from pypto.ir.dtype import DataType
from pypto.ir.expr import Call, ConstFloat, Expr
from pypto.passes.tile.composite.recipes import Steps, recipe

_NONE, _RINT, _ROUND, _FLOOR = 0, 1, 2, 3


def _fp32(value: float) -> ConstFloat:
    return ConstFloat(struct.unpack("f", struct.pack("f", value))[0], DataType.FP32)


_PI_INV = _fp32(0.31830988732818603515625)
_PI_PARTS = [
    ("v2", _fp32(3.140625)),
    ("c1", _fp32(0.0009670257568359375)),
    ("c2", _fp32(6.2771141529083251953125e-7)),
    ("c3", _fp32(1.21644916362129151821e-10)),
    ("c4", _fp32(-1.0290623200529979163e-13)),
]
_HALF_PI_HEAD = _fp32(1.57079637050628662109375)
_HALF_PI_TAIL = _fp32(-4.371139000189375e-8)
_R0, _R1, _R2, _R3 = (_fp32(v) for v in (2.604926501e-6, -1.980894471e-4, 8.333049340e-3, -1.666665792e-1))
_ONE, _HALF, _FOUR, _MINUS_TWO = (_fp32(v) for v in (1.0, 0.5, 4.0, -2.0))


@recipe("tile.sin")
def _sin(steps: Steps, call: Call) -> Expr:
    return _wave(steps, call.args[0], cosine=False)


@recipe("tile.cos")
def _cos(steps: Steps, call: Call) -> Expr:
    return _wave(steps, call.args[0], cosine=True)


def _wave(s: Steps, x: Expr, *, cosine: bool) -> Expr:
    def scaled(step: str, tile: Expr, factor: Expr) -> Expr:
        return s.emit(step, "tile.muls", [tile, factor])

    def shifted(step: str, tile: Expr, addend: Expr) -> Expr:
        return s.emit(step, "tile.adds", [tile, addend])

    def cast(step: str, tile: Expr, dtype: DataType, mode: int) -> Expr:
        return s.emit(step, "tile.cast", [tile], {"target_type": dtype, "mode": mode})

    k: Expr = scaled("pi_inv_x", x, _PI_INV)
    if cosine:
        k = shifted("k_pre", k, _HALF)
    k = cast("k_i", k, DataType.INT32, _RINT if cosine else _ROUND)
    k = cast("k_f", k, DataType.FP32, _NONE)
    t = x
    for number, (part, value) in enumerate(_PI_PARTS):
        multiple = scaled(f"k_pi_{part}", k, value)
        t = s.emit(f"t{number}", "tile.sub", [t, multiple])
        if cosine and number == 1:
            t = shifted("t1h", t, _HALF_PI_HEAD)
    if cosine:
        t = shifted("t4t", t, _HALF_PI_TAIL)
    half = scaled("half_k", k, _HALF)
    floor = cast("floor_hk_f", cast("floor_hk_i", half, DataType.INT32, _FLOOR), DataType.FP32, _NONE)
    four = scaled("floor_x4", floor, _FOUR)
    sign = s.emit("sign_pre", "tile.add", [four, scaled("neg2_k", k, _MINUS_TWO)])
    sign = shifted("sign", sign, _ONE)
    square = s.emit("t2sq", "tile.mul", [t, t])
    p = shifted("p_r1", scaled("p_r0", square, _R0), _R1)
    p = shifted("p_r2", s.emit("p_t2_r1", "tile.mul", [p, square]), _R2)
    p = shifted("p_r3", s.emit("p_t2_r2", "tile.mul", [p, square]), _R3)
    p = shifted("p_one", s.emit("p_t2_r3", "tile.mul", [p, square]), _ONE)
    return s.call("tile.mul", [sign, s.emit("t_p", "tile.mul", [t, p])])
