"""Lists of tensors for calls, made of binding information, and arrays made of them."""

from __future__ import annotations

from collections.abc import Sequence

from armpy_compat.pyarmnn.tensors.const_tensor import ConstTensor
from armpy_compat.pyarmnn.tensors.tensor import Tensor
from armpy_compat.pyarmnn.tensors.tensor_info import TensorInfo
from armpy_compat.pyarmnn.tensors.tensor_memory import MemoryArea, TensorMemory


def make_input_tensors(
    inputs_binding_info: Sequence[tuple[int, TensorInfo]], input_data: Sequence[MemoryArea]
) -> list[tuple[int, ConstTensor]]:
    """Pair the ids of inputs with tensors of their elements.

    Parameters
    ----------
    inputs_binding_info : sequence of (int, TensorInfo)
        Binding infos as parsers give them; they are set to be constant.
    input_data : sequence of ndarray
        Kept, and made read-only.

    Raises
    ------
    ValueError
        If the numbers of both differ; otherwise as `ConstTensor`.
    """
    if len(inputs_binding_info) != len(input_data):
        raise ValueError("Length of 'inputs_binding_info' does not match length of 'input_data'")
    tensors = []
    for (binding_id, info), data in zip(inputs_binding_info, input_data, strict=True):
        info.SetConstant()
        tensors.append((binding_id, ConstTensor(info, data)))
    return tensors


def make_output_tensors(
    outputs_binding_info: Sequence[tuple[int, TensorInfo]],
) -> list[tuple[int, Tensor]]:
    """Pair the ids of outputs with tensors that results are written to."""
    return [(binding_id, Tensor(info)) for binding_id, info in outputs_binding_info]


def workload_tensors_to_ndarray(
    workload_tensors: Sequence[tuple[int, TensorMemory]],
) -> list[MemoryArea]:
    """Arrays of the tensors' shapes, which are views: the next call changes them."""
    return [
        tensor.get_memory_area().reshape(tuple(tensor.GetShape())) for _, tensor in workload_tensors
    ]
