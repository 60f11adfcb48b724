"""Makes the standalone scripts importable for their tests and keeps real credentials out of them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

GITHUB = Path(__file__).resolve().parents[1]
SCRIPTS = GITHUB / "scripts"
sys.dont_write_bytecode = True
for folder in (SCRIPTS, Path(__file__).resolve().parent):
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test sees the caller's tokens, proxies or step summary."""
    for name in (
        "GH_TOKEN GITHUB_TOKEN GH_HOST GH_REPO CODEX_REVIEW_RERUN_TOKEN GITHUB_STEP_SUMMARY GITHUB_OUTPUT HTTP_PROXY "
        "HTTPS_PROXY ALL_PROXY http_proxy https_proxy all_proxy GITHUB_RUN_ID GITHUB_RUN_ATTEMPT AUTO_APPROVE"
    ).split():
        monkeypatch.delenv(name, raising=False)
