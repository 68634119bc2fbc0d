"""Lowering of a graph's layers to commands.

Notes
-----
What the package offers is imported when it is first asked for: with products come three dozen
modules, of which a start from kept programs needs none.
"""

from armpy.core.lazy import offer

__getattr__, __dir__ = offer(__name__)
