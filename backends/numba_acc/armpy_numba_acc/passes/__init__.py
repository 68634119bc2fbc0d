"""From a region to a program: rewriting, folding, fusion, and the lowering of what is left.

Notes
-----
What the package offers is imported when it is first asked for: a start from kept programs lowers
nothing.
"""

from armpy.core.lazy import offer

__getattr__, __dir__ = offer(__name__)
