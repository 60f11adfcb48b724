"""Makes the shared helpers of this folder importable and takes wall time out of the property tests."""

from __future__ import annotations

import sys
from pathlib import Path

from hypothesis import settings

sys.path.insert(0, str(Path(__file__).parent))
settings.register_profile("no_deadline", deadline=None)
settings.load_profile("no_deadline")
