"""What armpy's conformance kit tries: it cannot know operations that are the backend's own."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from armpy.graph.network import Network
from armpy.ops.operation import Array, Operation
from armpy.tensor import TensorInfo
from armpy.types import DataType
from armpy_conformance import Pattern
from armpy_example_extensions.fibonacci import Fibonacci
from armpy_example_extensions.samples import Amplify, Dequantize64


def patterns() -> list[Pattern]:
    """Each operation alone, with inputs and outputs of two executions, worked out by hand."""
    count = TensorInfo((), DataType.UNSIGNED64)
    counts = TensorInfo((1,), DataType.FLOAT32)
    stored = TensorInfo((4,), DataType.UNSIGNED64)
    samples = (TensorInfo((4, 3), DataType.UNSIGNED8), TensorInfo((), DataType.FLOAT32))
    floats, integers, sound = (
        TensorInfo(None, data_type)
        for data_type in (DataType.FLOAT32, DataType.UNSIGNED64, DataType.UNSIGNED8)
    )
    return [
        _pattern(
            "FIBONACCI-quantised",
            Fibonacci(scale=0.5, zero_point=10),
            [count],
            integers,
            ([np.uint64(7)], np.array([12, 12, 14, 16, 20, 26, 36], np.uint64)),
            ([np.uint64(2)], np.array([12, 12], np.uint64)),
        ),
        _pattern(
            "FIBONACCI-floats",
            Fibonacci(),
            [counts],
            floats,
            ([_floats([6])], _floats([1, 1, 2, 3, 5, 8])),
            ([_floats([3])], _floats([1, 1, 2])),
        ),
        _pattern(
            "DEQUANTIZE64",
            Dequantize64(0.25, 4),
            [stored],
            floats,
            ([np.array([4, 5, 8, 0], np.uint64)], _floats([0, 0.25, 1, -1])),
            ([np.array([6, 4, 4, 104], np.uint64)], _floats([0.5, 0, 0, 25])),
        ),
        _pattern(
            "AMPLIFY",
            Amplify(1.0),
            samples,
            sound,
            ([_int24(0, 1, -1, 300_000), np.float32(2)], _int24(0, 2, -2, 600_000)),
            (
                [_int24(8_000_000, -8_000_000, 3, 0), np.float32(1.5)],
                _int24(8_388_607, -8_388_608, 4, 0),  # halves go to even numbers
            ),
        ),
    ]


Execution = tuple[Sequence[object], Array]
"""Inputs and required outputs."""


def _pattern(
    name: str,
    operation: Operation,
    inputs: Sequence[TensorInfo],
    output: TensorInfo,
    first: Execution,
    second: Execution,
) -> Pattern:
    """A network of one layer."""
    net = Network(name)
    values = [net.input(f"{index}", info) for index, info in enumerate(inputs)]
    net.output("y", net.add(operation, *values, output=output))
    feeds = [{str(i): np.asarray(a) for i, a in enumerate(e[0])} for e in (first, second)]
    return Pattern(name, net, feeds[0], {"y": first[1]}, (feeds[1], {"y": second[1]}))


def _floats(values: list[float]) -> Array:
    return np.array(values, np.float32)


def _int24(*samples: int) -> Array:
    """Samples as the bytes in which they are carried, shape (n, 3)."""
    data = b"".join(sample.to_bytes(3, "little", signed=True) for sample in samples)
    return np.frombuffer(data, np.uint8).reshape(-1, 3)
