"""Compilation in the background: networks answer at once, and are exchanged when all is compiled.

Few networks are loaded so, and the others import nothing of it.
"""

from armpy.core.lazy import offer

__getattr__, __dir__ = offer(__name__)
