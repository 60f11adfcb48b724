"""``ptows sync``: plan, transfers, journal, installation, and the run that puts them together."""
