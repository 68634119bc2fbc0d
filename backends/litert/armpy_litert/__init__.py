"""A backend for armpy that runs subgraphs on LiteRT, with XNNPACK or another delegate."""

from armpy_litert.backend import LiteRtBackend, delegate_backend

__all__ = ["LiteRtBackend", "delegate_backend"]
