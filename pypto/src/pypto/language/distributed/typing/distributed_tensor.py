"""``pld.DistributedTensor``."""

from __future__ import annotations

from pypto.language.typing.values import DistributedTensor

__all__ = ["DistributedTensor"]
