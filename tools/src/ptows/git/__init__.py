"""Everything that runs or reads git."""
