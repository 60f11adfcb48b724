"""The end-to-end run: every example through the whole stack on both simulated platforms, checked against torch."""
