"""Passes that turn what the user wrote into flat SSA form."""
