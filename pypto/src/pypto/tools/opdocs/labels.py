"""Fixed words of the operator pages, by language."""

from __future__ import annotations

LABELS: dict[str, dict[str, str]] = {
    "en": {
        "operand": "operand", "kind": "kind", "space": "memory", "effect": "effect", "attribute": "attribute",
        "type": "type", "default": "default", "required": "required", "result": "Result", "pto": "PTO",
        "instruction": "Instruction", "backends": "Backends", "torch": "Torch meaning",
        "orchestration": "Orchestration", "notes": "Notes", "level": "Level", "yes": "yes", "no": "no", "none": "none",
        "own": "own lines", "rewritten": "rewritten into tile operators", "becomes": "becomes", "page": "page",
        "operators": "operators", "operator": "operator", "rule": "Type rule", "total": "Total",
        "optional": "optional", "variadic": "any number", "nothing": "none", "in": "in {}",
        "deferred": "in the space an attribute names", "inherited": "in the space of its operand",
        "result_is": "the result is {}", "not_in_place": "the result never shares a buffer with an operand",
        "no_alias": "the result never shares a buffer with {}", "core": "runs on the {} core",
        "no_duplicate": "is never duplicated", "channel": "writes through {}",
        "operand_layouts": "block layouts of the operands: {}", "result_layout": "block layout of the result: {}",
        "index_title": "Operators",
        "index": (
            "One page per module of `pypto/src/pypto/ops`. Every page is made from the operator definitions: the "
            "signatures users write, operands in the order of the IR call with the memory spaces they may lie in and "
            "what happens to them, attributes, the result, and how the operator is printed. An effect with a star "
            "depends on an attribute. Mistakes in the values of a call are `ValueError`, wrong kinds of arguments "
            "`TypeError`; inside a decorated function both become `InvalidOperationError` at the user's line."
        ),
        "status_link": "[Which operator has what](status.md): type rule, PTO text, instruction, torch meaning.",
        "status_title": "Status of the operators",
        "status": (
            "PTO: the operation a call is printed as, or the operator it is rewritten into (`→ custom`: into several). "
            "Instruction: the instruction of the CPU instruction set; `(!)` marks one it does not offer. Torch "
            "meaning: a reference on torch tensors, which the debug scripts run. Orchestration: may stand in code that "
            "launches kernels. A dash means no."
        ),
    },
    "zh": {
        "operand": "操作数", "kind": "种类", "space": "存储空间", "effect": "作用", "attribute": "属性",
        "type": "类型", "default": "默认值", "required": "必填", "result": "结果", "pto": "PTO",
        "instruction": "指令", "backends": "后端", "torch": "torch 语义", "orchestration": "编排",
        "notes": "说明", "level": "级别", "yes": "有", "no": "无", "none": "无", "own": "由代码生成器直接输出",
        "rewritten": "改写为若干 tile 算子", "becomes": "改写为", "page": "页面", "operators": "算子",
        "operator": "算子", "rule": "类型规则", "total": "合计",
        "optional": "可选", "variadic": "任意个", "nothing": "无", "in": "位于 {}",
        "deferred": "位于由属性指定的空间", "inherited": "位于其操作数所在的空间",
        "result_is": "结果即操作数 {}", "not_in_place": "结果不与任何操作数共用缓冲区",
        "no_alias": "结果不与 {} 共用缓冲区", "core": "在 {} 核上执行",
        "no_duplicate": "不会被复制", "channel": "经由 {} 写入",
        "operand_layouts": "操作数的块布局：{}", "result_layout": "结果的块布局：{}",
        "index_title": "算子参考",
        "index": (
            "`pypto/src/pypto/ops` 的每个模块对应一页，全部由算子定义生成：用户书写的签名、按 IR 调用顺序排列的操作数"
            "（允许的存储空间以及对它的读写）、属性、结果，以及算子的输出形式。带星号的作用取决于某个属性。"
            "调用中取值有误时抛出 `ValueError`，参数种类有误时抛出 `TypeError`；在被装饰的函数内，"
            "两者都会变为指向用户代码行的 `InvalidOperationError`。算子说明取自定义中的文档字符串，因此为英文。"
        ),
        "status_link": "[算子状态表](status.md)：类型规则、PTO 文本、指令、torch 语义。",
        "status_title": "算子状态",
        "status": (
            "PTO：调用输出为哪条操作，或被改写成哪个算子（`→ custom` 表示多个）。指令：CPU 指令集中的指令，"
            "`(!)` 表示指令集尚未提供。torch 语义：在 torch 张量上的参考实现，供调试脚本运行。"
            "编排：可以出现在启动 kernel 的代码中。短横线表示没有。"
        ),
    },
}  # fmt: skip
