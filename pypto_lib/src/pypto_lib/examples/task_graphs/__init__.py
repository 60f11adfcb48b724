"""Orchestration: graphs of tasks over intermediate tensors, explicit dependencies, blocks."""
