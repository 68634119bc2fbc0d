"""Store on disk: object code, compiled programs.

Notes
-----
The package's names are imported when first used: a program that comes with its code
looks for none.
"""

from armpy.core.lazy import offer

__getattr__, __dir__ = offer(__name__)
