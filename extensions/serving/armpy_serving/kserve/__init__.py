"""Serving with KServe: models of armpy in its server, over HTTP and gRPC.

`ArmpyModel` is a model for every server of KServe's. `ArmpyModelServer`, which
``python -m armpy_serving.kserve`` starts, answers inferences by routes of its own: KServe makes
lists of Python numbers of binary tensors, and answers in other words than the protocol's.
"""

from armpy.core.lazy import offer

__getattr__, __dir__ = offer(__name__)
