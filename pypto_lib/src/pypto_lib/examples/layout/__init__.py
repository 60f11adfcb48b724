"""Windows, reshapes, transposes, padding, run-time extents."""
