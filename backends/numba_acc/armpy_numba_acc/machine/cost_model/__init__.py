"""Cost model of a machine: its figures, how they are measured, and what corrects them.

Notes
-----
The package's names are imported when first used: saved programs bring their timing
with them.
"""

from armpy.core.lazy import offer

__getattr__, __dir__ = offer(__name__)
