"""Types of distributed programs."""

from __future__ import annotations

from pypto.language.typing.values import CommCtx, DistributedTensor
