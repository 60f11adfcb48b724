"""Turns a validated review into what is posted: summary text and inline comments, with the model's text made inert.

Pure: every fact from the API is an argument. Model text in the summary is always a block quote, so that no fence,
comment or tag in it can swallow the trusted lines; everywhere mentions, images, raw HTML and slash commands are defused
with an invisible joiner, which leaves quoted code readable.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from codex_review_common import INLINE_LIMIT, MARKER, by_this_workflow
from review_anchors import cites_own_thread, code_link, file_entries, finding_location, patch_lines

JOINER = "\u200d"
NOTICE = (
    "> [!NOTE]\n> Automated AI assessment of untrusted content. It can be wrong or manipulated; "
    "it is no guarantee and replaces no human review."
)
EXISTING_NOTE = "Already reported in an open thread; no duplicate was posted."
IDENTICAL_NOTE = "An identical inline comment on this commit exists; no duplicate was posted."


class Rendered(NamedTuple):
    """Summary part of the findings and the inline comments of one review."""

    summary: str
    inline: list


class Metadata(NamedTuple):
    """Changed files and review comments of the pull request, as the API lists them."""

    files: list
    comments: list


def inert(text: str) -> str:
    """Model text that still reads the same but can ping nobody, load nothing, hide nothing and command no bot."""
    text = "".join(c if c in "\n\t" or not (ord(c) < 32 or 127 <= ord(c) < 160) else "\ufffd" for c in _unify(text))
    text = re.sub(
        r"&(?=(?:#0*64|#[xX]0*40|commat|#0*60|#[xX]0*3[cC]|#0*33|#[xX]0*21|excl|#0*47|#[xX]0*2[fF]|sol);)",
        "&amp;",
        text,
    )
    text = text.replace("@", "@" + JOINER)
    text = text.replace("![", "!" + JOINER + "[")
    text = re.sub(r"<(?=[A-Za-z/!?])", "<" + JOINER, text)
    return re.sub(r"(?m)^([ \t>]*)/(?=[A-Za-z])", r"\1/" + JOINER, text)


def _unify(text: str) -> str:
    return re.sub(r"\r\n?|[\x0b\x0c\x1c-\x1e\x85\u2028\u2029]", "\n", text)


def one_line(text: str) -> str:
    """Model text for a heading: inert and without line ends."""
    return " ".join(inert(text).split())


def quoted(text: str) -> str:
    """Inert model text as a block quote; its structures end where the quote ends."""
    return "\n".join("> " + line if line else ">" for line in inert(text).split("\n"))


def needs_metadata(findings: list) -> bool:
    """Could any finding become inline or cite a thread? Without a valid location neither is possible."""
    return any(finding_location(finding) for finding in findings)


def render(
    repo: str, number: int, head: str, merge_base: str | None, findings: list, metadata: Metadata | None
) -> Rendered:
    """Place every finding: inline, in the summary with a link, or in the summary as text. None is ever lost.

    Without a verified merge base or without metadata everything goes to the summary, with plain coordinates and
    without links, since neither lines nor commits can be trusted.
    """
    linked = merge_base is not None and metadata is not None
    entries = file_entries(metadata.files) if metadata else {}
    comments = [c for c in (metadata.comments if metadata else []) if by_this_workflow(c)]
    own_roots = {c["id"]: c for c in comments if not c.get("in_reply_to_id") and _is_id(c.get("id"))}
    present = {_identity(c) for c in comments if c.get("original_commit_id") == head}
    anchors: dict = {}
    inline: list = []
    parts: list = []
    for finding in findings:
        location = finding_location(finding)
        if location is None:
            parts.append(_entry(finding))
            continue
        if not linked:
            parts.append(_entry(finding, _coordinates(location)))
            continue
        path = location["path"]
        entry = entries.get(path)
        cited = finding.get("existing_comment_id")
        if cited in own_roots and cites_own_thread(own_roots[cited], location, entry):
            link = f"https://github.com/{repo}/pull/{number}#discussion_r{cited}"
            parts.append(_entry(finding, f"{_coordinates(location)} - [existing thread]({link})", EXISTING_NOTE))
            continue
        if path not in anchors:
            anchors[path] = patch_lines(entry.get("patch")) if entry else set()
        comment = inline_comment(finding, location)
        key = (path, location["line"], location["side"], comment["body"])
        link = f"[{_coordinates(location)}]({code_link(repo, head, str(merge_base), location, entry)})"
        if (location["side"], location["line"]) not in anchors[path]:
            parts.append(_entry(finding, link))
        elif key in present:
            parts.append(_entry(finding, _coordinates(location), IDENTICAL_NOTE))
        elif len(inline) < INLINE_LIMIT:
            present.add(key)
            inline.append(comment)
        else:
            parts.append(_entry(finding, link))
    return Rendered("\n\n".join(parts), inline)


def inline_comment(finding: dict, location: dict) -> dict:
    """One inline comment in the shape of the review API."""
    body = f"{MARKER}\n### {one_line(finding['title'])}\n\n{inert(finding['body'])}"
    return {"path": location["path"], "line": location["line"], "side": location["side"], "body": body}


def run_stamp(run: str) -> str:
    """The second line of a review body: which run and attempt posted it, to recognise a post of unknown outcome."""
    return f"<!-- codex-review-run: {run} -->"


def review_body(*, head: str, base: str, run: str, summary: str, rendered: Rendered, reason: str) -> str:
    """The whole body of the posted review."""
    parts = [
        f"{MARKER}\n{run_stamp(run)}",
        "## Codex Review",
        f"Reviewed head `{head}` against base `{base}`.",
        NOTICE,
        quoted(summary),
    ]
    if rendered.inline:
        count = len(rendered.inline)
        parts.append(f"{count} finding{'s' if count != 1 else ''} posted as inline comment{'s' if count != 1 else ''}.")
    if rendered.summary:
        parts.append(rendered.summary)
    parts.append(f"**{reason}**")
    return "\n\n".join(parts) + "\n"


def rendered_size(body: str, inline: list) -> int:
    """UTF-8 bytes of everything a review shows."""
    return sum(len(text.encode("utf-8", "surrogatepass")) for text in [body, *(comment["body"] for comment in inline)])


def _entry(finding: dict, where: str = "", note: str = "") -> str:
    lines = [f"### {one_line(finding['title'])}"]
    if where:
        lines.append(where)
    lines.append(quoted(finding["body"]))
    if note:
        lines.append(f"*{note}*")
    return "\n\n".join(lines)


def _coordinates(location: dict) -> str:
    # The path is model text inside a code span of its own: a backtick in it must not end the span.
    path = location["path"].replace("`", "'")
    return f"`{inert(path)}:{location['line']}` ({location['side']})"


def _identity(comment: dict) -> tuple:
    # The line at posting time: `line` moves or vanishes with later pushes.
    line = comment.get("original_line") if comment.get("original_line") is not None else comment.get("line")
    return (comment.get("path"), line, comment.get("side"), comment.get("body"))


def _is_id(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0
