"""Store on disk: object code, compiled programs.

Notes
-----
What the package offers is imported when it is first asked for: a program that comes with its code
looks for none.
"""

from armpy.core.lazy import offer

__getattr__, __dir__ = offer(__name__)
