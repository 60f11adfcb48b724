"""Re-exports ``pypto.arith``."""

from pypto.pypto_core._forward import forward

__getattr__, __dir__ = forward("pypto.arith")
