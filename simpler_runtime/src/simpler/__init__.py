"""Public names of the task runtime."""

from simpler_runtime.worker import Worker

__all__ = ["Worker"]


def __getattr__(name: str):
    from importlib import import_module

    if name == "task_interface":
        return import_module("simpler.task_interface")
    interface = import_module("simpler.task_interface")
    try:
        return getattr(interface, name)
    except AttributeError:
        raise AttributeError(f"module 'simpler' has no attribute {name!r}") from None
