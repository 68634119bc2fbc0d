"""Layers of .armnn files as layers of a network: one table of functions by kind."""
