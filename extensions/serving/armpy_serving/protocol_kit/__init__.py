"""Conformance kit of the Open Inference Protocol: requests for any server.

What needs the packages of gRPC is imported when it is asked for.
"""

from armpy.core.lazy import offer

__getattr__, __dir__ = offer(__name__)
