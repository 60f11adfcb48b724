"""``ir.compile``: the function of :mod:`pypto.runtime.compiler` under its public name.

``pypto.ir.compile`` is this module once it has been imported, so the module can be called like the function.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import Any


def compile(*args: Any, **kwargs: Any) -> Any:
    """Compile a program; see :func:`pypto.runtime.compiler.compile`."""
    return importlib.import_module("pypto.runtime.compiler").compile(*args, **kwargs)


class _CompileModule(ModuleType):
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.compile(*args, **kwargs)


sys.modules[__name__].__class__ = _CompileModule
