"""Trials of backends on models of the Neural Networks API, for armpy's conformance kit."""
