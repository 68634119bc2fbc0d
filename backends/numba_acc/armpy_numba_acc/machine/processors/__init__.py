"""Processors: their features, cores and matrix unit, and those that can be compiled for."""

from armpy.core.lazy import offer

__getattr__, __dir__ = offer(__name__)
