"""Kernels and models written in the tile language."""
