"""Enumeration attributes `#pto.NAME<value>`: the values each accepts and their integer codes."""

from __future__ import annotations

from typing import NamedTuple


class EnumAttr(NamedTuple):
    """One enumeration value; `kind` is the attribute name (`layout`), `value` its keyword (`nd`)."""

    kind: str
    value: str

    def __str__(self) -> str:
        return f"#pto.{self.kind}<{self.value}>"


class SymbolRef(NamedTuple):
    """`@name`."""

    name: str

    def __str__(self) -> str:
        return f"@{self.name}"


_EVENTS = [
    "TLOAD",
    "TSTORE_ACC",
    "TSTORE_VEC",
    "TMOV_M2L",
    "TMOV_M2S",
    "TMOV_M2B",
    "TMOV_M2V",
    "TMOV_V2M",
    "TMATMUL",
    "TVEC",
    "TVECWAIT_EVENT",
]
_PRECISIONS = ["exp", "log", "sqrt", "rsqrt", "recip", "div", "rem", "fmod", "pow"]

ENUMS: dict[str, dict[str, int]] = {
    name: {value: code for code, value in enumerate(values)}
    for name, values in {
        "address_space": ["zero", "gm", "mat", "left", "right", "acc", "vec", "bias", "scaling"],
        "layout": ["nd", "dn", "nz"],
        "kernel_kind": ["cube", "vector"],
        "pipe": (
            [
                "PIPE_S",
                "PIPE_V",
                "PIPE_M",
                "PIPE_MTE1",
                "PIPE_MTE2",
                "PIPE_MTE3",
                "PIPE_ALL",
                "PIPE_MTE4",
                "PIPE_MTE5",
                "PIPE_V2",
                "PIPE_FIX",
            ]
        ),
        "event": [f"EVENT_ID{i}" for i in range(8)],
        "pipe_event_type": _EVENTS,
        "sync_op_type": _EVENTS,
        "cmp": ["eq", "ne", "lt", "le", "gt", "ge"],
        "round_mode": ["NONE", "RINT", "ROUND", "FLOOR", "CEIL", "TRUNC", "ODD", "CAST_RINT"],
        "saturation_mode": ["ON", "OFF"],
        "atomic_type": ["atomic_none", "atomic_add"],
        "relu_pre_mode": ["no_relu", "normal_relu"],
        "acc_to_vec_mode": ["single_mode_vec0", "single_mode_vec1", "dual_mode_split_m", "dual_mode_split_n"],
        "gather_oob": ["undefined", "clamp", "wrap", "zero"],
        "scatter_oob": ["undefined", "skip", "clamp", "wrap"],
        "scatter_atomic_op": ["none", "add", "max", "min"],
        "scatter_conflict": ["default", "last"],
        "coalesce": ["row", "elem"],
        "padmode": ["PadNull", "PadFirstElem", "PadValue"],
        "pad_value": ["null", "zero", "max", "min"],
        "compact_mode": ["null", "normal", "row_plus_one"],
        "blayout": ["row_major", "col_major"],
        "slayout": ["none_box", "row_major", "col_major"],
        "quant_type": ["INT8_SYM", "INT8_ASYM", "MXFP8", "MXFP4_E2M1"],
        "quant_scale_alg": ["ocp", "nv"],
        "mx_group_axis": ["axis0", "axis1"],
        "sync_all_mode": ["hard", "soft"],
        "sync_core_type": ["aiv_only", "aic_only", "mix"],
        "notify_op": ["atomic_add", "set"],
        "wait_cmp": ["eq", "ne", "gt", "ge", "lt", "le"],
        "reduce_op": ["sum", "max", "min"],
        "fence_scope": ["gm"],
        **{f"{name}_precision": ["default", "high_precision"] for name in _PRECISIONS},
    }.items()
}
for _phase in ("st_phase", "acc_phase"):
    ENUMS[_phase] = {"unspecified": 0, "partial": 2, "final": 3}
ENUMS["mask_pattern"] = {"P0101": 1, "P1010": 2, "P0001": 3, "P0010": 4, "P0100": 5, "P1000": 6, "P1111": 7}

# High-level synchronisation endpoints and the hardware pipe each one runs on.
EVENT_PIPES: dict[str, str] = {
    "TLOAD": "PIPE_MTE2",
    "TSTORE_VEC": "PIPE_MTE3",
    "TSTORE_ACC": "PIPE_FIX",
    "TMOV_M2L": "PIPE_MTE1",
    "TMOV_M2B": "PIPE_MTE1",
    "TMOV_M2S": "PIPE_FIX",
    "TMOV_M2V": "PIPE_V",
    "TMOV_V2M": "PIPE_FIX",
    "TMATMUL": "PIPE_M",
    "TVEC": "PIPE_V",
    "TVECWAIT_EVENT": "PIPE_V",
}
