"""YAML text to plain nodes that know their line and position, refusing every construct a manifest does not need.

Only the event stream of the parser is used: nothing is constructed, so tags can run no code. Anchors, aliases and
tags are refused, which also makes every value's text the one place to edit.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ptows.errors import ManifestError, Problem

MAX_BYTES = 1 << 20
MAX_DEPTH = 32
MAX_NODES = 100_000


@dataclass
class Node:
    """A scalar (``text``), a list (``items``) or a map (``entries``: key to (key node, value node))."""

    kind: str
    file: str
    line: int
    start: int = 0
    end: int = 0
    text: str = ""
    #: what YAML reads the scalar as: str, int, float, bool, null, timestamp
    type: str = "str"
    items: list[Node] = field(default_factory=list)
    entries: dict[str, tuple[Node, Node]] = field(default_factory=dict)

    def describe(self) -> str:
        """The value in words, for messages."""
        if self.kind == "map":
            return "a map"
        if self.kind == "list":
            return "a list"
        if self.type == "null":
            return "nothing"
        return f"'{self.text}'" if len(self.text) <= 60 else f"'{self.text[:57]}...'"

    def get(self, key: str) -> Node | None:
        """The value node under ``key`` of a map."""
        pair = self.entries.get(key)
        return pair[1] if pair else None


def parse(data: bytes, file: str) -> Node:
    """The root map of ``data``.

    Raises:
        ManifestError: not UTF-8, not YAML, too large, too deep, or using anchors, aliases, tags or duplicate keys.
    """
    if len(data) > MAX_BYTES:
        hint = f"a manifest may have {MAX_BYTES} bytes"
        raise ManifestError([Problem(file, 1, f"the file has {len(data)} bytes", hint)])
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise ManifestError([Problem(file, line, "the file is not UTF-8 text", "save it as UTF-8")]) from None
    return _Builder(text, file).build()


class _Builder:
    """Turns the parser's events into nodes, with a budget."""

    def __init__(self, text: str, file: str) -> None:
        import yaml

        self.yaml = yaml
        self.file = file
        self.text = text
        self.left = MAX_NODES
        self.loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        self.resolvers = yaml.SafeLoader.yaml_implicit_resolvers

    def fail(self, event: Any, what: str, hint: str = "") -> ManifestError:
        return ManifestError([Problem(self.file, event.start_mark.line + 1, what, hint)])

    def build(self) -> Node:
        yaml = self.yaml
        try:
            self.events = iter(yaml.parse(self.text, Loader=self.loader))
            root = None
            for event in self.events:
                if isinstance(event, yaml.DocumentStartEvent):
                    if root is not None:
                        raise self.fail(event, "a second document starts", "a manifest is one YAML document")
                    root = self.node(next(self.events), 0)
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            what = f"not valid YAML: {error.problem or error.context}"
            raise ManifestError([Problem(self.file, mark.line + 1 if mark else 1, what)]) from None
        except yaml.YAMLError as error:
            position = getattr(error, "position", 0) or 0
            line = self.text[:position].count("\n") + 1
            what = f"not valid YAML: {getattr(error, 'reason', '') or error}"
            raise ManifestError([Problem(self.file, line, what)]) from None
        if root is None:
            raise ManifestError([Problem(self.file, 1, "the file is empty", "it starts with 'workspace: 1'")])
        if root.kind != "map":
            what = f"expected a map of keys at the top, found {root.describe()}"
            raise ManifestError([Problem(self.file, root.line, what, "it starts with 'workspace: 1'")])
        return root

    def node(self, event: Any, depth: int) -> Node:
        yaml = self.yaml
        self.left -= 1
        if self.left < 0:
            raise self.fail(event, f"more than {MAX_NODES} values", "split the manifest with 'imports'")
        if depth > MAX_DEPTH:
            raise self.fail(event, f"nested more than {MAX_DEPTH} levels deep", "no key needs that")
        if isinstance(event, yaml.AliasEvent):
            raise self.fail(event, f"alias '*{event.anchor}'", "write the value out; aliases are not allowed here")
        if event.anchor is not None:
            raise self.fail(event, f"anchor '&{event.anchor}'", "remove it; anchors are not allowed here")
        if event.tag is not None:
            raise self.fail(event, f"tag '{event.tag}'", "remove it; tags are not allowed here")
        place = {"file": self.file, "line": event.start_mark.line + 1, "start": event.start_mark.index}
        if isinstance(event, yaml.ScalarEvent):
            is_plain = event.implicit[0] and not event.style
            kind = self.type_of(event.value) if is_plain else "str"
            return Node("scalar", end=event.end_mark.index, text=event.value, type=kind, **place)
        if isinstance(event, yaml.SequenceStartEvent):
            items = []
            while not isinstance(event := next(self.events), yaml.SequenceEndEvent):
                items.append(self.node(event, depth + 1))
            return Node("list", end=event.end_mark.index, items=items, **place)
        entries: dict[str, tuple[Node, Node]] = {}
        while not isinstance(event := next(self.events), yaml.MappingEndEvent):
            key = self.node(event, depth + 1)
            if key.kind != "scalar":
                raise self.fail(event, f"{key.describe()} used as a key", "keys are words")
            if key.text == "<<":
                raise self.fail(event, "merge key '<<'", "write the values out; merging is not allowed here")
            if key.text in entries:
                first = entries[key.text][0].line
                raise self.fail(event, f"duplicate key '{key.text}'", f"first used on line {first}")
            entries[key.text] = (key, self.node(next(self.events), depth + 1))
        return Node("map", end=event.end_mark.index, entries=entries, **place)

    def type_of(self, text: str) -> str:
        """What YAML 1.1 makes of an unquoted scalar."""
        candidates = self.resolvers.get(text[:1], []) + self.resolvers.get(None, [])
        for tag, pattern in candidates:
            if pattern.match(text):
                return str(tag).rsplit(":", 1)[-1]
        return "str"
