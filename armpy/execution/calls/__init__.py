"""Calls of loaded networks: by name, in order, started, bound to arrays, in memory that is held.

Most networks are called with arrays alone: the other ways are imported when they are used.
"""

from armpy.core.lazy import offer

__getattr__, __dir__ = offer(__name__)
