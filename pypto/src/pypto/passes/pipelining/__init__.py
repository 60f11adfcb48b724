"""Passes that overlap the iterations of pipelined loops."""
