"""Public names of the task runtime."""
