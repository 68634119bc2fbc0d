"""Cases that can be made to take long: what to stop an execution in the midst of."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from math import isqrt

import numpy as np

from armpy.compiler import specialize
from armpy.errors import ArmpyError
from armpy.ops import Convolution2d, ElementwiseBinary, FullyConnected
from armpy.ops.operation import Operation
from armpy.ops.shapes import Padding
from armpy.tensor import Quantization, TensorInfo
from armpy.types import DataType
from armpy_conformance.backend_under_test import BackendUnderTest
from armpy_conformance.case import Case, CaseInput
from armpy_conformance.cases import sample_cases
from armpy_conformance.contract.networks import is_plain, samples
from armpy_conformance.judge import examine
from armpy_conformance.result import Outcome

_OPERATIONS = (
    "FullyConnected",
    "Pooling2d",
    "Softmax",
    "Activation",
    "ElementwiseUnary",
)
"""Operations that compute much for each element, in the order in which they are tried."""

_TYPES = {
    DataType.FLOAT32: None,
    DataType.QASYMM_S8: Quantization.per_tensor(0.05, 0),
}

_WEIGHTED: tuple[Operation, ...] = (FullyConnected(), Convolution2d(), ElementwiseBinary())

WEIGHTS_BYTES = 1 << 18
"""Size of weights whose copies are found in the process's memory."""


def demanding(subject: BackendUnderTest) -> tuple[Case, ...]:
    """Cases that the backend takes and whose inputs can be repeated, those that take long first."""
    demanding_cases = subject.notes.get("demanding")
    if demanding_cases is None:
        large = [case for case in map(_convolution, _TYPES) if is_taken(subject, case)]
        chosen = [next(_enlargeable(subject, name), None) for name in _OPERATIONS]
        demanding_cases = (*large, *(c for c in (*chosen, *samples(subject)) if c is not None))
        subject.notes["demanding"] = demanding_cases
    return demanding_cases


def _convolution(data_type: DataType) -> Case:
    """3.4 billion operations on 2 million bytes of float32: a fast backend is long about it."""
    quantization = _TYPES[data_type]
    image = TensorInfo((1, 32, 32, 256), data_type, quantization)
    weights = TensorInfo((256, 5, 5, 256), data_type, quantization)
    random = np.random.default_rng(0)
    pixels, filters = (
        random.integers(-9, 10, info.known_shape).astype(data_type.dtype)
        for info in (image, weights)
    )
    inputs = (CaseInput(image, pixels), CaseInput(weights, filters, is_constant=True))
    name = f"Convolution2d/large/{data_type.name.lower()}"
    return Case(name, Convolution2d(padding=Padding.SAME), inputs, (image,))


def is_taken(subject: BackendUnderTest, case: Case) -> bool:
    """Return whether the backend says yes to a case's layer."""
    return subject.takes(specialize(case.graph()))


def _enlargeable(subject: BackendUnderTest, name: str) -> Iterator[Case]:
    """Passing cases of an operation whose inputs can be repeated."""
    for case in sample_cases():
        if case.operation.name == name and is_plain(case) and enlarged_bytes(case, 2):
            verdict = examine(subject, case)
            if verdict.result.outcome is Outcome.PASSED:
                yield verdict.case


def weighted_case(subject: BackendUnderTest) -> Case | None:
    """A passing case whose one constant has `WEIGHTS_BYTES`; None if the backend takes none."""
    weighted_cases = subject.notes.get("weighted")
    if weighted_cases is None:
        every = (_weighted(op, data_type) for data_type in _TYPES for op in _WEIGHTED)
        verdicts = (examine(subject, case) for case in every if is_taken(subject, case))
        passed = (v.case for v in verdicts if v.result.outcome is Outcome.PASSED)
        weighted_cases = subject.notes["weighted"] = tuple(islice(passed, 1))
    return weighted_cases[0] if weighted_cases else None


def _weighted(operation: Operation, data_type: DataType) -> Case:
    """A layer with few inputs and many weights."""
    quantization = _TYPES[data_type]
    side = isqrt(WEIGHTS_BYTES // data_type.dtype.itemsize)
    shapes = {
        "FullyConnected": ((1, side), (side, side)),
        "Convolution2d": ((1, 1, 1, side), (side, 1, 1, side)),
        "ElementwiseBinary": ((side, side), (side, side)),
    }
    read, constant = (
        TensorInfo(shape, data_type, quantization) for shape in shapes[operation.name]
    )
    random = np.random.default_rng(0)
    features, weights = (
        random.integers(-9, 10, info.known_shape).astype(data_type.dtype)
        for info in (read, constant)
    )
    inputs = (CaseInput(read, features), CaseInput(constant, weights, is_constant=True))
    name = f"{operation.name}/weights/{data_type.name.lower()}"
    return Case(name, operation, inputs, (read,))


def enlarged(case: Case, times: int) -> Case:
    """A case whose inputs at run time are repeated along the first dimension.

    Raises
    ------
    ArmpyError
        If the operation does not take such inputs.
    """
    inputs = tuple(
        item
        if item is None or item.is_constant
        else CaseInput(
            item.info.with_shape((times * item.data.shape[0], *item.data.shape[1:])),
            np.concatenate([item.data] * times),
        )
        for item in case.inputs
    )
    infos = [None if item is None else item.info for item in inputs]
    unshaped = tuple(info.with_shape(None) for info in case.outputs)
    outputs = tuple(case.operation.infer(infos, unshaped))
    return case.changed(inputs=inputs, outputs=outputs)


def enlarged_bytes(case: Case, times: int) -> int:
    """Bytes of a case's inputs and outputs, repeated; 0 if they cannot be."""
    fed = [item for item in case.inputs if item is not None and not item.is_constant]
    if len({item.info.known_shape[:1] for item in fed} | {()}) != 2:
        return 0
    if times * sum(item.data.nbytes for item in fed) > 1 << 31:
        return 1 << 31
    try:
        grown = sum(info.size_bytes for info in enlarged(case, 2).outputs) // 2
    except ArmpyError:  # other inputs mean nothing to the operation, or the shapes go by values
        return 0
    return times * (grown + sum(item.data.nbytes for item in fed))
