"""Tools on top of the compiler, run as ``python -m pypto.tools.<name>``."""
