"""Passes that split kernels between cube and vector cores."""
