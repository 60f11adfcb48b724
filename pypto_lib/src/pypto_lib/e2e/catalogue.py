"""Finding the example programs.

An example module defines ``ENTRY`` (a JIT function or a Program), ``inputs()``, ``reference(*args)``, ``OUTPUTS``
(positions of the results among the arguments), ``ATOL``, and optionally ``RUN_CONFIG`` (compile options).
"""

from __future__ import annotations

import importlib
import pkgutil
from types import ModuleType

import pypto_lib.examples


def example_names() -> list[str]:
    """``group.program`` of every example, sorted."""
    root = pypto_lib.examples
    found = []
    for info in pkgutil.walk_packages(root.__path__, root.__name__ + "."):
        if not info.ispkg:
            found.append(info.name.removeprefix(root.__name__ + "."))
    return sorted(found)


def load_example(name: str) -> ModuleType:
    """The module of an example; ``ValueError`` with the known names for another one."""
    if name not in example_names():
        raise ValueError(f"no example '{name}'; known: {', '.join(example_names())}")
    return importlib.import_module(f"pypto_lib.examples.{name}")


def select(names: list[str]) -> list[str]:
    """Examples named fully, by program, or by group; all when ``names`` is empty."""
    known = example_names()
    if not names:
        return known
    chosen = []
    for name in names:
        matches = [k for k in known if name in (k, k.split(".")[-1], k.split(".")[0])]
        if not matches:
            raise ValueError(f"no example or group '{name}'; known groups: {sorted({k.split('.')[0] for k in known})}")
        chosen += [m for m in matches if m not in chosen]
    return chosen
