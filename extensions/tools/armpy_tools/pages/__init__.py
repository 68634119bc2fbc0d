"""Pages for browsers: one file each, with charts and tables, that loads nothing from elsewhere."""

from armpy.core.lazy import offer

__getattr__, __dir__ = offer(__name__)
