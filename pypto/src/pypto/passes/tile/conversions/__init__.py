"""How each tensor operator becomes tile operators; rules register on import."""

from pypto.passes.tile.conversions import communication, elementwise, indexing, matmul, memory
from pypto.passes.tile.conversions.registry import (
    ConversionContext,
    has_op_conversion,
    op_conversion,
    register_op_conversion,
    register_op_conversion_custom,
)
