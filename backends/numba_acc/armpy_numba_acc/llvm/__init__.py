"""Vocabulary for LLVM's language: values, loops, pointers, and the compiler.

Notes
-----
What the package offers is imported when it is first asked for: LLVM and Numba are slow to import,
and a start whose code is on disk needs neither.
"""

from armpy.core.lazy import offer

__getattr__, __dir__ = offer(__name__)
