"""Bytes of each on-chip memory, by architecture (section 7.4)."""

CAPACITY: dict[str, dict[str, int]] = {
    "a3": {
        "vec": 196608, "mat": 524288, "left": 65536, "right": 65536, "acc": 131072, "bias": 65536, "scaling": 196608,
    },
    "a5": {
        "vec": 253952, "mat": 524288, "left": 65536, "right": 65536, "acc": 262144, "bias": 65536, "scaling": 253952,
    },
}  # fmt: skip
