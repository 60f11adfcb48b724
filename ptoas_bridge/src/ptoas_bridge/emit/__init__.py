"""From the checked dialect to kernel C++ that calls the PTO instructions."""

from .module import emit_module

__all__ = ["emit_module"]
