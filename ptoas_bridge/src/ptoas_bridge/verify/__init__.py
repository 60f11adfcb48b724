"""Checks of a parsed module: everything the instruction set cannot do is refused here, at the user's line."""

from .checker import verify_module

__all__ = ["verify_module"]
