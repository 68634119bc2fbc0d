"""ONNX front-end: .onnx files into networks. It needs the extra ``armpy[onnx]``."""

from armpy.core.lazy import offer

__getattr__, __dir__ = offer(__name__)
