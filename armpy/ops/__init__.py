"""Definitions of operations: attributes, operands, type rules and shape rule, once and for all.

Notes
-----
A family is imported when one of its names is first used.
"""

from armpy.core.lazy import offer

__getattr__, __dir__ = offer(__name__)
