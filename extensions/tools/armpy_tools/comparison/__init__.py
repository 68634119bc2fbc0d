"""Errors of tensors and layers; the first layer that two backends, or two files, differ in."""

from armpy.core.lazy import offer

__getattr__, __dir__ = offer(__name__)
