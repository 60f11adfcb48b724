"""The ``pl.tensor`` operators."""

from __future__ import annotations

from pypto.language.op.wrapping import expose
from pypto.ops.surface import TENSOR

_functions = expose(vars(TENSOR), __name__)
globals().update(_functions)
__all__ = sorted(_functions)  # noqa: PLE0605
