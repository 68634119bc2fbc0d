"""Recurrent operations with their operands, for CpuRef and for LiteRT."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from armpy.ops import RecurrentActivation
from armpy.ops.operation import Operation
from armpy.ops.tolerance import EXACT
from armpy.tensor import Quantization, TensorInfo
from armpy.types import DataType
from armpy_testing.compared_arrays import check_arrays, of_largest
from armpy_testing.litert_oracle import run_litert
from armpy_testing.models.tflite_writer import TfliteModel
from armpy_testing.run_operation import run_operation
from tests.support.tflite_cases import TYPES

Array = npt.NDArray[Any]  # Any: every element type occurs
ULPS = 5 * 2.0**-23

DATA = ("input", "aux_input")
"""Operands that are given at each execution."""

ACTIVATIONS = {
    RecurrentActivation.NONE: "NONE",
    RecurrentActivation.RELU: "RELU",
    RecurrentActivation.RELU1: "RELU_N1_TO_1",
    RecurrentActivation.RELU6: "RELU6",
    RecurrentActivation.TANH: "TANH",
}


@dataclass
class Case:
    """One recurrent operation with its operands, for both engines."""

    operation: Operation
    code: str
    options: Mapping[str, Any]  # Any: option values of many types
    operands: dict[str, tuple[TensorInfo, Array]]
    outputs: list[TensorInfo]
    states: tuple[str, ...]
    intermediates: list[tuple[float, int]] = field(default_factory=list)
    num_inputs: int | None = None

    def run_armpy(self, invocations: int) -> list[Array]:
        """Return the outputs of the last execution, then the states after it."""
        operands = dict(self.operands)
        infos = [self.operands[name][0] for name in self.states]
        names = [operand.name for operand in self.operation.inputs]
        weights = [i for i, name in enumerate(names) if name not in (*DATA, *self.states)]
        unused = self.operation.num_outputs - len(self.states) - len(self.outputs)
        for _ in range(invocations):
            outputs = run_operation(
                self.operation,
                [operands.get(name) for name in names],
                [*(None,) * unused, *infos, *self.outputs],
                constants=weights,
            )[unused:]
            states, results = outputs[: len(self.states)], outputs[len(self.states) :]
            for name, state in zip(self.states, states, strict=True):
                operands[name] = (operands[name][0], state)
        return [*results, *states]

    def run_litert(self, invocations: int) -> list[Array]:
        """Return the outputs of the last invocation, then the states after it."""
        model = TfliteModel()
        graph = model.subgraph()
        tensors = {}
        for name, (info, elements) in self.operands.items():
            is_weight = name not in (*DATA, *self.states)
            tensors[name] = graph.tensor(
                name,
                info.known_shape,
                TYPES[info.data_type],
                scale=info.scale if info.quantization else None,
                zero_point=info.zero_point if info.quantization else None,
                data=elements if is_weight else None,
                variable=name in self.states,
            )
        outputs = [
            graph.tensor(
                f"output_{i}",
                info.known_shape,
                TYPES[info.data_type],
                scale=info.scale if info.quantization else None,
                zero_point=info.zero_point if info.quantization else None,
            )
            for i, info in enumerate(self.outputs)
        ]
        intermediates = [
            graph.tensor(f"intermediate_{i}", (0,), "INT16", scale=scale, zero_point=zero_point)
            for i, (scale, zero_point) in enumerate(self.intermediates)
        ]
        graph.operator(
            self.code,
            [tensors.get(operand.name) for operand in self.operation.inputs][: self.num_inputs],
            outputs,
            options=self.options,
            intermediates=intermediates,
        )
        data = [name for name in DATA if name in tensors]
        graph.inputs(*(tensors[name] for name in data))
        graph.outputs(*outputs, *(tensors[name] for name in self.states))
        values = [self.operands[name][1] for name in data]
        return run_litert(model.to_bytes(), values, invocations=invocations)


def compare(case: Case, invocations: int) -> None:
    """Run a case on both engines and compare outputs and states."""
    expected = case.run_litert(invocations)
    actual = case.run_armpy(invocations)
    for e, a in zip(expected, actual, strict=True):
        is_exact = e.dtype.kind == "i"
        check_arrays(e, a, EXACT if is_exact else of_largest(e, 1e-5, relative=ULPS, least=1.0))


class Draw:
    """Random operands."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)

    def size(self, highest: int) -> int:
        """Return a size from 1."""
        return int(self.rng.integers(1, highest + 1))

    def chance(self) -> bool:
        """Return true or false."""
        return bool(self.rng.integers(2))

    def scale(self, low: float, high: float) -> float:
        """Return a scale as a file stores it."""
        return float(np.float32(np.exp(self.rng.uniform(np.log(low), np.log(high)))))

    def floats(self, *shape: int) -> tuple[TensorInfo, Array]:
        """Return float32 values of moderate size."""
        values = self.rng.normal(0, 0.7, shape).astype(np.float32)
        return TensorInfo(shape, DataType.FLOAT32), values

    def integers(
        self, data_type: DataType, scale: float, *shape: int, zero_point: int = 0
    ) -> tuple[TensorInfo, Array]:
        """Return quantised values over the whole range."""
        low, high = data_type.integer_range
        values = self.rng.integers(low, high, shape, endpoint=True).astype(data_type.dtype)
        return TensorInfo(shape, data_type, Quantization.per_tensor(scale, zero_point)), values

    def bias(self, limit: int, *shape: int) -> tuple[TensorInfo, Array]:
        """Return an int32 bias."""
        values = self.rng.integers(-limit, limit, shape).astype(np.int32)
        return TensorInfo(shape, DataType.SIGNED32), values

    def zero_point(self) -> int:
        """Return a zero point of int8."""
        return int(self.rng.integers(-128, 128))


def zeros(info: TensorInfo) -> tuple[TensorInfo, Array]:
    """Return a state as it is before the first invocation: real 0."""
    return info, np.full(info.known_shape, info.zero_point, info.data_type.dtype)
