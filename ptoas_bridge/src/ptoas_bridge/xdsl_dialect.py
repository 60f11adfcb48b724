"""The PTO dialect for xDSL, derived from the operation table and the type and attribute names of this package.

xDSL's own text parser is too slow for whole models, so the assembler reads `.pto` text itself. This module gives
the same program to everything built on xDSL (generic parser and printer, verification, pattern rewriting, other
backends): `to_xdsl` converts a parsed module, and the registered operations follow the one operation table.
Importing it loads xDSL, which the assembler itself never does.

Every PTO operation has three operand segments: `ins`, `outs`, and `named` for operands that a keyword introduces
(`addr = %a`, `offsets = [...]`, `fp %f`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.arith import Arith
from xdsl.dialects.builtin import Builtin, ModuleOp, StringAttr
from xdsl.dialects.func import Func
from xdsl.dialects.scf import Scf
from xdsl.ir import Attribute, Dialect, ParametrizedAttribute, TypeAttribute
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_attr_definition,
    irdl_op_definition,
    var_operand_def,
    var_region_def,
    var_result_def,
)
from xdsl.parser import AttrParser, Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from .dialect.enums import ENUMS
from .dialect.generic_printer import print_generic
from .dialect.ir import Module
from .dialect.table import REGISTRY, OpSpec
from .parser.type_parser import TypeParser, TypeSyntaxError

TYPE_NAMES = (
    "ptr", "tensor_view", "partition_tensor_view", "tile_buf", "multi_tile_buf", "local_array", "struct",
    "eventid_array", "pipe", "async_session", "async_event", "prefetch_async_context", "hif8", "f8E8M0", "f4E1M2x2",
    "f4E2M1x2", "hif8x2", "bf16x2",
)  # fmt: skip


class _Spelled(ParametrizedAttribute):
    """An attribute or type whose parameters are kept as the text between its angle brackets."""

    name: ClassVar[str]
    body: StringAttr

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        if parser.parse_optional_punctuation("<") is None:
            return [StringAttr("")]
        content, start = parser.lexer.input.content, parser.pos
        depth, at = 1, start
        while depth and at < len(content):
            depth += (content[at] == "<") - (content[at] == ">")
            at += 1
        if depth:
            parser.raise_error(f"expected '>' at the end of {cls.name}")
        parser._resume_from(at)
        return [StringAttr(content[start : at - 1].strip())]

    def print_parameters(self, printer: Printer) -> None:
        if self.body.data:
            printer.print_string(f"<{self.body.data}>")


def _make_type(keyword: str) -> type[ParametrizedAttribute]:
    def verify(self) -> None:
        body = f"<{self.body.data}>" if self.body.data else ""
        try:
            TypeParser("a3").parse(f"!pto.{keyword}{body}")
        except TypeSyntaxError as problem:
            raise VerifyException(problem.message) from None

    namespace = {
        "__doc__": f"`!pto.{keyword}`.",
        "__module__": __name__,
        "__annotations__": {"body": StringAttr},
        "name": f"pto.{keyword}",
        "verify": verify,
    }
    name = "Pto" + "".join(part.capitalize() for part in keyword.split("_")) + "Type"
    return irdl_attr_definition(type(name, (_Spelled, TypeAttribute), namespace))


def _make_enum(kind: str) -> type[ParametrizedAttribute]:
    values = ENUMS[kind]

    def verify(self) -> None:
        if self.body.data not in values:
            raise VerifyException(f"unknown value '{self.body.data}' of #pto.{kind}")

    namespace = {
        "__doc__": f"`#pto.{kind}<...>`.",
        "__module__": __name__,
        "__annotations__": {"body": StringAttr},
        "name": f"pto.{kind}",
        "verify": verify,
    }
    name = "Pto" + "".join(part.capitalize() for part in kind.split("_")) + "Attr"
    return irdl_attr_definition(type(name, (_Spelled,), namespace))


def _make_operation(spec: OpSpec) -> type[IRDLOperation]:
    dps = spec.form == "dps"

    def verify_(self) -> None:
        for clause, values, (low, high) in (("ins", self.ins, spec.ins_range), ("outs", self.outs, spec.outs_range)):
            if dps and not low <= len(values) <= high:
                raise VerifyException(
                    f"'{spec.name}' expects {low} to {high} operands in '{clause}', got {len(values)}"
                )
        if not dps and len(self.res) != spec.results:
            raise VerifyException(f"'{spec.name}' expects {spec.results} results, got {len(self.res)}")

    namespace = {
        "__doc__": f"`{spec.name}`, derived from the operation table.",
        "__module__": __name__,
        "name": spec.name,
        "ins": var_operand_def(),
        "outs": var_operand_def(),
        "named": var_operand_def(),
        "res": var_result_def(),
        "regs": var_region_def(),
        "irdl_options": (AttrSizedOperandSegments(as_property=False),),
        "verify_": verify_,
    }
    name = "".join(part.capitalize() for part in spec.name.replace(".", "_").split("_")) + "Op"
    return irdl_op_definition(type(name, (IRDLOperation,), namespace))


OPERATIONS = {name: _make_operation(spec) for name, spec in REGISTRY.items() if name.startswith("pto.")}
TYPES = {keyword: _make_type(keyword) for keyword in TYPE_NAMES}
ATTRIBUTES = {kind: _make_enum(kind) for kind in ENUMS}

PTO = Dialect("pto", list(OPERATIONS.values()), [*TYPES.values(), *ATTRIBUTES.values()])


def pto_context() -> Context:
    """An xDSL context that knows PTO and the dialects its programs use."""
    context = Context()
    for dialect in (Builtin, Arith, Scf, Func, PTO):
        context.load_dialect(dialect)
    return context


def to_xdsl(module: Module) -> ModuleOp:
    """The module as verified xDSL operations."""
    parsed = Parser(pto_context(), print_generic(module)).parse_module()
    parsed.verify()
    return parsed
