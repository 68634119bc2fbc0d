"""Traced programs: prepared once for sizes that are traced, and filled in for any others.

Most networks are called with few sizes: what traces more is imported for the first that is not.
"""

from armpy.core.lazy import offer

__getattr__, __dir__ = offer(__name__)
