"""Batching: single items of many callers, run together."""

from armpy.lazy import offer

__getattr__, __dir__ = offer(__name__)
