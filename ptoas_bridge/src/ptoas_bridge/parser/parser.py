"""Structure of `.pto` text: modules, functions, regions, operations, attributes, locations."""

from __future__ import annotations

import re

from ..dialect.enums import ENUMS, EnumAttr, SymbolRef
from ..dialect.ir import Function, Module, Operation, Region, Value
from ..dialect.table import REGISTRY
from ..dialect.types import Type
from ..errors import AssemblerError
from .lexer import Source
from .type_parser import TypeParser, TypeSyntaxError

_ATTRIBUTE = re.compile(r"#pto(?:\.([\w.]+)\s*<\s*([\w\-]*)\s*>|\s*<\s*([\w.]+)\s*<?\s*([\w\-]+)\s*>?\s*>)$", re.S)
_ARCH = re.compile(r"pto\.target_arch\"?\s*=\s*\"([^\"]*)\"")
_ARCH_NAMES = {"a2": "a3", "a3": "a3", "a2a3": "a3", "a5": "a5"}

_TILE_STARTS = [[word] for word in ("vec", "mat", "left", "right", "acc", "bias", "scaling")]


def resolve_arch(text: str, arch: str | None) -> str:
    """The target: the given one, else the module attribute, else `a3`. It must be known before types are parsed."""
    if arch is None:
        found = _ARCH.search(text)
        arch = found.group(1) if found else "a3"
        return _ARCH_NAMES.get(arch.lower(), "a3")
    known = _ARCH_NAMES.get(arch.lower())
    if known is None:
        raise AssemblerError(f"invalid --pto-arch='{arch}'. Expected 'a2', 'a3', or 'a5'.", stage="options")
    return known


def parse_module(text: str, *, arch: str | None = None, filename: str = "<pto>") -> Module:
    """Parse a whole file. Raises AssemblerError at the first mistake."""
    return Parser(text, resolve_arch(text, arch), filename).module()


