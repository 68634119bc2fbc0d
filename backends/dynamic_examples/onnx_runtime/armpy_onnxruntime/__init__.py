"""A backend for armpy that hands whole subgraphs to ONNX Runtime."""

from armpy_onnxruntime.backend import OnnxRuntimeBackend

__all__ = ["OnnxRuntimeBackend"]
