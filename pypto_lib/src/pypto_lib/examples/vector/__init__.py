"""Elementwise work on tiles: arithmetic, casts, comparison and selection, control flow inside a kernel."""
