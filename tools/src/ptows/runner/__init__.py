"""Running things in entries: nox sessions per package, and any command everywhere."""
