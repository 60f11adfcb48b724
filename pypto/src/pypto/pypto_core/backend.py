"""Re-exports ``pypto.backend``."""

from pypto.pypto_core._forward import forward

__getattr__, __dir__ = forward("pypto.backend")
