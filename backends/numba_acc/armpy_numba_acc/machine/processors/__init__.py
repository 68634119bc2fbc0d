"""Processors: their features, cores and matrix unit, and those that can be compiled for."""
