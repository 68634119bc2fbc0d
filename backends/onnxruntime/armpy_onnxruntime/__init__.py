# SPDX-License-Identifier: Apache-2.0
"""Backends for armpy that run subgraphs on ONNX Runtime, one for each execution provider."""

from armpy_onnxruntime.backend import (
    OrtCoreMl,
    OrtCpu,
    OrtCuda,
    OrtDirectMl,
    OrtOpenVino,
    OrtQnn,
    OrtTensorRt,
    OrtWebGpu,
)

__all__ = [
    "OrtCoreMl",
    "OrtCpu",
    "OrtCuda",
    "OrtDirectMl",
    "OrtOpenVino",
    "OrtQnn",
    "OrtTensorRt",
    "OrtWebGpu",
]
