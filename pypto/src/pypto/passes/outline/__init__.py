"""Passes that move scopes into functions of their own."""
