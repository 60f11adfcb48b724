"""The text of kernel files as the compile cache sees it; light, as a program from the store needs no compiler."""

from __future__ import annotations

import re

ENTRY_MARKER = "// --- Kernel entry point ---"

_KERNEL_NAME = re.compile(r"^// Kernel Function: (\S+)", re.MULTILINE)
_LOCAL_NAME = re.compile(r"// (?:Unpack \w+|Extract dynamic dim): (\S+)")
_TOKEN = re.compile(r'"(?:\\.|[^"\\\n])*"|//[^\n]*|[A-Za-z_]\w*')


def canonical_kernel(text: str) -> str:
    """The text of a kernel file without comments, its own names (of the kernel, of its parameters) numbered.

    Kernels with equal canonical text compile to equal libraries, since a library exports only ``kernel_entry``. A
    text that was not written by :func:`kernel_file` is returned as it is.
    """
    body, marker, entry = text.partition(ENTRY_MARKER)
    kernel = _KERNEL_NAME.search(body)
    if not marker or kernel is None:
        return text
    names: dict[str, str] = {}
    if len(re.findall(rf"\b{re.escape(kernel[1])}\(", text)) == 2:  # defined once and called once: nothing else's name
        names[kernel[1]] = "kernel_0"
    own = dict(names)
    for number, name in enumerate(dict.fromkeys(_LOCAL_NAME.findall(entry))):
        for suffix in ("", "_tensor", "_conv"):
            own[name + suffix] = f"local_{number}{suffix}"
    return _renamed(body, names) + marker + _renamed(entry, own)


def _renamed(code: str, names: dict[str, str]) -> str:
    def token(found: re.Match) -> str:
        word = found[0]
        return "" if word.startswith("//") else names.get(word, word)

    return _TOKEN.sub(token, code)
