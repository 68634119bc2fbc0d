"""Compilation of a region to a program: rewriting, folding, fusion, and lowering of the rest.

Notes
-----
What the package offers is imported when it is first asked for: a start from kept programs lowers
nothing.
"""

from armpy.core.lazy import offer

__getattr__, __dir__ = offer(__name__)
