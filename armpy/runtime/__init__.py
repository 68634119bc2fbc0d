"""Loading networks and running them."""

from armpy.lazy import offer

__getattr__, __dir__ = offer(__name__)
