"""Pass instruments under their public name; they are defined with the passes."""

from pypto.pypto_core._forward import forward

__getattr__, __dir__ = forward("pypto.passes.instruments")
