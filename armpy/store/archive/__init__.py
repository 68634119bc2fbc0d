"""Compiled models: models with everything that preparing them has made, checked and mapped.

Few files are signed: who judges them asks the package for what knows of signatures.
"""

from armpy.core.lazy import offer

__getattr__, __dir__ = offer(__name__)
