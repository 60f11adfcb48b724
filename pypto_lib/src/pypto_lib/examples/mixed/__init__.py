"""Kernels that use the cube core and the vector cores together."""
