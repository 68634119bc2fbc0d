"""Compiled models: models with everything that preparing them has made, checked and mapped.

Few files are signed: code that judges them asks the package for the module of signatures.
"""

from armpy.core.lazy import offer

__getattr__, __dir__ = offer(__name__)
