"""Buffers and tensors under their public module name."""

from simpler_runtime.buffers import Access, Buffer, Tensor

__all__ = ["Access", "Buffer", "Tensor"]
