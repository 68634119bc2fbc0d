"""Tables of what armpy's extensions add, for errors about those that are not installed.

Made by lab/document_extensions.py; do not edit. Nothing here decides what is used: installed
distributions announce themselves by entry points.
"""

from __future__ import annotations

from collections.abc import Mapping

COMMANDS: Mapping[str, str] = {
    "benchmark": "armpy-tools",
    "calibrate": "armpy-tools",
    "check-server": "armpy-serving",
    "conformance": "armpy-conformance",
    "conformance accuracy": "armpy-tools",
    "conformance fuzz": "armpy-nnapi",
    "conformance nnapi-vectors": "armpy-nnapi",
    "conformance page": "armpy-tools",
    "conformance random-graphs": "armpy-nnapi",
    "diff": "armpy-tools",
    "export-triton": "armpy-serving",
    "new-backend": "armpy-conformance",
    "pictures": "armpy-tools",
    "quantize": "armpy-tools",
    "ray-resources": "armpy-serving",
    "report": "armpy-tools",
    "try": "armpy-compat",
}
"""Distributions by the command that they add to ``armpy``, groups before commands."""

BACKEND_COMMANDS: Mapping[str, str] = {
    "kernels": "Build packs of compiled kernels, or list those that are found.",
    "tune": "Measure the fastest options for MODEL on this machine, and store them.",
}
"""Lines about the commands that backends of armpy's own distribution add."""

SUFFIXES: Mapping[str, str] = {
    ".armnn": "armpy-compat",
    ".onnx": "armpy-onnx",
}
"""Distributions by the suffix of the files that they read."""

MODEL_SUFFIXES = (".armnn", ".onnx", ".tflite")
"""Endings of the names of models that armpy and its extensions read, but compiled ones."""

CUSTOM_OPERATORS: Mapping[str, str] = {
    "Convolution2DTransposeBias": "armpy-mediapipe",
    "Landmarks2TransformMatrix": "armpy-mediapipe",
    "MaxPoolingWithArgmax2D": "armpy-mediapipe",
    "MaxUnpooling2D": "armpy-mediapipe",
    "TransformLandmarks": "armpy-mediapipe",
    "TransformTensorBilinear": "armpy-mediapipe",
}
"""Distributions by the custom operators of .tflite files that they have layers for."""

PLACERS = ("armpy-tools",)
"""Distributions that decide by cost where layers run."""

NEEDED: Mapping[str, tuple[str, ...]] = {
    "armpy-compat": ("armpy-compat",),
    "armpy-conformance": ("armpy-conformance",),
    "armpy-mediapipe": ("armpy-mediapipe",),
    "armpy-nnapi": ("armpy-nnapi",),
    "armpy-onnx": ("armpy-onnx",),
    "armpy-serving": ("armpy-serving",),
    "armpy-tools": ("armpy-conformance", "armpy-tools"),
    "armpy-torch": ("armpy-onnx", "armpy-torch"),
}
"""Extensions to install for one: those that it depends on, and itself."""

FOLDERS: Mapping[str, str] = {
    "armpy-compat": "extensions/compat",
    "armpy-conformance": "extensions/conformance",
    "armpy-mediapipe": "extensions/mediapipe",
    "armpy-nnapi": "extensions/nnapi",
    "armpy-numba-acc": "backends/numba_acc",
    "armpy-onnx": "extensions/onnx",
    "armpy-reference": "backends/reference",
    "armpy-serving": "extensions/serving",
    "armpy-tools": "extensions/tools",
    "armpy-torch": "extensions/torch",
}
"""Folders of distributions in a checkout."""

BACKENDS: Mapping[str, str] = {
    "LiteRt": "armpy-litert",
    "OpenVino": "armpy-openvino",
    "OrtCoreMl": "armpy-onnxruntime",
    "OrtCpu": "armpy-onnxruntime",
    "OrtCuda": "armpy-onnxruntime",
    "OrtDirectMl": "armpy-onnxruntime",
    "OrtTensorRt": "armpy-onnxruntime",
}
"""Distributions by the backends that they bring, without those of armpy's own."""

BACKEND_FOLDERS: Mapping[str, str] = {
    "armpy-litert": "backends/litert",
    "armpy-native": "backends/native",
    "armpy-onnxruntime": "backends/onnxruntime",
    "armpy-openvino": "backends/openvino",
}
"""Folders of other distributions of backends in a checkout."""
