"""Shared helpers of the language tests: statements of a function, text to function, expected errors."""

from __future__ import annotations

from typing import Any

import pypto.language as pl
import pytest

from pypto import ir


def statements(function: ir.Function) -> list[ir.Stmt]:
    """The top-level statements of a function."""
    return ir.flatten_to_stmts(function.body)


def body(text: str, params: str = "x: pl.Tensor[[64, 64], pl.FP32]", result: str = "") -> ir.Function:
    """A function ``f`` with these parameters whose body is ``text``."""
    indented = "\n".join(f"    {line}" for line in text.strip("\n").split("\n"))
    return pl.parse(f"@pl.function\ndef f({params}){' -> ' + result if result else ''}:\n{indented}\n")


def rejected(error: type[Exception], message: str, text: str, **options: Any) -> Exception:
    """Parse a body that must fail; returns the error for further checks."""
    with pytest.raises(error, match=message) as info:
        body(text, **options)
    return info.value


def round_trip(node: Any) -> None:
    """Printing and parsing again gives an equal node."""
    from pypto.ir.printer import python_print
    from pypto.ir.structural import assert_structural_equal

    assert_structural_equal(pl.parse(python_print(node, format=False)), node)
