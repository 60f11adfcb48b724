"""The Worker class under its public module name."""

from simpler_runtime.worker import CallableHandle, RunHandle, Worker

__all__ = ["CallableHandle", "RunHandle", "Worker"]
