"""Threads that execute, queues before them, deadlines, and how an execution is stopped.

Futures are slow to import, and most networks are called without any.
"""

from armpy.core.lazy import offer

__getattr__, __dir__ = offer(__name__)
