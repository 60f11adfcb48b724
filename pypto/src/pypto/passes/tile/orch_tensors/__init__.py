"""Patterns of OptimizeOrchTensors."""
