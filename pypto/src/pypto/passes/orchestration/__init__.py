"""Passes over orchestration functions: directions, dependencies, scopes, carries."""
