"""Run one operation on CpuRef and one operator on LiteRT, and compare."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from armpy.ops.operation import Operation
from armpy.tensor import Quantization, TensorInfo
from armpy.types import DataType
from tests.differential.litert_oracle import run_litert
from tests.support.run_operation import run_operation
from tests.support.tflite_writer import TfliteModel

Array = npt.NDArray[Any]  # Any: every element type occurs
Operand = tuple[TensorInfo, Array]

TFLITE_TYPES = {
    DataType.FLOAT32: "FLOAT32",
    DataType.QASYMM_U8: "UINT8",
    DataType.QASYMM_S8: "INT8",
    DataType.QSYMM_S8: "INT8",
    DataType.QSYMM_S16: "INT16",
    DataType.SIGNED16: "INT16",
    DataType.SIGNED32: "INT32",
    DataType.SIGNED64: "INT64",
    DataType.BOOLEAN: "BOOL",
    DataType.UNSIGNED32: "UINT32",
    DataType.UNSIGNED8: "UINT8",
    DataType.SIGNED8: "INT8",
    DataType.FLOAT64: "FLOAT64",
    DataType.FLOAT16: "FLOAT16",
}

# Operators whose first version LiteRT does not know.
_VERSIONS = {"BROADCAST_TO": 2}

QUANTIZED_TYPES = (DataType.QASYMM_U8, DataType.QASYMM_S8, DataType.QSYMM_S16)


def random_info(
    rng: np.random.Generator, data_type: DataType, shape: Sequence[int] | None
) -> TensorInfo:
    """An info with a random scale and zero point where the type has them."""
    quantization = None
    if data_type.is_quantized:
        lowest, highest = data_type.integer_range
        zero_point = 0 if data_type.is_symmetric else int(rng.integers(lowest, highest + 1))
        scale = float(np.float32(np.exp(rng.uniform(-6, 2))))
        quantization = Quantization.per_tensor(scale, zero_point)
    return TensorInfo(None if shape is None else tuple(shape), data_type, quantization)


def random_values(rng: np.random.Generator, info: TensorInfo) -> Array:
    """Elements over the whole range of the type, or normally distributed."""
    shape, data_type = info.known_shape, info.data_type
    if data_type is DataType.BOOLEAN:
        return rng.integers(0, 2, shape).astype(bool)
    if data_type.is_float:
        return (rng.standard_normal(shape) * 10).astype(data_type.dtype)
    lowest, highest = data_type.integer_range if data_type.is_quantized else (-1000, 1000)
    return rng.integers(lowest, highest + 1, shape).astype(data_type.dtype)


def random_operand(rng: np.random.Generator, data_type: DataType, shape: Sequence[int]) -> Operand:
    """A tensor of the type and shape."""
    info = random_info(rng, data_type, shape)
    return info, random_values(rng, info)


def random_shape(
    rng: np.random.Generator, rank: int | None = None, lowest: int = 1, highest: int = 5
) -> tuple[int, ...]:
    """A shape, by default of rank 1 to 4."""
    rank = int(rng.integers(1, 5)) if rank is None else rank
    return tuple(int(size) for size in rng.integers(lowest, highest + 1, rank))


def integers(values: object, data_type: DataType = DataType.SIGNED32) -> Operand:
    """An operand of positions or sizes."""
    array = np.array(values, data_type.dtype)
    return TensorInfo(array.shape, data_type), array


def check_operator(
    operation: Operation,
    code: str,
    operands: Sequence[Operand],
    *,
    options: Mapping[str, Any] | None = None,  # Any: option values of many types
    outputs: Sequence[TensorInfo | None] = (),
    order: Sequence[int | None] | None = None,
    inputs: Collection[int] = (0,),
    reference: bool = True,
    tolerance: int = 0,
) -> None:
    """Run both and compare shapes, types and elements.

    Parameters
    ----------
    operation : Operation
        Without what its operands tell.
    code : str
        TFLite's operator.
    operands : sequence of (TensorInfo, ndarray)
        In the operator's order.
    options : mapping, optional
        The operator's options.
    outputs : sequence of TensorInfo
        Declared outputs, where they do not follow.
    order : sequence of (int or None), optional
        Number of the operator's operand for each of the operation's, if they differ.
    inputs : collection of int
        Numbers of the operands that are inputs of the model; all others are constants.
    reference : bool
        Whether to compare with the reference kernel or the optimised one.
    tolerance : int
        By how much integers may differ.

    Notes
    -----
    Integers must be equal but for `tolerance`; floats may differ by 1e-5 + 5 * 2**-23 *
    abs(expected).
    """
    order = range(len(operands)) if order is None else order
    arranged = [None if i is None else operands[i] for i in order]
    actual = run_operation(operation, arranged, outputs)
    declared = [outputs[i] if i < len(outputs) else None for i in range(len(actual))]
    first = operands[0][0]
    infos = [
        info or TensorInfo(a.shape, first.data_type, first.quantization)
        for info, a in zip(declared, actual, strict=True)
    ]
    results = list(zip(infos, actual, strict=True))
    model = _single_operator(code, operands, options, results, inputs)
    given = [operands[i][1] for i in sorted(inputs)]
    expected: list[Array] = run_litert(model, given, reference=reference)
    context = f"{operation} on {', '.join(str(info) for info, _ in operands)}"
    for a, e in zip(actual, expected, strict=True):
        assert a.shape == e.shape, context
        assert a.dtype == e.dtype, context
        if e.dtype.kind == "f":
            np.testing.assert_allclose(a, e, rtol=5 * 2.0**-23, atol=1e-5, err_msg=context)
        elif tolerance:
            np.testing.assert_allclose(a, e, rtol=0, atol=tolerance, err_msg=context)
        else:
            np.testing.assert_array_equal(a, e, err_msg=context)


def _single_operator(
    code: str,
    operands: Sequence[Operand],
    options: Mapping[str, Any] | None,  # Any: as above
    outputs: Sequence[Operand],
    inputs: Collection[int],
) -> bytes:
    """A model of one operator."""
    model = TfliteModel()
    graph = model.subgraph()

    def add(name: str, info: TensorInfo, shape: tuple[int, ...], data: Array | None) -> Any:
        return graph.tensor(
            name,
            shape,
            TFLITE_TYPES[info.data_type],
            scale=info.quantization.scales if info.quantization else None,
            zero_point=info.quantization.zero_points if info.quantization else None,
            axis=(info.quantization.axis or 0) if info.quantization else 0,
            data=data,
        )

    tensors = [
        add(f"operand_{i}", info, values.shape, None if i in inputs else values)
        for i, (info, values) in enumerate(operands)
    ]
    results = [
        add(f"output_{i}", info, values.shape, None) for i, (info, values) in enumerate(outputs)
    ]
    graph.operator(code, tensors, results, options=options, version=_VERSIONS.get(code, 1))
    graph.inputs(*(tensors[i] for i in sorted(inputs)))
    graph.outputs(*results)
    return model.to_bytes()
