"""Descriptions of tensors and operators, in the dictionaries that LiteRT returns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from armpy_compat.litert.file_records import SubgraphEntry, TensorEntry

Details: TypeAlias = dict[str, Any]  # Any: each key has a type of its own


def tensor_details(tensor: TensorEntry, index: int, shape: Sequence[int]) -> Details:
    """Describe a tensor.

    Parameters
    ----------
    index : int
        Number of the tensor in its subgraph.
    shape : sequence of int
        Present shape, after inputs have been resized.

    Raises
    ------
    ValueError
        If NumPy has no such element type.
    """
    if tensor.dtype is None:
        raise ValueError(f"Invalid tflite type: {tensor.type_name}")
    return {
        "name": tensor.name,
        "index": index,
        "shape": np.array(shape, np.int32),
        "shape_signature": np.array(tensor.shape_signature or shape, np.int32),
        "dtype": tensor.dtype,
        "quantization": tensor.per_tensor_quantization,
        "quantization_parameters": {
            "scales": tensor.scales.copy(),
            "zero_points": tensor.zero_points.copy(),
            "quantized_dimension": tensor.quantized_dimension,
            "block_size": tensor.block_size,
        },
        "sparsity_parameters": dict(tensor.sparsity),
    }


def operator_details(subgraph: SubgraphEntry, index: int) -> Details:
    """Describe an operator.

    Raises
    ------
    ValueError
        If there is no operator of that index.
    """
    if not 0 <= index < len(subgraph.operators):
        raise ValueError("Invalid node index")
    operator = subgraph.operators[index]
    operands, results = (
        [subgraph.tensors[tensor].dtype for tensor in tensors if tensor >= 0]
        for tensors in (operator.inputs, operator.outputs)
    )
    return {
        "index": index,
        "op_name": operator.name,
        "inputs": np.array(operator.inputs, np.int32),
        "outputs": np.array(operator.outputs, np.int32),
        "operand_types": operands,
        "result_types": results,
    }
