"""Tensors of calls: memory with a description."""

from armpy_compat.pyarmnn.tensors.const_tensor import ConstTensor
from armpy_compat.pyarmnn.tensors.tensor import Tensor
from armpy_compat.pyarmnn.tensors.workload_tensors import (
    make_input_tensors,
    make_output_tensors,
    workload_tensors_to_ndarray,
)

__all__ = [
    "ConstTensor",
    "Tensor",
    "make_input_tensors",
    "make_output_tensors",
    "workload_tensors_to_ndarray",
]
