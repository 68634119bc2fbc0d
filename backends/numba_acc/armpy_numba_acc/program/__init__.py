"""Programs under construction: emitter, memory, choices, and which operations can be lowered.

Notes
-----
The package's names are imported when first used: a program from disk is neither
chosen nor estimated again.
"""

from armpy.core.lazy import offer

__getattr__, __dir__ = offer(__name__)
