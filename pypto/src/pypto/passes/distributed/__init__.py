"""Passes for programs on several ranks: windows, collectives, communication contexts, fences."""
