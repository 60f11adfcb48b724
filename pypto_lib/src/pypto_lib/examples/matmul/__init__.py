"""Products on the cube core."""
