"""Command-line tools that read what a diagnostics run wrote."""
