"""Lowering of a description to a graph: the dimensions that follow, and device support."""