class Parser:
    """A recursive-descent parser over a token list; `i` is the index of the next token."""

    def __init__(self, text: str, arch: str, filename: str):
        from . import generic_syntax  # needs the operation syntax, which needs this module

        self.syntax = generic_syntax.SYNTAX
        self.source = Source(text, filename)
        self.tokens = self.source.tokens()
        self.i = 0
        self.types = TypeParser(arch)
        self.values: dict[str, Value] = {}
        self.scope: list[str] = []
        self.ir = Module(arch, self.source)

    # --- errors and token helpers -------------------------------------------------------------------------------

    def error(self, message: str, at: int | None = None, *, shift: int = 0, hint: str = "") -> AssemblerError:
        """An error at token `at` (default: the next token)."""
        return self.source.error(self.i if at is None else at, message, shift=shift, hint=hint)

    def take(self) -> str:
        """The next token, consumed."""
        token = self.tokens[self.i]
        self.i += 1
        return token

    def accept(self, token: str) -> bool:
        """Consume the next token if it is `token`."""
        if self.tokens[self.i] == token:
            self.i += 1
            return True
        return False

    def expect(self, token: str) -> None:
        """Consume `token` or fail."""
        if self.tokens[self.i] != token:
            got = self.tokens[self.i] or "end of file"
            raise self.error(f"expected '{token}', got '{got}'")
        self.i += 1

    # --- module and functions -----------------------------------------------------------------------------------

    def module(self) -> Module:
        """The whole file; a file of bare functions gets an implicit module."""
        self.aliases()
        while self.tokens[self.i]:
            self.top_level(self.ir.attrs)
            self.aliases()
        return self.ir

    def aliases(self) -> None:
        """`#loc1 = loc(...)` lines, which may stand before or after the module."""
        while self.tokens[self.i].startswith("#") and self.tokens[self.i + 1] == "=":
            name = self.take()
            self.i += 1
            payload = self.location()
            if payload is None:
                raise self.error("expected loc(...) after the alias")
            self.ir.loc_aliases[name] = payload

    def top_level(self, attrs: dict) -> None:
        token = self.tokens[self.i]
        if token in ("module", "builtin.module"):
            self.i += 1
            if self.tokens[self.i].startswith("@"):
                self.i += 1
            inner = {}
            if self.accept("attributes"):
                inner = self.attr_dict({})
            attrs.update(inner)
            self.expect("{")
            while not self.accept("}"):
                self.top_level(attrs)
            self.location()
        elif token == "func.func":
            self.function()
        elif not token:
            raise self.error("expected '}' before the end of the file")
        else:
            raise self.error(f"expected 'module' or 'func.func', got '{token}'")

    def function(self) -> None:
        """`func.func [private] @name(args) [-> types] [attributes {...}] [{ body }]`."""
        at = self.i
        self.i += 1
        private = False
        if self.tokens[self.i] in ("private", "public", "nested"):
            private = self.take() == "private"
        name = self.tokens[self.i]
        if not name.startswith("@"):
            raise self.error("expected a function name such as @kernel")
        self.i += 1
        fn = Function(name[1:].strip('"'), at)
        fn.private = private
        if self.ir.function(fn.name) is not None:
            raise self.error(f"redefinition of symbol named '{fn.name}'", at)
        self.values, self.scope = {}, []
        self.expect("(")
        while not self.accept(")"):
            if self.tokens[self.i].startswith("%"):
                name_at = self.i
                arg_name = self.take()
                self.expect(":")
                value = self.define(arg_name, self.type(), None, name_at)
            else:
                value = Value(f"%{len(fn.args)}", self.type())
            fn.args.append(value)
            if self.tokens[self.i] == "{":
                self.attr_dict({})
            self.location()
            if not self.accept(","):
                self.expect(")")
                break
        if self.accept("->"):
            fn.result_types = self.type_list()
        if self.accept("attributes"):
            fn.attrs = self.attr_dict({"pto.kernel_kind": "kernel_kind"})
        if self.accept("{"):
            fn.body = Region(fn.args)
            self.operations(fn.body.ops)
            self.expect("}")
            if not fn.body.ops or fn.body.ops[-1].name != "func.return":
                raise self.error(f"function '@{fn.name}' must end with 'return'", self.i - 1)
        elif not private:
            raise self.error(f"function '@{fn.name}' needs a body (only private declarations have none)")
        fn.loc = self.location()
        self.ir.functions.append(fn)

    # --- operations ---------------------------------------------------------------------------------------------

    def operations(self, ops: list[Operation]) -> None:
        """Operations up to the closing brace of the region (which is left for the caller)."""
        tokens, syntax, registry = self.tokens, self.syntax, REGISTRY
        while True:
            token = tokens[self.i]
            if token == "}":
                return
            names = None
            if token and token[0] == "%":
                names = self.result_names()
                token = tokens[self.i]
            at = self.i
            if not token:
                raise self.error("expected '}' before the end of the file")
            if token[0] == '"':
                op = Operation(token[1:-1], registry.get(token[1:-1]), at)
                if op.spec is None:
                    raise self.error(f"custom op '{op.name}' is unknown")
                op.name = op.spec.name
                self.i += 1
                result_types = syntax["generic"](self, op)
            else:
                spec = registry.get(token)
                if spec is None:
                    raise self.error(self._unknown(token))
                op = Operation(spec.name, spec, at)
                self.i += 1
                result_types = syntax[spec.form](self, op)
            if names is not None:
                self.bind(names, op, result_types or ())
            if tokens[self.i].startswith("loc"):
                op.loc = self.location()
            ops.append(op)

    @staticmethod
    def _unknown(token: str) -> str:
        if token.startswith("^"):
            return "regions with several blocks are not supported: use scf.if, scf.for and scf.while"
        if re.match(r"[A-Za-z]", token):
            return f"custom op '{token}' is unknown"
        return f"expected an operation, got '{token}'"

    def result_names(self) -> list[tuple[str, int, int]]:
        """`%a, %b:2 =` as (name, count, token index)."""
        names = []
        while True:
            at = self.i
            name = self.take()
            if not name.startswith("%"):
                raise self.error("expected a value name such as %x", at)
            count = 1
            if self.accept(":"):
                count = self.integer()
            names.append((name, count, at))
            if not self.accept(","):
                break
        self.expect("=")
        return names

    def bind(self, names: list[tuple[str, int, int]], op: Operation, types: list[Type] | tuple) -> None:
        """Create the results of `op` under the given names."""
        wanted = sum(count for _, count, _ in names)
        if wanted != len(types):
            raise self.error(f"operation defines {len(types)} results but was provided {wanted} to bind", names[0][2])
        at = 0
        for name, count, where in names:
            for part in range(count):
                label = name if count == 1 else f"{name}#{part}"
                op.results.append(self.define(label, types[at], op, where))
                at += 1
            if count > 1:
                self.values[name] = op.results[at - count]
                self.scope.append(name)

    def define(self, name: str, type_: Type, owner: Operation | None, at: int) -> Value:
        """A new SSA value, visible to the end of the current region."""
        if name in self.values:
            raise self.error(f"redefinition of SSA value '{name}'", at)
        value = self.values[name] = Value(name, type_, owner)
        self.scope.append(name)
        return value

    def region(self, args: list[tuple[str, Type, int]] | tuple = (), *, labelled: bool = False) -> Region:
        """`{ ops }` with the block arguments `args` (name, type, token index), or those of its own label."""
        self.expect("{")
        mark = len(self.scope)
        if labelled and self.tokens[self.i].startswith("^"):
            args = self._label()
        region = Region([self.define(name, type_, None, at) for name, type_, at in args])
        self.operations(region.ops)
        self.expect("}")
        for name in self.scope[mark:]:
            del self.values[name]
        del self.scope[mark:]
        return region

    def _label(self) -> list[tuple[str, Type, int]]:
        """`^bb0(%a : T, ...):`"""
        self.i += 1
        args = []
        if self.accept("("):
            while not self.accept(")"):
                at = self.i
                name = self.take()
                self.expect(":")
                args.append((name, self.type(), at))
                if not self.accept(","):
                    self.expect(")")
                    break
        self.expect(":")
        return args

    def use(self) -> Value:
        """The value the next token names."""
        token = self.tokens[self.i]
        value = self.values.get(token)
        if value is None:
            if token.startswith("%"):
                raise self.error(f"use of undeclared SSA value name '{token}'")
            raise self.error(f"expected SSA operand, got '{token or 'end of file'}'")
        self.i += 1
        value.uses += 1
        return value

    def uses(self, close: str) -> list[Value]:
        """Comma-separated values up to `close`, which is consumed."""
        found = []
        if self.accept(close):
            return found
        while True:
            found.append(self.use())
            if not self.accept(","):
                self.expect(close)
                return found

    def check_type(self, value: Value, type_: Type, at: int) -> None:
        """Fail when `value`, named by token `at`, has not the type written for it."""
        if value.type is not type_:
            raise self.error(
                f"use of value '{value.name}' expects different type than prior uses: '{type_}' vs '{value.type}'", at
            )

    def typed(self, values: list[Value], at: int) -> None:
        """`: T, T` for `values`, checked; `at` is the token the error of a mismatch points at."""
        self.expect(":")
        for number, value in enumerate(values):
            if number:
                self.expect(",")
            self.check_type(value, self.type(), at)

    # --- types and attributes -----------------------------------------------------------------------------------

    def type(self) -> Type:
        """The next token(s) as a type."""
        token = self.tokens[self.i]
        found = self.types.cache.get(token)
        if found is not None:
            self.i += 1
            return found
        at = self.i
        try:
            if token == "<":
                return self._short_type(at)
            self.i += 1
            return self.types.parse(token)
        except TypeSyntaxError as problem:
            shift = max(token.find(problem.fragment), 0) if problem.fragment else 0
            raise self.error(problem.message, at, shift=shift) from None

    def _short_type(self, at: int) -> Type:
        """`<f32>`, `<loc=vec, ...>`: a pointer or tile whose prefix the operation's grammar already knows."""
        self.i += 1
        parts: list[str] = []
        while self.tokens[self.i] not in (">", ""):
            parts.append(self.take())
        self.expect(">")
        name = "tile_buf" if parts[:2] == ["loc", "="] or parts[:1] in _TILE_STARTS else "ptr"
        return self.types.parse_named(name, "".join(parts))

    def type_list(self) -> list[Type]:
        """`T`, `(T, T)` or `()`."""
        if not self.accept("("):
            return [self.type()]
        found = []
        if self.accept(")"):
            return found
        while True:
            found.append(self.type())
            if not self.accept(","):
                self.expect(")")
                return found

    def integer(self) -> int:
        """A decimal or hexadecimal integer."""
        token = self.tokens[self.i]
        try:
            value = int(token, 16 if "0x" in token else 10)
        except ValueError:
            raise self.error(f"expected an integer, got '{token}'") from None
        self.i += 1
        return value

    def attr_dict(self, kinds: dict[str, str]) -> dict:
        """`{key = value, unit, ...}`; `kinds` names the enumeration (or primitive) expected under a key."""
        self.expect("{")
        attrs: dict = {}
        while not self.accept("}"):
            key_at = self.i
            key = self.take().strip('"')
            if not re.match(r"[A-Za-z_]", key):
                raise self.error("expected an attribute name", key_at)
            if key in attrs:
                raise self.error(f"duplicate key '{key}' in dictionary attribute", key_at)
            attrs[key] = self.attr_value(kinds.get(key)) if self.accept("=") else True
            if not self.accept(","):
                self.expect("}")
                break
        return attrs

    def attr_value(self, kind: str | None = None):
        """One attribute value; `kind` is an enumeration name, a primitive (int, bool, str, symbol) or None."""
        at = self.i
        token = self.tokens[self.i]
        value = self._attr_value(kind, token)
        if kind is None:
            return value
        wanted = {"int": int, "bool": bool, "str": str, "symbol": SymbolRef}.get(kind, EnumAttr)
        matches = isinstance(value, wanted) and not (wanted is int and isinstance(value, bool))
        if not matches or (wanted is EnumAttr and value.kind != kind):
            what = {"int": "an integer", "bool": "true or false", "str": "a string", "symbol": "a symbol"}.get(
                kind, f"#pto.{kind}<...>"
            )
            raise self.error(f"expected {what}, got '{token}'", at)
        return value

    def _attr_value(self, kind: str | None, token: str):
        if token.startswith("#"):
            return self.enum_token()
        if token == "<" and kind in ENUMS:
            return self.enum(kind)
        if token in ("true", "false"):
            self.i += 1
            return token == "true"
        if token.startswith('"'):
            self.i += 1
            return token[1:-1]
        if token.startswith("@"):
            self.i += 1
            return SymbolRef(token[1:].strip('"'))
        if re.match(r"-?\d", token):
            self.i += 1
            value = float(token) if re.search(r"[.]|[eE]", token) and "0x" not in token else int(token, 0)
            if self.accept(":"):
                self.type()
            return value
        if token == "[":
            self.i += 1
            items = []
            while not self.accept("]"):
                items.append(self.attr_value())
                if not self.accept(","):
                    self.expect("]")
                    break
            return items
        if token.startswith("array"):
            self.i += 1
            return [int(n) for n in re.findall(r"-?\d+", token.partition(":")[2])]
        if token and (token[0] == "!" or token in self.types.cache):
            return self.type()
        raise self.error(f"expected attribute value, got '{token}'")

    def enum_token(self) -> EnumAttr:
        """A complete `#pto.kind<value>` or `#pto<kind value>` token."""
        token = self.tokens[self.i]
        match = _ATTRIBUTE.match(token)
        if match is None:
            raise self.error(f"unknown attribute '{token}'")
        kind, value = (match.group(1), match.group(2)) if match.group(1) else (match.group(3), match.group(4))
        return self._enum_value(kind, value)

    def enum(self, kind: str) -> EnumAttr:
        """An enumeration of a known kind in any spelling: `#pto.kind<v>`, `#pto<kind v>`, `<v>`."""
        if self.tokens[self.i].startswith("#"):
            at = self.i
            found = self.enum_token()
            if found.kind != kind:
                raise self.error(f"expected #pto.{kind}<...>, got '{found}'", at)
            return found
        self.expect("<")
        found = self._enum_value(kind, self.tokens[self.i])
        self.expect(">")
        return found

    def _enum_value(self, kind: str, value: str) -> EnumAttr:
        known = ENUMS.get(kind)
        if known is None:
            raise self.error(f"unknown attribute '#pto.{kind}'")
        if value not in known:
            raise self.error(f"unknown value '{value}' of #pto.{kind}; expected one of {', '.join(known)}")
        self.i += 1
        return EnumAttr(kind, value)

    # --- locations ----------------------------------------------------------------------------------------------

    def location(self) -> str | None:
        """An optional trailing `loc(...)`; the payload between its parentheses."""
        token = self.tokens[self.i]
        if not token.startswith("loc"):
            return None
        if len(token) > 3:
            self.i += 1
            return token[4:-1]
        self.i += 1
        self.expect("(")
        parts, depth = [], 1
        while True:
            part = self.take()
            if not part:
                raise self.error("expected ')' at the end of loc(...)", self.i - 1)
            depth += (part == "(") - (part == ")")
            if depth == 0:
                break
            parts.append(part)
        return "".join(parts)
