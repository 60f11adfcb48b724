"""Which comment bodies ask for a review."""

from __future__ import annotations

import pytest
from comment_command import requests_review
from hypothesis import given, settings
from hypothesis import strategies as st

C = "@pypto-codex review"
F, F4, T, T4 = "```", "````", "~~~", "~~~~"

#: R34 R37 R38 R39: bodies that ask for a review.
ACTIVE = {
    "alone": C,
    "trailing newline": C + "\n",
    "text before": f"Why: see X.\n\n{C}\n",
    "text before, same paragraph": f"please look again\n{C}",
    "text after": f"{C}\nthanks",
    "upper case": "@PYPTO-CODEX review",
    "mixed case": "@Pypto-Codex REVIEW",
    "three spaces": "   " + C,
    "trailing spaces and tab": C + "  \t",
    "crlf": f"a\r\n{C}\r\nb",
    "lone cr": f"a\r{C}\rb",
    "twice": f"{C}\n\n{C}",
    "after quote and blank": f"> old\n\n{C}",
    "after quoted fence and blank": f"> {F}\n\n{C}",
    "after blank with spaces": f"> old\n  \t\n{C}",
    "after closed fence": f"{F}py\nx\n{F}\n{C}",
    "after closed tilde fence": f"{T}\nx\n  {T4} \n{C}",
    "longer closing fence": f"{F}\nx\n{F4}\n{C}",
    "backtick in info string is no fence": f"{F}a`b\n{C}",
    "after blank inside details": f"<details>\n\n{C}\n\n</details>",
    "after one-line comment": f"<!-- x --> \n{C}",
    "after closed script": f"<script>\nx\n</script>\n{C}",
    "after closed pre on one line": f"<pre>x</pre>\n{C}",
    "after list item": f"- item\n{C}",
    "after numbered list": f"1. a\n2. b\n\n{C}",
    "in list item paragraph": f"- item\n\n  {C}",
    "after heading": f"# title\n{C}",
    "after thematic break": f"---\n{C}",
    "before setext underline": f"{C}\n===",
    "after table": f"| a |\n|---|\n| b |\n\n{C}",
    "kind 7 cannot interrupt a paragraph": f"text\n<custom-tag>\n{C}",
    "closed code span before": f"see `a` and ``b``\n{C}\nand `c`",
    "escaped backtick": f"a \\` b\n{C}\nc",
    "comparison signs": f"a < b and c > d\n{C}",
    "list with fence": f"- x\n  {F}\n  code\n  {F}\n\n{C}",
    "fence on marker line": f"- {F}\n  code\n  {F}\n\n{C}",
    "link before": f"see [this](https://example.org/x)\n{C}",
    "two backticks are no fence": f"``\n\n{C}",
    "processing instruction closed": f"<?x ?>\n{C}",
    "declaration closed": f"<!DOCTYPE html>\n{C}",
    "cdata closed": f"<![CDATA[ x ]]>\n{C}",
    "angle autolink": f"<https://example.org>\n{C}",
    "escaped quote sign": f"\\> a\n{C}",
    "between paragraphs": f"a\n\n{C}\n\nb",
}

