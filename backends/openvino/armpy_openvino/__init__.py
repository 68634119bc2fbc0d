"""A backend for armpy that runs subgraphs on OpenVINO's devices."""

from armpy_openvino.backend import OpenVinoBackend

__all__ = ["OpenVinoBackend"]
