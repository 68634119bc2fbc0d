"""Run one operation on CpuRef's workload, without a network around it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from armpy_reference.factory import ReferenceWorkloadFactory

from armpy.backend import DynamicTensorHandle, HostTensorHandle, ITensorHandle, WorkloadInfo
from armpy.ops.operation import Array, Operation, as_attribute
from armpy.tensor import Quantization, TensorInfo
from armpy.types import DataType


def tensor(
    values: object,
    data_type: DataType = DataType.FLOAT32,
    scale: float | None = None,
    zero_point: int = 0,
) -> tuple[TensorInfo, Array]:
    """A TensorInfo and its elements (stored integers for quantised types)."""
    array = np.array(values, data_type.dtype)
    quantization = None if scale is None else Quantization.per_tensor(scale, zero_point)
    return TensorInfo(array.shape, data_type, quantization), array


def run_operation(
    operation: Operation,
    inputs: Sequence[tuple[TensorInfo, Array] | None],
    outputs: Sequence[TensorInfo | None] = (),
    constants: Sequence[int] = (),
) -> list[Array]:
    """Infer and execute one operation; shapes may be left out of `outputs` with None.

    `inputs`: None for an optional operand that is left out.
    `outputs`: declared infos, needed where types or quantisation do not follow.
    `constants`: which inputs the workload is given as constants.

    Notes
    -----
    Inputs that become attributes are turned into them first, as the core does.
    """
    operands: list[tuple[TensorInfo, Array] | None] = []
    for i, item in enumerate(inputs):
        becomes = operation.input_operand(i).becomes
        if becomes and item is not None:
            operation = operation.with_attributes(**{becomes: as_attribute(item[1])})
            operands.append(None)
        else:
            operands.append(item)
    while operands and operands[-1] is None:
        operands.pop()
    infos = [None if item is None else item[0] for item in operands]
    results = operation.infer(infos, outputs)
    constant_data = tuple(
        item[1] if item and i in constants else None for i, item in enumerate(operands)
    )
    info = WorkloadInfo("test", tuple(infos), results, constant_data)
    workload = ReferenceWorkloadFactory().create_workload(operation, info)
    handles = [_output_handle(result) for result in results]
    workload.execute(
        [None if item is None else HostTensorHandle(*item) for item in operands], handles
    )
    return [handle.map() for handle in handles]


def _output_handle(info: TensorInfo) -> ITensorHandle:
    """Memory full of garbage, or none yet where the workload decides the shape."""
    if not info.is_fully_shaped:
        return DynamicTensorHandle(info)
    garbage = 0x55 if info.data_type is not DataType.BOOLEAN else 1
    return HostTensorHandle(info, np.full(info.known_shape, garbage, info.data_type.dtype))


def declared(data_type: DataType, scale: float | None = None, zero_point: int = 0) -> TensorInfo:
    """What a caller says of an output: type and quantisation, but no shape."""
    quantization = None if scale is None else Quantization.per_tensor(scale, zero_point)
    return TensorInfo(None, data_type, quantization)


def check(actual: Array, expected: object, tolerance: float = 0.0) -> None:
    """Compare elements, exactly unless there is a tolerance (absolute and relative)."""
    wanted = np.asarray(expected)
    if tolerance:
        np.testing.assert_allclose(actual, wanted, rtol=tolerance, atol=tolerance)
    else:
        np.testing.assert_array_equal(actual, wanted)
