"""The operator page says what an operator must know, in both languages."""

from __future__ import annotations

import re

import pytest
from places import GITHUB

ROOT = GITHUB.parent
ENGLISH = (ROOT / "docs" / "en" / "pr_review.md").read_text(encoding="utf-8")
CHINESE = (ROOT / "docs" / "zh" / "pr_review.md").read_text(encoding="utf-8")
FLAT = " ".join(ENGLISH.split())

#: Requirement to what the page must say.
SAID = {
    "R33": "request another review",
    "R50": "no GitHub account named `pypto-codex`",
    "R51": "the cloud integration `@codex` is not involved",
    "R62": "later arrivals are cancelled",
    "R64": "fine-grained personal access token for this repository with *Actions: write*",
    "R85": "A re-run uses its original workflow revision",
    "R86": "is not upgraded to newer workflow code",
    "R93": "may help caching; costs are not promised",
    "R94": "Long histories may be compacted",
    "R117": "bound to `127.0.0.1:7895` and to no other address",
    "R120": "that promise covers only these scripts, the product itself needs Python 3.10",
    "R154": "Allow GitHub Actions to create and approve pull requests",
    "R156": "Required CI checks still apply",
    "R168": "GitHub evaluates checks and conflicts when somebody merges",
    "R169": "The head need not be up to date with the base branch",
    "R173": "GitHub's own rule for stale reviews may dismiss",
    "R184": "not atomic with the edit",
    "R189": "AI assessment and no proof",
    "R190": "Prompt injection and missed defects remain possible",
    "R191": "this setting is repository-wide",
    "R192": "an encoded or split credential passes",
    "R193": "a proxy that keeps the credential out of the container altogether is preferable",
    "R195": "takes effect only once it is merged to the default branch",
    "R196": "controlled pull request",
}


@pytest.mark.parametrize("requirement", SAID)
def test_the_page_says_it(requirement: str) -> None:
    assert SAID[requirement] in FLAT


def test_both_languages_have_the_same_parts() -> None:
    def shape(text: str) -> tuple:
        code = re.findall(r"`([^`\n]+)`", text)
        return (len(re.findall(r"^#", text, re.M)), len(re.findall(r"^\|", text, re.M)), sorted(set(code)))

    assert shape(ENGLISH) == shape(CHINESE)


# R121 R122: the ordinary test session runs these tests, and no session is for 3.8
def test_the_ordinary_session_runs_these_tests() -> None:
    sessions = (ROOT / "noxfile.py").read_text(encoding="utf-8")
    assert ".github/tests" in sessions and "3.8" not in sessions
