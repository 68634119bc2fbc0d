"""Operators of ONNX Runtime's processor that armpy does not have, and why."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

_SEARCH = "a search around a decoder in the file; call the decoder for each token instead"
_LAYOUT = "ONNX Runtime's optimiser writes it for one machine; save the model without optimisation"

REFUSED: Mapping[str, str] = MappingProxyType(
    {
        f"com.microsoft.{name}": reason
        for name, reason in {
            "AttnLSTM": "no exporter writes it",
            "BeamSearch": _SEARCH,
            "BifurcationDetector": "it belongs to a search around a decoder",
            "DecoderMaskedMultiHeadAttention": "it belongs to a search around a decoder",
            "DynamicTimeWarping": "it runs after a model, on its results",
            "GreedySearch": _SEARCH,
            "MatMulFpQ4": "its packed weights have no documented form",
            "NhwcMaxPool": _LAYOUT,
            "ReorderInput": _LAYOUT,
            "ReorderOutput": _LAYOUT,
            "Sampling": _SEARCH,
            "SparseAttention": "its blocks are chosen by tables that no exporter writes",
            "SparseToDenseMatMul": "tensors are dense",
            "WhisperBeamSearch": _SEARCH,
            "WordConvEmbedding": "no exporter writes it",
        }.items()
    }
)
"""Reasons by kind of node."""
