"""Where tiles live: the base address and the root buffer behind a tile value."""

from __future__ import annotations

from ..dialect.ir import Value, constant_of


def base_address(value: Value) -> int | None:
    """Byte address of a tile when its allocation says so (an `addr` constant, or a planned address)."""
    owner = value.owner
    while owner is not None and owner.name in ("pto.treshape", "pto.bitcast"):
        value = owner.ins[0]
        owner = value.owner
    if owner is None or owner.name != "pto.alloc_tile":
        return None
    address = owner.named.get("addr")
    if address is not None:
        return constant_of(address)
    return owner.attrs.get("planned_address")
