"""Makes the package and the shared `.pto` snippets (pto_text.py) importable from every test."""

import importlib
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

# pytest's importlib mode names this file `ptoas_bridge.tests.conftest` and registers the project folder as a
# namespace package `ptoas_bridge`, which would hide the real package of that name.
if getattr(sys.modules.get("ptoas_bridge"), "__file__", None) is None:
    sys.modules.pop("ptoas_bridge", None)
    importlib.import_module("ptoas_bridge")
