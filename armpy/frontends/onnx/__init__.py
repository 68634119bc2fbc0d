"""ONNX front-end: .onnx files into networks. It needs the extra ``armpy[onnx]``."""
