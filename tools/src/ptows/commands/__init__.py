"""The commands: thin readers of options over the modules that do the work."""
