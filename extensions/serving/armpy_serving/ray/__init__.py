"""Ray: models in batch jobs of Ray Data and in Ray Serve. Needs the extra ``ray``."""

from armpy.core.lazy import offer

__getattr__, __dir__ = offer(__name__)
