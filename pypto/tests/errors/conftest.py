"""Artifacts of the error tests go to a folder of their own, and the target of the process is restored."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from pypto import backend

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(autouse=True)
def _own_artifacts(tmp_path, monkeypatch):
    monkeypatch.setenv("PYPTO_PROG_BUILD_DIR", str(tmp_path / "build"))


@pytest.fixture(autouse=True)
def _restored_target():
    before = backend.get_backend_type() if backend.is_backend_configured() else None
    yield
    backend.reset_for_testing()
    if before is not None:
        backend.set_backend_type(before)
