"""Verifiers: one function per IR property, registered on import."""

from pypto.passes.verifiers import control_flow, definitions, dispatch, functions, lanes, occupancy, ssa, tile, types
