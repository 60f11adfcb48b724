"""Architectures: hardware descriptions and the handlers that passes and generators ask."""

from __future__ import annotations

from pypto.backend.ascend910b import Backend910B
from pypto.backend.ascend950 import Backend950
from pypto.backend.base import (
    Backend,
    BackendType,
    get_backend_instance,
    get_backend_type,
    get_handler,
    is_backend_configured,
    reset_for_testing,
    set_backend_type,
    use_backend,
)
from pypto.backend.handler import BackendHandler
from pypto.backend.soc import Cluster, Core, Die, Mem, SoC

#: Platform name -> target; the ``sim`` ones run on the CPU.
PLATFORMS: dict[str, BackendType] = {
    "a2a3sim": BackendType.Ascend910B,
    "a2a3": BackendType.Ascend910B,
    "a5sim": BackendType.Ascend950,
    "a5": BackendType.Ascend950,
}
