"""Kinds of layers and classes of data types, for which one rate holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from armpy.ops.operation import OperandInfos, Operation
from armpy.tensor import TensorInfo
from armpy.types import DataType

TYPE_CLASSES: Mapping[DataType, str] = MappingProxyType(
    {
        DataType.FLOAT32: "float32",
        DataType.FLOAT16: "float16",
        DataType.BFLOAT16: "float16",
        DataType.FLOAT64: "float64",
        DataType.QASYMM_U8: "quant8",
        DataType.QASYMM_S8: "quant8",
        DataType.QSYMM_S8: "quant8",
        DataType.QSYMM_S16: "quant16",
        DataType.QASYMM_U16: "quant16",
        DataType.BOOLEAN: "bool",
    }
)
"""Data types that cost alike under one name; those that are missing are ``int``."""


def type_class(inputs: OperandInfos, outputs: Sequence[TensorInfo] = ()) -> str:
    """The class of data types that a layer computes with: that of its first operand.

    Returns
    -------
    str
        One of ``float32 float16 float64 quant8 quant16 bool int``.
    """
    first = next((info for info in (*inputs, *outputs) if info is not None), None)
    return TYPE_CLASSES.get(first.data_type, "int") if first is not None else "int"


def kind_of(operation: Operation, inputs: OperandInfos = ()) -> str:
    """Return the kind of layers that a rate holds for: operation, and fast or slow.

    Returns
    -------
    str
        ``Convolution2d:pointwise``, ``ElementwiseUnary:EXP``, ``Reshape``.
    """
    weights = inputs[1] if operation.name == "Convolution2d" and len(inputs) > 1 else None
    if weights is not None and weights.rank == 4:
        kernel = (weights.shape or ())[1:3]
        return f"Convolution2d:{'pointwise' if kernel == (1, 1) else 'window'}"
    for attribute in ("operation", "function", "algorithm"):
        value = getattr(operation, attribute, None)
        if (name := getattr(value, "name", "")) and isinstance(name, str):
            return f"{operation.name}:{name}"
    return operation.name
