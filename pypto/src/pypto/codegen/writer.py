"""What the generators share: lines with indentation, unique names, names that C++ accepts."""

from __future__ import annotations

from contextlib import contextmanager

#: Words that can name neither a variable nor a function of generated C++.
# fmt: off
CPP_WORDS = frozenset({
    "alignas", "alignof", "and", "and_eq", "asm", "auto", "bitand", "bitor", "bool", "break", "case", "catch",
    "char", "class", "compl", "concept", "const", "constexpr", "const_cast", "continue", "decltype", "default",
    "delete", "do", "double", "dynamic_cast", "else", "enum", "explicit", "export", "extern", "false", "float",
    "for", "friend", "goto", "if", "inline", "int", "long", "mutable", "namespace", "new", "noexcept", "not",
    "not_eq", "nullptr", "operator", "or", "or_eq", "private", "protected", "public", "register",
    "reinterpret_cast", "requires", "return", "short", "signed", "sizeof", "static", "static_assert",
    "static_cast", "struct", "switch", "template", "this", "thread_local", "throw", "true", "try", "typedef",
    "typeid", "typename", "union", "unsigned", "using", "virtual", "void", "volatile", "wchar_t", "while",
    "xor", "xor_eq", "int8_t", "int16_t", "int32_t", "int64_t", "uint8_t", "uint16_t", "uint32_t",
    "uint64_t", "size_t", "main", "std",
})
_KERNEL_WORDS = CPP_WORDS | {"half", "bfloat16_t", "pto", "kernel_entry", "ChipTensor"}
# fmt: on


def kernel_symbol(name: str) -> str:
    """Name of a kernel in ``.pto`` and C++: its own, unless C++ or the kernel headers mean something else by it."""
    return f"{name}_kernel" if name in _KERNEL_WORDS else name


class Writer:
    """Collects lines; ``indent`` counts spaces."""

    def __init__(self, indent: int = 0):
        self.lines: list[str] = []
        self.indent = indent

    def line(self, text: str = "") -> None:
        self.lines.append(" " * self.indent + text if text else "")

    @contextmanager
    def indented(self, spaces: int):
        self.indent += spaces
        try:
            yield
        finally:
            self.indent -= spaces

    def text(self) -> str:
        return "".join(f"{line}\n" for line in self.lines)


class NameTable:
    """Names taken in one function."""

    def __init__(self) -> None:
        self.taken: set[str] = set()

    def claim(self, wanted: str) -> bool:
        """Take ``wanted`` if it is free."""
        if wanted in self.taken:
            return False
        self.taken.add(wanted)
        return True

    def suffixed(self, wanted: str) -> str:
        """``wanted``, or ``wanted_1``, ``wanted_2``, ..."""
        name, number = wanted, 0
        while not self.claim(name):
            number += 1
            name = f"{wanted}_{number}"
        return name
