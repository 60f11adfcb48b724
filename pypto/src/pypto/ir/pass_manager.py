"""The pass manager under its public name; it is defined with the passes."""

from pypto.pypto_core._forward import forward

__getattr__, __dir__ = forward("pypto.passes.manager")
