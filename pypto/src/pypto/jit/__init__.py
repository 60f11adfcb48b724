"""``@pl.jit``: Python functions specialised on the shapes and dtypes of their arguments."""

from __future__ import annotations

from pypto.jit.decorator import JITFunction, jit

__all__ = ["JITFunction", "jit"]
