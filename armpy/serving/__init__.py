"""Serving: what servers, clusters and batch jobs need of models, whoever runs them."""

from armpy.core.lazy import offer

__getattr__, __dir__ = offer(__name__)
