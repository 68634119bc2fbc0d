"""Cost model of a machine: its figures, how they are measured, and what corrects them.

Notes
-----
What the package offers is imported when it is first asked for: saved programs bring their timing
with them.
"""

from armpy.core.lazy import offer

__getattr__, __dir__ = offer(__name__)
