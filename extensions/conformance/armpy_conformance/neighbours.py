"""Neighbours for a layer that a backend does not run alone: it may be made for pairs."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from armpy.errors import ArmpyError, LayerValidationError
from armpy.graph import Value
from armpy.graph.network import Network
from armpy.ops import (
    Activation,
    ActivationFunction,
    Convolution2d,
    ElementwiseBinary,
    FullyConnected,
)
from armpy.ops.operation import Operation
from armpy.tensor import Quantization
from armpy.types import DataType
from armpy_conformance.case import Case, Neighbour

_MOST_CHANNELS = 1024


# What adds a neighbour is a function of the module: cases are sent to other processes.


def _activate(operation: Activation, net: Network, value: Value) -> Value:
    return net.add(operation, value, output=value.info)


def _activation(operation: Activation) -> Neighbour:
    return Neighbour(operation.function.name, partial(_activate, operation))


def _add_to_itself(net: Network, value: Value) -> Value:
    return net.add(ElementwiseBinary(), value, value, output=value.info)


def _identity(operation: Operation, rank: int, net: Network, value: Value) -> Value:
    """A weighted layer whose output equals its input."""
    info = value.info
    if info.shape is None or len(info.shape) != rank:
        raise LayerValidationError(f"{operation.name} reads tensors of rank {rank}")
    channels = info.known_shape[-1]
    if channels > _MOST_CHANNELS:
        raise LayerValidationError("so many weights show no more than fewer do")
    shape = (channels, *(1,) * (rank - 2), channels)
    eye = np.eye(channels).reshape(shape)
    if info.data_type.is_float:
        weights = net.constant(eye.astype(info.data_type.dtype), data_type=info.data_type)
    else:
        weights = net.constant(
            eye.astype(np.int8),
            data_type=DataType.QSYMM_S8,
            quantization=Quantization.per_tensor(1.0),
        )
    return net.add(operation, value, weights, output=info)


_RELU = _activation(Activation(ActivationFunction.RELU))
_CLAMP = _activation(Activation(ActivationFunction.BOUNDED_RELU, a=6.0, b=-1.0))
_ADD = Neighbour("ADD", _add_to_itself)
_DENSE = Neighbour("FullyConnected", partial(_identity, FullyConnected(), 2))
_POINTWISE = Neighbour("Convolution2d", partial(_identity, Convolution2d(), 4))

COMPANIES: tuple[tuple[Neighbour | None, Neighbour | None], ...] = (
    (None, _RELU),
    (None, _ADD),
    (None, _CLAMP),
    (_DENSE, None),
    (_POINTWISE, None),
    (_ADD, None),
    (_RELU, None),
    (_DENSE, _RELU),
    (_POINTWISE, _RELU),
    (_ADD, _RELU),
)
"""What may stand in front of a layer and after it."""


NEIGHBOURS = ", ".join(
    dict.fromkeys(
        neighbour.name for pair in COMPANIES for neighbour in pair if neighbour is not None
    )
)
"""Names of all of them, for messages."""


def companies(case: Case) -> Iterator[Case]:
    """A case's layer with every neighbour that its tensors allow; CpuRef says the answers."""
    for front, after in COMPANIES:
        variant = case.changed(front=front, after=after)
        try:
            variant.graph()
        except ArmpyError:
            continue  # the operation's rules do not allow this neighbour
        yield variant
