"""The performance table: ``python -m pypto_lib.bench [GROUP ...]``; one module per group of figures."""
