"""Task runtime: compile, load and run task graphs on CPU workers."""
