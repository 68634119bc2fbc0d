"""Quantising: models of small integers made of float models, and how accurate these are."""

from armpy.core.lazy import offer

__getattr__, __dir__ = offer(__name__)
