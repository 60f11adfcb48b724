"""The operation table, part three: the operations accepted from the arith, scf, func and builtin dialects."""

from __future__ import annotations

from .spec import op

INTEGER_BINARY = [
    "addi",
    "subi",
    "muli",
    "divsi",
    "divui",
    "remsi",
    "remui",
    "ceildivsi",
    "ceildivui",
    "floordivsi",
    "maxsi",
    "minsi",
    "maxui",
    "minui",
    "andi",
    "ori",
    "xori",
    "shli",
    "shrsi",
    "shrui",
]
FLOAT_BINARY = ["addf", "subf", "mulf", "divf", "remf", "maximumf", "minimumf", "maxnumf", "minnumf"]
WIDE_RESULT = ["addui_extended", "mulsi_extended", "mului_extended"]
CASTS = [
    "index_cast",
    "index_castui",
    "bitcast",
    "extf",
    "truncf",
    "extsi",
    "extui",
    "trunci",
    "sitofp",
    "uitofp",
    "fptosi",
    "fptoui",
]

INT_PREDICATES = ["eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge"]
FLOAT_PREDICATES = [
    "false",
    "oeq",
    "ogt",
    "oge",
    "olt",
    "ole",
    "one",
    "ord",
    "ueq",
    "ugt",
    "uge",
    "ult",
    "ule",
    "une",
    "uno",
    "true",
]

op("arith.constant", form="constant", results=1)
for _name in INTEGER_BINARY + FLOAT_BINARY:
    op("arith." + _name, "lhs rhs", form="arith_binary", results=1)
op("arith.negf", "value", form="arith_unary", results=1)
for _name in WIDE_RESULT:
    op("arith." + _name, "lhs rhs", form="arith_wide", results=2)
for _name in CASTS:
    op("arith." + _name, "value", form="arith_cast", results=1)
op("arith.cmpi", "lhs rhs", form="compare", results=1)
op("arith.cmpf", "lhs rhs", form="compare", results=1)
op("arith.select", "condition true_value false_value", form="select", results=1)
op("builtin.unrealized_conversion_cast", "value", form="arith_cast", results=1)

op("scf.for", form="scf_for")
op("scf.if", form="scf_if")
op("scf.while", form="scf_while")
op("scf.execute_region", form="scf_execute")
op("scf.index_switch", form="scf_switch")
op("scf.yield", form="yield")
op("scf.condition", form="condition")
op("func.return", form="yield")
op("func.call", form="call")