#: R40 R41 R45 R46 R47 R51: bodies that do not.
INACTIVE = {
    "empty": "",
    "other text": "hello",
    "prefix": f"Please {C}",
    "suffix": f"{C}; rm x",
    "dot": f"{C}.",
    "list item": f"- {C}",
    "numbered item": f"1. {C}",
    "task item": f"- [ ] {C}",
    "code span": f"`{C}`",
    "bold": f"**{C}**",
    "heading": f"# {C}",
    "two spaces": "@pypto-codex  review",
    "cloud integration": "@codex review",
    "tab inside": "@pypto-codex\treview",
    "nbsp inside": "@pypto-codex\u00a0review",
    "split over lines": "@pypto-codex\nreview",
    "underscore": "@pypto_codex review",
    "no at sign": "pypto-codex review",
    "kelvin sign": "@pypto-codex review".replace("k", "\u212a") + "\u212a",
    "dotless i": "@pypto-codex rev\u0131ew",
    "long s": "@pypto-codex review\u017f",
    "full-width at": "\uff20pypto-codex review",
    "zero width joiner": f"\u200d{C}",
    "bom": f"\ufeff{C}",
    "four spaces": "    " + C,
    "tab": "\t" + C,
    "two spaces and tab": "  \t" + C,
    "four spaces after paragraph": f"text\n    {C}",
    "nbsp": "\u00a0" + C,
    "ideographic space": "\u3000" + C,
    "trailing nbsp": C + "\u00a0",
    "quote": f"> {C}",
    "quote without space": f">{C}",
    "nested quote": f"> > {C}",
    "lazy continuation": f"> old text\n{C}",
    "lazy continuation, second": f"> a\nb\n{C}",
    "after empty quote line": f"> a\n>\n{C}",
    "after quoted heading": f"> # h\n{C}",
    "after quote in list": f"- > q\n{C}",
    "after quote in numbered list": f"12) > q\n{C}",
    "after indented quote": f"   > q\n{C}",
    "fenced": f"{F}\n{C}\n{F}",
    "tilde fenced": f"{T}\n{C}\n{T}",
    "info string cannot close": f"{F}\nx\n{F}py\n{C}",
    "trailing text cannot close": f"{F}\nx\n{F} trailing\n{C}",
    "other character in closer": f"{F}\nx\n{F}~\n{C}",
    "shorter closing": f"{F4}\nx\n{F}\n{C}",
    "other character": f"{F}\nx\n{T}\n{C}",
    "unclosed fence": f"{F}\n{C}",
    "deep closing": f"{F}\n    {F}\n{C}\n{F}",
    "quote inside fence": f"{F}\n> q\n\n{C}\n{F}",
    "fence opened in the quote zone": f"> q\n{F}\n\n{C}\n{F}",
    "zone goes on after that fence": f"> q\n{F}\n\n{F}\n{C}",
    "html opened in the quote zone": f"> q\n<!--\n\n{C}\n-->",
    "comment": f"<!--\n{C}\n-->",
    "comment over blank lines": f"<!--\n\n{C}\n\n-->",
    "unterminated comment": f"<!-- x\n\n{C}",
    "pre": f"<pre>\n\n{C}\n</pre>",
    "script upper case": f"<SCRIPT>\n\n{C}\n</SCRIPT>",
    "textarea": f"<textarea>\n\n{C}",
    "style": f"<style>\n{C}",
    "details": f"<details>\n{C}\n</details>",
    "closing div": f"</div>\n{C}",
    "table tag": f"<table>\n{C}",
    "processing instruction": f"<?php\n\n{C}\n?>",
    "declaration": f"<!DOCTYPE\n\n{C}\n>",
    "cdata": f"<![CDATA[\n\n{C}\n]]>",
    "custom element": f"<custom-tag>\n{C}",
    "custom element after heading": f"# h\n<custom-tag>\n{C}",
    "code span over lines": f"a `b\n{C}\nc` d",
    "double code span over lines": f"a ``b\n{C}\nc`` d",
    "code span after a heading with a backtick": f"# x `\n`a\n{C}\nb`",
    "inline comment over lines": f"a <!-- b\n{C}\n--> c",
    "attribute over lines": f"a <b title='\n{C}\n'>c</b>",
    "link title over lines": f"[a](b '\n{C}\n')",
    "image text over lines": f"![a\n{C}\nb](c)",
    "reference title": f"[a]: /b '\n{C}\n'",
    "line separator": f"x\u2028{C}",
    "paragraph separator": f"x\u2029{C}",
    "form feed": f"x\f{C}",
    "vertical tab": f"x\v{C}",
    "next line": f"x\u0085{C}",
    "file separator": f"x\x1c{C}",
    "fence in list item": f"- {F}\n  {C}\n  {F}",
    "comment in list item": f"- <!--\n  {C}\n  -->",
    "fence after left list": f"- a\n  {F}\n{F}\n{C}\n{F}",
    "deep comment in list": f"- a\n\n    <!--\n  {C}",
    "comment after left item": f"- <!--\n<pre>\n-->\n{C}",
}


@pytest.mark.parametrize("body", ACTIVE.values(), ids=ACTIVE.keys())
def test_active(body: str) -> None:
    assert requests_review(body)


@pytest.mark.parametrize("body", INACTIVE.values(), ids=INACTIVE.keys())
def test_inactive(body: str) -> None:
    assert not requests_review(body)


@pytest.mark.parametrize("body", [None, 1, True, [], {}, b"@pypto-codex review"])
def test_anything_else_is_inactive(body: object) -> None:
    assert requests_review(body) is False


@pytest.mark.parametrize("size", [2_000, 60_000])
@pytest.mark.parametrize("unit", ["`", "[", "<!--", "> ", "- ", "a\n", "# `\n", "<a ", "```\n", "\t", "\\", "<x\n"])
def test_hostile_sizes_end(unit: str, size: int) -> None:
    assert requests_review(unit * (size // len(unit)) + "\n\n" + C) in (True, False)
    assert requests_review(unit * (size // len(unit)) + "\n" + C + "\n" + unit * (size // len(unit))) in (True, False)


PIECES = [
    C, "  " + C, "   " + C, "text", "", "> q", ">", F, "  " + F, F + "py", T, "    " + F, "- a", "- ", "1. a", "- " + F,
    "- > q", "# h `", "`", "a `b", "``", "<!--", "-->", "a <!-- b", "<pre>", "</pre>", "<div>", "<x>", "</x>", "<x a='",
    "'>", "[a](b '", "')", "[a", "]", "](b)", "![", "[a]: /u '", "'", "---", "===", "    code", "\tcode", "<?", "?>",
    "<!X", ">", "<![CDATA[", "]]>", "2. ```", "10. x", "    ```", "    <!--", "* <!--", "  <!--", "  > q", "\\`", "<x",
    "  - b", "      c", "+ 1) > z", "***", "> ```", "> <!--", "- <div>", "text `",
]  # fmt: skip


def visible_command(body: str) -> bool:
    """Does the reference parser show the command as a line of text outside quotes, code and HTML?"""
    from markdown_it import MarkdownIt

    quotes = 0
    for token in MarkdownIt("commonmark").parse(body):
        quotes += {"blockquote_open": 1, "blockquote_close": -1}.get(token.type, 0)
        if token.type != "inline" or quotes:
            continue
        depth = 0
        line = ""
        for child in [*token.children, None]:
            if child is None or child.type in ("softbreak", "hardbreak"):
                if line.strip().lower() == C and not depth:
                    return True
                line = ""
                continue
            depth += {"link_open": 1, "link_close": -1}.get(child.type, 0)
            line += child.content if child.type == "text" else "" if not child.content else "\0"
    return False


@settings(max_examples=400, deadline=None)
@given(st.lists(st.sampled_from(PIECES), min_size=1, max_size=9))
def test_never_active_when_a_reader_would_not_see_it(parts: list[str]) -> None:
    pytest.importorskip("markdown_it", reason="pip install markdown-it-py")
    body = "\n".join(parts)
    if requests_review(body):
        assert visible_command(body), body
