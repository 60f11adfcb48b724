"""Imports the packages before pytest meets the folders of the same names."""

import contextlib
import importlib

for _package in ("ptoas_bridge", "simpler_runtime", "pypto", "pypto_lib", "ptows"):
    with contextlib.suppress(ImportError):
        importlib.import_module(_package)
