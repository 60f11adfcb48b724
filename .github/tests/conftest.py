"""Makes the standalone scripts importable for their tests and keeps real credentials out of them."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

GITHUB = Path(__file__).resolve().parents[1]
sys.dont_write_bytecode = True
for folder in (GITHUB / "scripts", GITHUB / "bench", GITHUB / "tests"):
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test sees the caller's tokens, proxies or step summary."""
    prefixes = ("GH_", "GITHUB_", "CODEX_", "REVIEW_", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")
    names = ("AUTO_APPROVE", "PR_NUMBER", "REPOSITORY_ID", "HEAD_SHA")
    for name in list(os.environ):
        if name.upper().startswith(prefixes) or name in names:
            monkeypatch.delenv(name)


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch):
    """A fake hosting side with one pull request, connected in process; waiting costs no time."""
    import codex_review_common
    from fake_github import FakeGitHub
    from inprocess import sender

    fake = FakeGitHub()
    fake.add_pull()
    monkeypatch.setattr(codex_review_common, "send", sender(fake))
    monkeypatch.setattr(codex_review_common, "pause", lambda seconds: None)
    monkeypatch.setenv("GH_TOKEN", "read-token")
    yield fake
    assert not fake.unexpected, "requests outside the known surface"
