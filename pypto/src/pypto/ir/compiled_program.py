"""Public module name of the artifact class. Nothing is defined here."""

from pypto.runtime.compiled_program import CompiledProgram

__all__ = ["CompiledProgram"]
