"""Verifiers: one function per IR property, registered on import."""

from pypto.passes.verifiers import (
    control_flow,
    cross_core,
    definitions,
    dispatch,
    distributed,
    functions,
    lanes,
    occupancy,
    ssa,
    tile,
    types,
)
