"""Workspace command line."""
