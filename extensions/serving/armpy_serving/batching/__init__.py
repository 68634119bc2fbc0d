"""Batching: single items of many callers, run together."""

from armpy.core.lazy import offer

__getattr__, __dir__ = offer(__name__)
