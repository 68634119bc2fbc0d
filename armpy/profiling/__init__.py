"""Measures where the time of executions and of loading goes."""

from armpy.core.lazy import offer

__getattr__, __dir__ = offer(__name__)
