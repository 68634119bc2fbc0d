"""Lowering of a graph's layers to commands.

Notes
-----
The package's names are imported when first used: with products come three dozen
modules, of which a start from kept programs needs none.
"""

from armpy.core.lazy import offer

__getattr__, __dir__ = offer(__name__)
