"""Compilation of a region to a program: rewriting, folding, fusion, and lowering of the rest.

Notes
-----
The package's names are imported when first used: a start from kept programs lowers
nothing.
"""

from armpy.core.lazy import offer

__getattr__, __dir__ = offer(__name__)
