"""Where the tile instruction headers are."""

from __future__ import annotations

import os
from pathlib import Path


def ensure_pto_isa_root(*_: object, **__: object) -> str:
    """The folder given by ``PTO_ISA_ROOT``, which must hold ``include/pto/pto-inst.hpp``. RuntimeError otherwise."""
    configured = os.environ.get("PTO_ISA_ROOT", "")
    if not configured:
        raise RuntimeError(
            "PTO_ISA_ROOT is not set: point it to the folder that holds include/pto/pto-inst.hpp "
            "(the 'isa' folder of the ptoas_bridge package, or a checkout of the instruction set)"
        )
    if not (Path(configured) / "include" / "pto" / "pto-inst.hpp").is_file():
        raise RuntimeError(f"PTO_ISA_ROOT={configured!r} does not hold include/pto/pto-inst.hpp")
    return configured
