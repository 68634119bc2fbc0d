"""Backends that run whole subgraphs through another runtime, an engine."""
