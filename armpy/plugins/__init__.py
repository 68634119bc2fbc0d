"""Finding and loading backends."""

from armpy.core.lazy import offer

__getattr__, __dir__ = offer(__name__)
