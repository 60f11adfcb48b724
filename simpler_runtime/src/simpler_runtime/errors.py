"""Errors of the task runtime that are not plain Python ones."""

from __future__ import annotations


class ToolchainError(RuntimeError):
    """No compiler was found, or a compile failed. The text holds the command and what the compiler said."""


class UnsupportedFeatureError(NotImplementedError):
    """A documented feature that this runtime does not have; the text names it."""
