"""Handles of registered callables under their public module name."""

from simpler_runtime.worker import CallableHandle

__all__ = ["CallableHandle"]
