"""The ``pl.*`` operators that choose between tensor and tile by their operands."""

from __future__ import annotations

from pypto.language.op.wrapping import expose
from pypto.ops import surface

_functions = expose(getattr(surface, "UNIFIED", {}), __name__)
globals().update(_functions)
__all__ = sorted(_functions)  # noqa: PLE0605
