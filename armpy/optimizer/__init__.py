"""From a graph to an optimised network with a backend for every layer."""

from armpy.lazy import offer

__getattr__, __dir__ = offer(__name__)
