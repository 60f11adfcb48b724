"""Where the headers of the tile instruction set are."""

from __future__ import annotations

import os
from pathlib import Path


def pto_isa_include_dir() -> Path:
    """Folder to put on the include path so that ``#include <pto/pto-inst.hpp>`` is found."""
    import ptoas_bridge

    return ptoas_bridge.isa_include_dir()


def ensure_pto_isa_root() -> str:
    """Locate the instruction-set tree and export it as ``PTO_ISA_ROOT`` for compilers started from here."""
    root = str(pto_isa_include_dir().parent)
    os.environ["PTO_ISA_ROOT"] = root
    return root
