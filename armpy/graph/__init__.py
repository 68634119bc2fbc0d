"""The graph that a network is, and parts of it."""

from armpy.core.lazy import offer

__getattr__, __dir__ = offer(__name__)
