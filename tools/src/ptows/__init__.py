"""Workspace command line: syncs pinned packages, runs sessions across them, hosts the review helpers."""

__version__ = "0.1.0"
