"""Reductions over rows and columns and the normalisations built from them."""
