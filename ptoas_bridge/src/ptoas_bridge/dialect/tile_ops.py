"""The operation table, part one: tile instructions (elementwise, reductions, matrix, movement, rearrangement)."""

from __future__ import annotations

from .spec import op

_BASIC = "i32 i16 f16 f32"
_FLOAT = "f16 f32"
_WIDE = "i8 i16 i32 f16 bf16 f32"
_MATRIX_ATTRS = {"accPhase": "acc_phase"}


def _elementwise() -> None:
    precision = "texp exp, tlog log, tsqrt sqrt, trecip recip, trsqrt rsqrt"
    for pair in precision.split(", "):
        name, algorithm = pair.split()
        extra = " tmp?" if name == "trsqrt" else ""
        op(name, "src" + extra, "dst", pipe="V", dtypes=_FLOAT, attrs={"precisionType": f"{algorithm}_precision"})
    op("tabs", "src", "dst", pipe="V", dtypes=_FLOAT)
    op("tneg", "src", "dst", pipe="V", dtypes=_BASIC, a5="i8 bf16")
    op("trelu", "src", "dst", pipe="V", dtypes="f16 f32 i32")
    op("tnot", "src", "dst", pipe="V", dtypes="i16 ui16", a5="i8 i32 ui8 ui32")

    for name, a5 in (("tadd", "bf16 i8"), ("tsub", "i8"), ("tmul", ""), ("tmax", "i8"), ("tmin", "i8")):
        op(name, "src0 src1", "dst", pipe="V", dtypes=_BASIC, a5=a5)
    op("tdiv", "src0 src1", "dst", pipe="V", dtypes=_FLOAT, a5="i32 i16", attrs={"precisionType": "div_precision"})
    op("tfmod", "src0 src1", "dst", pipe="V", dtypes="f16 f32 i16 i32", attrs={"precisionType": "fmod_precision"})
    op("trem", "src0 src1 tmp?", "dst", pipe="V", dtypes="i32 f32", a5="i16 f16",
       attrs={"precisionType": "rem_precision"})  # fmt: skip
    for name in ("tand", "tor"):
        op(name, "src0 src1", "dst", pipe="V", dtypes="i8 i16 ui8 ui16", a5="i32 ui32")
    op("txor", "src0 src1 tmp?", "dst", pipe="V", dtypes="i8 i16 ui8 ui16", a5="i32 ui32")
    for name in ("tshl", "tshr"):
        op(name, "src0 src1", "dst", pipe="V", dtypes="i8 i16 i32 ui8 ui16 ui32")
    for name in ("tpartadd", "tpartmul", "tpartmax", "tpartmin"):
        op(name, "src0 src1", "dst", pipe="V", dtypes=_BASIC, a5="i8 bf16")
    op("tprelu", "src0 src1 tmp?", "dst", pipe="V", dtypes=_FLOAT)
    op("tconcat", "src0 src1", "dst", pipe="V")
    op("tconcatidx", "src0 src1 idx0 idx1", "dst", pipe="V")
    op("taddrelu", "src0 src1", "dst", pipe="V", dtypes=_BASIC, arch="a3")
    for name in ("taddc", "tsubc"):
        op(name, "src0 src1 src2", "dst", pipe="V", dtypes=_BASIC)
    for name in ("taddsc", "tsubsc"):
        op(name, "src0 scalar src1", "dst", pipe="V", dtypes=_BASIC)

    for name, a5 in (("tadds", "i8 bf16"), ("tsubs", "i8 bf16"), ("tmuls", "i8 bf16"), ("tmaxs", "i8"),
                     ("tmins", "i8 bf16")):  # fmt: skip
        op(name, "src scalar", "dst", pipe="V", dtypes=_BASIC, a5=a5)
    for name in ("tands", "tors"):
        op(name, "src scalar", "dst", pipe="V", dtypes="i8 i16 ui8 ui16", a5="i32 ui32")
    op("txors", "src scalar tmp?", "dst", pipe="V", dtypes="i8 i16 ui8 ui16", a5="i32 ui32")
    for name in ("tshls", "tshrs"):
        op(name, "src scalar", "dst", pipe="V", dtypes="i16 i32 ui16 ui32", a5="i8 ui8")
    op("tlrelu", "src scalar", "dst", pipe="V", dtypes=_FLOAT)
    op("tfmods", "src scalar", "dst", pipe="V", dtypes="f16 f32 i16 i32", attrs={"precisionType": "fmod_precision"})
    op("trems", "src scalar tmp?", "dst", pipe="V", dtypes="i32 f32", a5="i16 f16",
       attrs={"precisionType": "rem_precision"})  # fmt: skip
    op("taxpy", "src scalar", "dst", pipe="V", dtypes=_FLOAT, a5="bf16")
    op("tdivs", "first second", "dst", pipe="V", dtypes=_BASIC, a5="i8", attrs={"precisionType": "div_precision"})
    op("texpands", "scalar", "dst", pipe="V", dtypes=_BASIC + " i64 ui8 ui16 ui32", a5="i8 bf16")
    op("tci", "start tmp?", "dst", pipe="S", attrs={"descending": "bool"})
    op("ttri", "diagonal", "dst", pipe="V", attrs={"upperOrLower": "int"})
    op("trandom", "key0 key1 counter0 counter1 counter2 counter3", "dst", pipe="V", arch="a5", attrs={"rounds": "int"})
    op("tpow", "src0 src1 tmp?", "dst", pipe="V", attrs={"precisionType": "pow_precision"})
    op("tpows", "src scalar tmp?", "dst", pipe="V", attrs={"precisionType": "pow_precision"})
    for name in ("tpartargmax", "tpartargmin"):
        op(name, "src0 src1 idx0 idx1", "dst dst_idx", pipe="V")


