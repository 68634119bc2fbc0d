"""Multiplications of operators by their names alone, for models that armpy cannot load."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from types import MappingProxyType

from armpy.plugins.hooks.outline import FileTensor

Tensors = Sequence[FileTensor | None]
"""Operands; None for those that are left out, or whose shape is not known."""


def estimate_macs(kind: str, inputs: Tensors, outputs: Tensors) -> int:
    """How many multiplications an operator adds up, as far as its name and shapes tell.

    Parameters
    ----------
    kind : str
        In the words of TFLite or ONNX.

    Returns
    -------
    int
        0 for operators that do not, and where a shape is missing.
    """
    count = _COUNTS.get(kind)
    needed = [*inputs[:2], *outputs[:1]]
    if (
        count is None
        or len(inputs) < 2
        or not outputs
        or any(t is None or not t.shape for t in needed)
    ):
        return 0
    return count([t for t in inputs if t is not None], [t for t in outputs if t is not None])


def _dims(tensor: FileTensor) -> tuple[int, ...]:
    """A shape, unknown dimensions as 1."""
    return tuple(1 if dim is None else dim for dim in tensor.shape or ())


def _per_output(channel_axis: int) -> Callable[[Sequence[FileTensor], Sequence[FileTensor]], int]:
    """Each output element with the weights of one channel of an axis."""

    def count(inputs: Sequence[FileTensor], outputs: Sequence[FileTensor]) -> int:
        weights = _dims(inputs[1])
        return outputs[0].num_elements * prod(weights) // max(weights[channel_axis], 1)

    return count


def _tflite_spread(inputs: Sequence[FileTensor], _: Sequence[FileTensor]) -> int:
    """Each element of the third operand with the weights of its channel."""
    if len(inputs) < 3:
        return 0
    weights = _dims(inputs[1])
    return inputs[2].num_elements * prod(weights) // max(weights[-1], 1)


def _onnx_spread(inputs: Sequence[FileTensor], _: Sequence[FileTensor]) -> int:
    """Each element of the input with the weights of its channel."""
    weights = _dims(inputs[1])
    return inputs[0].num_elements * prod(weights) // max(weights[0], 1)


def _product(inputs: Sequence[FileTensor], outputs: Sequence[FileTensor]) -> int:
    shared = max(set(_dims(inputs[0])[-2:]) & set(_dims(inputs[1])[-2:]), default=1)
    depth = _dims(inputs[0])[-1]
    return outputs[0].num_elements * (depth if depth in _dims(inputs[1])[-2:] else shared)


_COUNTS: Mapping[str, Callable[[Sequence[FileTensor], Sequence[FileTensor]], int]] = (
    MappingProxyType(
        {
            **dict.fromkeys(("CONV_2D", "FULLY_CONNECTED", "Conv"), _per_output(0)),
            **dict.fromkeys(("DEPTHWISE_CONV_2D", "CONV_3D"), _per_output(-1)),
            **dict.fromkeys(("TRANSPOSE_CONV", "CONV_3D_TRANSPOSE"), _tflite_spread),
            **dict.fromkeys(("ConvTranspose",), _onnx_spread),
            **dict.fromkeys(("BATCH_MATMUL", "MatMul", "Gemm"), _product),
        }
    )
)
