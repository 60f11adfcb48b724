"""Levels of the machine under their public module name."""

from simpler_runtime.platforms import WorkerLevel, span_prefix

__all__ = ["WorkerLevel", "span_prefix"]