def _compare_and_convert() -> None:
    op("tcmp", "src0 src1", "dst", pipe="V", attrs={"cmpMode": "cmp"}, dtypes="i32 f16 f32", a5="i16 i8")
    op("tcmps", "src scalar", "dst", pipe="V", attrs={"cmpMode": "cmp"}, dtypes="i16 i32 f16 f32", a5="i8")
    op("tsel", "mask src0 src1 tmp?", "dst", pipe="V", dtypes="i16 i32 f16 bf16 f32", a5="i8")
    op("tsels", "mask src tmp? scalar", "dst", pipe="V", dtypes="i16 i32 f16 f32", a5="i8")
    op("tcvt", "src tmp?", "dst", pipe="V", attrs={"rmode": "round_mode", "satmode": "saturation_mode"})


def _reductions() -> None:
    for name in ("trowsum", "trowmax", "trowmin", "trowprod"):
        op(name, "src tmp?", "dst", pipe="V", dtypes="i16 i32 f16 f32")
    for name in ("trowargmax", "trowargmin"):
        op(name, "src tmp?", "dst", pipe="V", dtypes="i16 i32 f16 f32")
    for name in ("tcolargmax", "tcolargmin"):
        op(name, "src tmp?", "dst", pipe="V", dtypes="f16 f32", a5="i8 i16 i32 ui8 ui16 ui32")
    op("tcolsum", "src tmp?", "dst", pipe="V", dtypes="f16 f32 i16 i32", a5="i8 bf16", attrs={"isBinary": "bool"})
    for name in ("tcolmax", "tcolmin", "tcolprod"):
        op(name, "src", "dst", pipe="V", dtypes="f16 f32 i16 i32", a5="i8 bf16")
    for name in ("trowexpand", "tcolexpand"):
        op(name, "src", "dst", pipe="V")
    for kind in ("add", "sub", "mul", "div", "max", "min", "expdif"):
        attrs = {"precisionType": "div_precision"} if kind == "div" else None
        dtypes = _FLOAT if kind in ("div", "expdif") else _BASIC
        op("trowexpand" + kind, "src0 src1 tmp?", "dst", pipe="V", attrs=attrs, dtypes=dtypes, a5="i16 i32")
        op("tcolexpand" + kind, "src0 src1", "dst", pipe="V", dtypes=dtypes, a5="i16 i32")
    op("thistogram", "src idx", "dst", pipe="V", arch="a5", attrs={"byte": "int", "isMSB": "bool"})


