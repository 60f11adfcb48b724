"""Parts of real models."""
