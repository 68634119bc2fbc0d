"""Compiled models: started at once, loaded again for other shapes, and kept for later.

A start asks the package for the modules that few starts need, so that it imports none of them.
"""

from armpy.core.lazy import offer

__getattr__, __dir__ = offer(__name__)