def _matrix() -> None:
    plain = {"": "lhs rhs", ".acc": "acc_in lhs rhs", ".bias": "lhs rhs bias"}
    scaled = {
        ".mx": "lhs lhs_scale rhs rhs_scale",
        ".mx.acc": "acc_in lhs lhs_scale rhs rhs_scale",
        ".mx.bias": "lhs lhs_scale rhs rhs_scale bias",
    }
    for base in ("tmatmul", "tgemv"):
        for suffix, ins in plain.items():
            op(base + suffix, ins, "dst", pipe="M", attrs=_MATRIX_ATTRS)
        for suffix, ins in scaled.items():
            op(base + suffix, ins, "dst", pipe="M", attrs=_MATRIX_ATTRS, arch="a5", call=base.upper() + "_MX")


def _movement() -> None:
    op("tload", "src", "dst", pipe="MTE2", attrs={"layout": "layout"})
    op("tprefetch", "src", "dst", pipe="MTE2")
    op("tstore", "src pre_quant?", "dst", pipe="by_loc", attrs={
        "stPhase": "st_phase", "atomicType": "atomic_type", "reluPreMode": "relu_pre_mode", "layout": "layout",
    })  # fmt: skip
    op("tmov", "src fp? pre_quant?", "dst", pipe="by_loc", attrs={
        "accToVecMode": "acc_to_vec_mode", "reluPreMode": "relu_pre_mode", "grpAxis": "mx_group_axis",
    })  # fmt: skip
    window_attrs = {"accToVecMode": "acc_to_vec_mode", "reluPreMode": "relu_pre_mode"}
    op("textract", "src row col pre_quant?", "dst", pipe="by_loc", attrs=window_attrs)
    op("tinsert", "src row col", "dst", pipe="by_loc", attrs=window_attrs)
    op("ttrans", "src tmp?", "dst", pipe="V", dtypes=_WIDE + " ui8 ui16 ui32")
    op("tfillpad", "src", "dst", pipe="by_loc", attrs={"padValue": "pad_value"})
    op("tfillpad_expand", "src", "dst", pipe="by_loc", call="TFILLPAD")
    op("tfillpad_inplace", "src", "dst", pipe="by_loc", call="TFILLPAD")
    op("tpack", "src", "dst", pipe="V")
    op("mgather", "mem idx scratch?", "dst", pipe="MTE2", attrs={"coalesce": "coalesce", "gatherOob": "gather_oob"})
    op("mscatter", "src idx", "mem", pipe="MTE3", attrs={
        "coalesce": "coalesce", "scatterAtomicOp": "scatter_atomic_op", "scatterOob": "scatter_oob",
        "scatterConflict": "scatter_conflict",
    })  # fmt: skip


def _rearrangement() -> None:
    op("tgather", "src idx? tmp?", "dst counts?", pipe="V", attrs={
        "maskPattern": "mask_pattern", "cmpMode": "cmp", "offset": "int",
    })  # fmt: skip
    op("tgatherb", "src offsets", "dst", pipe="V")
    op("tscatter", "src idx?", "dst", pipe="V", attrs={"maskPattern": "mask_pattern"})
    op("tsort32", "src idx tmp?", "dst", pipe="V", dtypes=_FLOAT)
    op("tmrgsort", "srcs*", "dst executed?", pipe="V", attrs={"exhausted": "bool"})
    op("tgetval", "src offset", "value", form="tgetval", pipe="S", results=1)
    op("tsetval", "offset value", "dst", pipe="S")
    op("tquant", "src fp offset?", "dst tmp?", pipe="V", attrs={"quant_type": "quant_type"})
    op("tquant.mx", "src", "dst exponents maxima scaling", pipe="V", arch="a5", attrs={
        "quant_type": "quant_type", "quantScaleAlg": "quant_scale_alg", "grpAxis": "mx_group_axis",
        "interleave": "bool",
    })  # fmt: skip
    op("tdequant", "src scale offset", "dst", pipe="V")
    op("tget_scale_addr", "src", "dst", pipe="S", arch="a5")
    op("tprint", "src", "", pipe="S", attrs={"printFormat": "int"})
    op("tsync", "events*", "", pipe="S")


_elementwise()
_compare_and_convert()
_reductions()
_matrix()
_movement()
_rearrangement()
