"""Every JIT test leaves the target selection of the process as it found it."""

from __future__ import annotations

import pytest

from pypto import backend


@pytest.fixture(autouse=True)
def _restored_target():
    before = backend.get_backend_type() if backend.is_backend_configured() else None
    yield
    backend.reset_for_testing()
    if before is not None:
        backend.set_backend_type(before)
