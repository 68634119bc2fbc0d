"""Tables of what armpy's extensions add, for errors about those that are not installed.

Made by scripts/document_extensions.py; do not edit. Nothing here decides what is used: installed
distributions announce themselves by entry points.
"""

from __future__ import annotations

from collections.abc import Mapping

COMMANDS: Mapping[str, str] = {
    "benchmark": "armpy-tools",
    "calibrate": "armpy-tools",
    "conformance": "armpy-conformance",
    "conformance fuzz": "armpy-nnapi",
    "conformance nnapi-vectors": "armpy-nnapi",
    "conformance random-graphs": "armpy-nnapi",
    "diff": "armpy-conformance",
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

INSTALL: Mapping[str, str] = {
    "armpy-compat": "pip install ./extensions/compat (in a checkout of armpy)",
    "armpy-conformance": "pip install ./extensions/conformance (in a checkout of armpy)",
    "armpy-mediapipe": "pip install ./extensions/mediapipe (in a checkout of armpy)",
    "armpy-nnapi": "pip install ./extensions/nnapi (in a checkout of armpy)",
    "armpy-onnx": "pip install ./extensions/onnx (in a checkout of armpy)",
    "armpy-serving": "pip install ./extensions/serving (in a checkout of armpy)",
    "armpy-tools": (
        "pip install ./extensions/conformance ./extensions/tools (in a checkout of armpy)"
    ),
}
"""Commands that install an extension, for fixes of errors."""

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
}
"""Folders of distributions in a checkout."""
