"""Assembler bridge: .pto text to checked dialect to kernel C++."""
