"""Tile programs in Python."""
