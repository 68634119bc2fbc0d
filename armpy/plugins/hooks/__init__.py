"""Imports for the author of a plugin: hooks, and the types of their arguments and results."""

from armpy.core.lazy import offer

__getattr__, __dir__ = offer(__name__)
