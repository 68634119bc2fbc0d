"""Benchmarks: what models take to load and to run, several subjects beside each other."""

from armpy.core.lazy import offer

__getattr__, __dir__ = offer(__name__)
