"""Reports on models: where layers run, where time and memory go, how exact they are."""

from armpy.core.lazy import offer

__getattr__, __dir__ = offer(__name__)
