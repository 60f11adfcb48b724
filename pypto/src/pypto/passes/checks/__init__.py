"""Diagnostic checks: warnings and performance hints, registered on import."""

from pypto.passes.checks import in_param_written, out_param_write_dropped, tile_innermost_dim, unused
