"""Devices: facts about backends' devices, and figures of their speed, kept per machine."""

from armpy.core.lazy import offer

__getattr__, __dir__ = offer(__name__)
