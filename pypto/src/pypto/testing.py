"""For tests: functions that raise each kind of error on purpose, and views of what the compiler declares."""

from __future__ import annotations

import importlib
import os
from typing import Any, NoReturn

from pypto.errors import Error, InternalError, trace_section
from pypto.ir.span import Span


def _text(message: str, *, always_trace: bool = False) -> str:
    if always_trace or os.environ.get("PTO_BACKTRACE") == "1":
        return f"{message}\n\n{trace_section(skip=2)}"
    return message


def raise_value_error(message: str) -> NoReturn:
    raise ValueError(_text(message))


def raise_type_error(message: str) -> NoReturn:
    raise TypeError(_text(message))


def raise_runtime_error(message: str) -> NoReturn:
    raise RuntimeError(_text(message))


def raise_not_implemented_error(message: str) -> NoReturn:
    raise NotImplementedError(_text(message))


def raise_index_error(message: str) -> NoReturn:
    raise IndexError(_text(message))


def raise_generic_error(message: str) -> NoReturn:
    raise Error(_text(message))


def raise_assertion_error(message: str) -> NoReturn:
    raise AssertionError(_text(message, always_trace=True))


def raise_internal_error(message: str) -> NoReturn:
    raise InternalError(message)


def raise_internal_error_with_span(message: str, filename: str, line: int, column: int) -> NoReturn:
    raise InternalError(message, span=Span(filename, line, column))


_KINDS = {
    kind.__name__: kind
    for kind in (
        ValueError, TypeError, RuntimeError, NotImplementedError, IndexError, AssertionError, InternalError, Error,
    )
}  # fmt: skip


def rethrow_with_message(kind: str, original: str, replacement: str) -> NoReturn:
    """Raise the error class named ``kind`` with text ``original`` and give it a new message in flight.

    The class and the original trace are kept.

    Raises:
        ValueError: ``kind`` names none of the error classes of this module.
    """
    cls = _KINDS.get(kind)
    if cls is None:
        raise ValueError(f"unknown kind of error '{kind}', expected one of {', '.join(_KINDS)}")
    try:
        raise cls(original if cls is not AssertionError else _text(original, always_trace=True))
    except cls as error:
        if isinstance(error, InternalError):
            raise error.with_message(replacement) from None
        error.args = (str(error).replace(original, replacement, 1),)
        raise


def get_declared_core_affinity(name: str) -> str | None:
    """The core an operator declares to run on (``"cube"``, ``"vector"``, ...), None when it follows from its use.

    Raises:
        ValueError: there is no operator of this name.
    """
    return _operator(name).core_affinity


def is_no_duplicate_op(name: str) -> bool:
    """True when an operator must not be copied to the second core of a mixed kernel.

    Raises:
        ValueError: there is no operator of this name.
    """
    return _operator(name).no_duplicate


def recognize_dsa_reuse_penalties(function: Any) -> list[dict]:
    """See :func:`pypto.passes.memory.reuse_penalties.recognize_dsa_reuse_penalties`."""
    module = importlib.import_module("pypto.passes.memory.reuse_penalties")
    return module.recognize_dsa_reuse_penalties(function)


def _operator(name: str) -> Any:
    # The operators stand on a higher floor than this module, which tests of every floor import.
    return importlib.import_module("pypto.ops.registry").get_op(name)
