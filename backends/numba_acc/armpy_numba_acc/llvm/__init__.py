"""Vocabulary for LLVM's language: values, loops, pointers, and the compiler.

Notes
-----
The package's names are imported when first used: LLVM and Numba are slow to import,
and a start whose code is on disk needs neither.
"""

from armpy.core.lazy import offer

__getattr__, __dir__ = offer(__name__)
