"""Multiplications of operators by their names alone, for models that armpy cannot load."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from types import MappingProxyType

from armpy.plugins.hooks.outline import FileTensor

_WINDOWS: Mapping[str, tuple[int | None, int]] = MappingProxyType(
    {
        **dict.fromkeys(("CONV_2D", "FULLY_CONNECTED", "Conv"), (None, 0)),
        **dict.fromkeys(("DEPTHWISE_CONV_2D", "CONV_3D"), (None, -1)),
        **dict.fromkeys(("TRANSPOSE_CONV", "CONV_3D_TRANSPOSE"), (2, -1)),
        "ConvTranspose": (0, 0),
    }
)
"""The input, or None for the output, each element of which meets the weights of one channel; and
the axis of the weights' channels."""

_PRODUCTS = frozenset(("BATCH_MATMUL", "MatMul", "Gemm"))


def estimate_macs(
    kind: str, inputs: Sequence[FileTensor | None], outputs: Sequence[FileTensor | None]
) -> int:
    """Count an operator's multiply-accumulates, as far as its name and shapes determine them.

    The kind is in the words of TFLite or ONNX; operands are None where they are left out. The
    answer is 0 for operators that do not multiply, and where a shape is missing.
    """
    needed = [*inputs[:2], *outputs[:1]]
    known, output = [tensor for tensor in inputs if tensor is not None], next(iter(outputs), None)
    if len(inputs) < 2 or output is None or any(t is None or not t.shape for t in needed):
        return 0
    # An unknown dimension counts as 1.
    first, weights = ([1 if dim is None else dim for dim in t.shape or ()] for t in known[:2])
    if kind in _PRODUCTS:
        depth = first[-1]
        if depth not in weights[-2:]:
            depth = max(set(first[-2:]) & set(weights[-2:]), default=1)
        return output.num_elements * depth
    place, axis = _WINDOWS.get(kind, (len(known), 0))
    if place is not None and place >= len(known):
        return 0
    spread = output if place is None else known[place]
    return spread.num_elements * prod(weights) // max(weights[axis], 1)
