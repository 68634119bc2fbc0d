"""Everything that a backend's author imports; the contract of `BACKEND_API_VERSION`."""

from armpy.core.lazy import offer

__getattr__, __dir__ = offer(__name__)
