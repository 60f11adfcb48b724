"""Passes that give tiles and tensors memory: strides, allocations, sharing, addresses."""
