"""Calibration: measures how fast backends are on this machine, for placement and for figures."""

from armpy.core.lazy import offer

__getattr__, __dir__ = offer(__name__)
