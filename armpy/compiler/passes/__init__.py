"""Optimiser passes: each makes another graph of a graph, before layers are assigned to backends."""
