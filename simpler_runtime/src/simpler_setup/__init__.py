"""Compilers and test harness of the task runtime."""
