"""Optimising, loading, running and profiling networks."""
