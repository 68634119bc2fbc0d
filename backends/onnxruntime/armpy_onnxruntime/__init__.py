"""Backends for armpy that run subgraphs on ONNX Runtime, one for each execution provider."""

from armpy_onnxruntime.backend import OrtCoreMl, OrtCpu, OrtCuda, OrtDirectMl, OrtTensorRt
from armpy_onnxruntime.plugin_backend import open_plugin

__all__ = ["OrtCoreMl", "OrtCpu", "OrtCuda", "OrtDirectMl", "OrtTensorRt", "open_plugin"]
