"""Example programs by topic, each with a torch reference; ``pypto_lib.e2e`` runs them."""
