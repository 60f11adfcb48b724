"""Kernel binaries of real devices; simulated kernels are shared libraries and need no extraction."""

from simpler_runtime.errors import UnsupportedFeatureError


def extract_text_section(binary: bytes) -> bytes:
    """Only device objects have a text section to extract: this runtime does not make any."""
    raise UnsupportedFeatureError(
        "extract_text_section: kernels for accelerators (simulated kernels are loaded as they are)"
    )
