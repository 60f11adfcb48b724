"""Passes that lower tensor operations to tiles and legalise tile operations for the architecture."""
