"""C++ names of orchestration variables."""

from __future__ import annotations

import re
from contextlib import contextmanager

from pypto.codegen.writer import CPP_WORDS, NameTable
from pypto.ir import DataType

_SUFFIX = re.compile(r"__(?:ssa|idx|iter|rv|phi|tmp)_v\d+$")

#: Words that cannot name a variable: those of C++ and names of the orchestration interface.
_RESERVED = CPP_WORDS | {"orch_args", "alloc_tensors", "rt_submit_task"}

#: Element type -> enumerator of the runtime's ``DataType``.
RUNTIME_DTYPE = {
    DataType.FP32: "FLOAT32",
    DataType.FP16: "FLOAT16",
    DataType.BF16: "BFLOAT16",
    DataType.INT8: "INT8",
    DataType.INT16: "INT16",
    DataType.INT32: "INT32",
    DataType.INT64: "INT64",
    DataType.INDEX: "INT64",
    DataType.UINT8: "UINT8",
    DataType.UINT16: "UINT16",
    DataType.UINT32: "UINT32",
    DataType.UINT64: "UINT64",
    DataType.BOOL: "UINT8",
    DataType.FP8E4M3FN: "FLOAT8_E4M3",
    DataType.FP8E5M2: "FLOAT8_E5M2",
    DataType.FP8E8M0: "FLOAT8_E8M0",
    DataType.HF8: "HIFLOAT8",
    DataType.FP4: "FLOAT4_E2M1X2",
}


def strip_ssa(name: str) -> str:
    """``row__ssa_v0`` -> ``row``."""
    return _SUFFIX.sub("", name)


def ssa_version(name: str) -> int:
    """``row__ssa_v2`` -> 2; names without a version have version 0."""
    found = _SUFFIX.search(name)
    return int(found[0].rpartition("_v")[2]) if found else 0


class VariableNames:
    """Gives each variable the shortest free C++ name."""

    def __init__(self) -> None:
        self._table = NameTable()
        self._table.taken |= _RESERVED

    def claim(self, hint: str) -> str:
        """The name without SSA suffix, with it, or numbered."""
        hint = re.sub(r"\W", "_", hint) or "v"
        base = strip_ssa(hint)
        if base in _RESERVED:
            base = f"{base}_"
        for wanted in (base, hint):
            if self._table.claim(wanted):
                return wanted
        return self._table.suffixed(hint)

    def exact(self, name: str) -> str:
        return self._table.suffixed(name)

    @contextmanager
    def scoped(self, hint: str):
        """A name that is free again afterwards (loop variables)."""
        name = self.claim(hint)
        try:
            yield name
        finally:
            self._table.taken.discard(name)
