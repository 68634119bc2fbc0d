"""Layers of a network as layers of an .armnn file: one table of functions by operation."""
