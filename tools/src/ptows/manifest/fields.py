"""Reading typed values out of manifest nodes, collecting every mistake instead of stopping at the first."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ptows.errors import Problem
from ptows.manifest.document import Node
from ptows.manifest.model import suggestion

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
_WORDS = {"on": True, "true": True, "yes": True, "off": False, "false": False, "no": False}


class Problems:
    """The mistakes found so far."""

    def __init__(self) -> None:
        self.found: list[Problem] = []

    def add(self, node: Node, what: str, hint: str = "") -> None:
        self.found.append(Problem(node.file, node.line, what, hint))


class Fields:
    """A map node at ``where`` whose keys are declared: unknown ones are reported when it is made."""

    def __init__(self, node: Node, where: str, allowed: Sequence[str], problems: Problems) -> None:
        self.node = node
        self.where = where
        self.problems = problems
        #: keys that an unknown key was probably meant to be: not reported as missing as well
        self.misspelt: set[str] = set()
        for key, (key_node, _) in node.entries.items():
            if key not in allowed:
                place = f" in {where}" if where else ""
                hint = suggestion(key, allowed)
                problems.add(key_node, f"unknown key '{key}'{place}", hint)
                self.misspelt |= {word for word in allowed if hint == f"did you mean '{word}'?"}

    def path(self, key: str) -> str:
        return f"{self.where}.{key}" if self.where else key

    def has(self, key: str) -> bool:
        return key in self.node.entries

    def value(self, key: str) -> Node | None:
        return self.node.get(key)

    def missing(self, key: str, hint: str) -> None:
        if key not in self.misspelt:
            place = f" in {self.where}" if self.where else ""
            self.problems.add(self.node, f"missing key '{key}'{place}", hint)

    def text(self, key: str, *, example: str, required: bool = False) -> str:
        """Text under ``key``; "" when absent or wrong. ``example`` shows what would be right."""
        node = self.value(key)
        if node is None:
            if required:
                self.missing(key, f"for example {key}: {example}")
            return ""
        return scalar_text(node, self.path(key), example, self.problems)

    def choice(self, key: str, allowed: Sequence[str], default: str) -> str:
        node = self.value(key)
        if node is None:
            return default
        text = scalar_text(node, self.path(key), allowed[0], self.problems)
        if text and text not in allowed:
            self.problems.add(node, f"{self.path(key)} is '{text}'", suggestion(text, allowed))
        return text if text in allowed else default

    def flag(self, key: str, default: bool) -> bool:
        node = self.value(key)
        if node is None:
            return default
        answer = word_flag(node)
        if answer is None:
            self.problems.add(node, f"{self.path(key)} must be on or off, found {node.describe()}", "write on or off")
        return default if answer is None else answer

    def whole(self, key: str, least: int) -> int | None:
        """A whole number of at least ``least``, or None when absent or wrong."""
        node = self.value(key)
        if node is None:
            return None
        if node.kind != "scalar" or not re.fullmatch(r"[0-9]{1,9}", node.text) or int(node.text) < least:
            what = f"{self.path(key)} must be a whole number from {least}, found {node.describe()}"
            self.problems.add(node, what, f"for example {key}: {max(least, 1)}")
            return None
        return int(node.text)

    def names(self, key: str, example: str) -> list[tuple[Node, str]]:
        """A list of names, each with its node."""
        node = self.value(key)
        if node is None:
            return []
        if node.kind != "list":
            self.problems.add(node, f"{self.path(key)} must be a list, found {node.describe()}", f"write [{example}]")
            return []
        found: list[tuple[Node, str]] = []
        for item in node.items:
            text = scalar_text(item, f"an item of {self.path(key)}", example, self.problems)
            if text in {name for _, name in found}:
                self.problems.add(item, f"'{text}' twice in {self.path(key)}", "remove one")
            elif text:
                found.append((item, text))
        return found

    def maps(self, key: str) -> Iterator[tuple[str, Node, Node]]:
        """(name, key node, map node) of each member of a map of maps."""
        node = self.value(key)
        if node is None or (node.kind == "scalar" and node.type == "null"):
            return
        if node.kind != "map":
            hint = "write one name per line, each with its keys"
            self.problems.add(node, f"{self.path(key)} must be a map of names, found {node.describe()}", hint)
            return
        for name, (key_node, value) in node.entries.items():
            if not _NAME.fullmatch(name):
                hint = "names have letters, digits, '_', '-' and '.'"
                self.problems.add(key_node, f"'{name}' cannot be a name in {self.path(key)}", hint)
            elif value.kind != "map":
                what = f"{self.path(key)}.{name} must be a map of keys, found {value.describe()}"
                self.problems.add(value, what, f"write {name}: {{...}}")
            else:
                yield name, key_node, value


def word_flag(node: Node) -> bool | None:
    """on/off, true/false, yes/no as a boolean; None for anything else."""
    return _WORDS.get(node.text.lower()) if node.kind == "scalar" else None


def scalar_text(node: Node, where: str, example: str, problems: Problems) -> str:
    """The text of a scalar, refusing what other YAML readers would turn into a number, date or boolean."""
    if node.kind != "scalar" or node.type == "null" or not node.text.strip():
        problems.add(node, f"{where} must be text, found {node.describe()}", f"for example {example}")
        return ""
    if node.type != "str":
        problems.add(node, f"{where} is read by YAML as {_KIND[node.type]}", f'put it in quotes: "{node.text}"')
        return ""
    return node.text


_KIND = {
    "int": "a number",
    "float": "a number",
    "bool": "a boolean",
    "timestamp": "a date",
    "merge": "a merge key",
    "value": "a default value",
}
