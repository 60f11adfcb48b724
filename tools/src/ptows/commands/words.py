"""Commands whose values are the words of the command line.

Newer versions of typer convert every value, text to text too, with a validation library whose import takes longer than
looking at fifty checkouts. Words and untouched defaults need no conversion; everything else still gets typer's.
"""

from __future__ import annotations

from typing import Any

from typer.core import TyperCommand, TyperGroup


class WordCommand(TyperCommand):
    """A command whose options and arguments are text, flags, or numbers with a default."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        for parameter in self.get_params(ctx):
            _keep_words(parameter)
        return super().parse_args(ctx, args)


class WordGroup(TyperGroup):
    """A group of commands, for its own options."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        for parameter in self.get_params(ctx):
            _keep_words(parameter)
        return super().parse_args(ctx, args)


def _keep_words(parameter: Any) -> None:
    convert = parameter.process_value
    is_text = not isinstance(parameter.default, (bool, int))

    def process(context: Any, value: Any) -> Any:
        is_absent = value is None or value == () or value == parameter.default
        words = value if isinstance(value, (list, tuple)) else (value,)
        is_words = is_text and bool(words) and all(isinstance(word, str) for word in words)
        if not is_words and (not is_absent or parameter.required):
            return convert(context, value)
        return parameter.callback(context, parameter, value) if parameter.callback is not None else value

    parameter.process_value = process
