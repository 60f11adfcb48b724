"""Passes between verification and emission, one file each; `pipeline.py` holds their order."""
