"""Passes that check without changing the program."""
