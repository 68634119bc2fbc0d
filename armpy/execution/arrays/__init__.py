"""Arrays of callers, checked and brought into the form that a network uses.

Arrays that fit are used as they are: a call asks the package for what converts others.
"""

from armpy.core.lazy import offer

__getattr__, __dir__ = offer(__name__)
