"""Random instances of single NNAPI operations on the reference device, and what they should give.

An instance is an operation with its inputs and, for each output, the elements that a peer says
it has: real numbers (float64), which the output's type then rounds, or stored elements, which
must come out exactly.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from armpy.execution import RuntimeOptions
from armpy.ops.tolerance import EXACT, OFF_BY_ONE, TOLERANCES, Tolerance, compare
from armpy.tensor import TensorInfo
from armpy_conformance.sampling import draw as drawing
from armpy_nnapi import (
    Compilation,
    DeviceManager,
    FuseCode,
    Model,
    OperandCode,
    OperandType,
    OperationCode,
)
from armpy_testing.effort import effort

Array = npt.NDArray[Any]  # Any: every element type occurs
Reals = npt.NDArray[np.float64]
Item = TypeVar("Item")

NUM_INSTANCES = effort(10, 200, "ARMPY_NUM_INSTANCES")

FLOAT32 = OperandCode.TENSOR_FLOAT32
FLOAT16 = OperandCode.TENSOR_FLOAT16
INT32 = OperandCode.TENSOR_INT32
BOOL8 = OperandCode.TENSOR_BOOL8
UNSIGNED = OperandCode.TENSOR_QUANT8_ASYMM
SIGNED = OperandCode.TENSOR_QUANT8_ASYMM_SIGNED
SYMMETRIC = OperandCode.TENSOR_QUANT8_SYMM
PER_CHANNEL = OperandCode.TENSOR_QUANT8_SYMM_PER_CHANNEL
SYMMETRIC16 = OperandCode.TENSOR_QUANT16_SYMM
UNSIGNED16 = OperandCode.TENSOR_QUANT16_ASYMM
FLOATS = (FLOAT32, FLOAT16)
QUANTIZED = (UNSIGNED, SIGNED)
IMAGE_TYPES = (*FLOATS, *QUANTIZED)
ITEM_TYPES = (*IMAGE_TYPES, INT32)

_INF = math.inf
BOUNDS = {
    FuseCode.NONE: (-_INF, _INF),
    FuseCode.RELU: (0.0, _INF),
    FuseCode.RELU1: (-1.0, 1.0),
    FuseCode.RELU6: (0.0, 6.0),
}
"""Limits that fused activations keep results between."""


def limits_of(code: OperandCode) -> tuple[int, int]:
    """The lowest and the highest element of an integer type."""
    data_type = code.traits.data_type
    assert data_type is not None
    return data_type.integer_range


def is_quantized(code: OperandCode) -> bool:
    """Whether the elements stand for multiples of a scale."""
    return code.traits.data_type is not None and code.traits.data_type.is_quantized


class Input:
    """What an operation takes."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Tensor(Input):
    """A tensor with its elements as they are stored."""

    code: OperandCode
    stored: Array
    scale: float = 0.0
    zero_point: int = 0
    scales: tuple[float, ...] = ()
    channel_dim: int = 0

    @property
    def shape(self) -> tuple[int, ...]:
        """Its dimensions."""
        return self.stored.shape

    @property
    def real(self) -> Reals:
        """The numbers that the elements stand for."""
        wide = self.stored.astype(np.float64)
        if self.scales:
            along = [1] * wide.ndim
            along[self.channel_dim] = -1
            return np.asarray(wide * np.reshape(self.scales, along))
        return np.asarray((wide - self.zero_point) * self.scale) if self.scale else wide


@dataclass(frozen=True, slots=True)
class Scalar(Input):
    """A constant scalar."""

    code: OperandCode
    value: float


@dataclass(frozen=True, slots=True)
class Omitted(Input):
    """An optional input without a value."""

    code: OperandCode


@dataclass(frozen=True, slots=True)
class Expected:
    """An output as a peer has it.

    Parameters
    ----------
    code : OperandCode
    values : ndarray
        Of the output's dtype if the elements must come out exactly; float64 if they are real.
    scale, zero_point : float, int
        Of a quantised output.
    magnitude : float
        Factor of the tolerance, for results of many or large terms.
    is_compared : bool
        Whether the elements matter, not only the shape.
    """

    code: OperandCode
    values: Array
    scale: float = 0.0
    zero_point: int = 0
    magnitude: float = 1.0
    is_compared: bool = True

    @property
    def is_exact(self) -> bool:
        """Whether elements are given as they are stored."""
        return self.values.dtype == self.code.traits.dtype

    @property
    def stored(self) -> Array:
        """Elements as the output has them."""
        if self.is_exact:
            return self.values
        if is_quantized(self.code):
            return quantized(self.values, self.code, self.scale, self.zero_point)
        with np.errstate(over="ignore"):
            return np.asarray(self.values, self.code.traits.dtype)

    @property
    def tolerance(self) -> Tolerance:
        """How close the output has to be."""
        if self.is_exact:
            return EXACT
        if is_quantized(self.code):
            return Tolerance(OFF_BY_ONE.absolute * self.magnitude)
        assert self.code.traits.data_type is not None
        usual = TOLERANCES[self.code.traits.data_type]
        return Tolerance(usual.absolute * self.magnitude, usual.relative)


def quantized(real: Reals, code: OperandCode, scale: float, zero_point: int) -> Array:
    """Real numbers as the nearest elements, halves away from zero."""
    steps = np.sign(real) * np.floor(np.abs(real) / scale + 0.5)
    return np.asarray(np.clip(steps + zero_point, *limits_of(code)), code.traits.dtype)


def names(value: object) -> str:
    """The id of a parameter."""
    return getattr(value, "name", str(value))


@dataclass(frozen=True, slots=True)
class Instance:
    """One operation with its operands."""

    code: OperationCode
    inputs: Sequence[Input]
    outputs: Sequence[Expected]


class Draw(drawing.Draw):
    """Random choices of tensors too."""

    def tensor(
        self,
        code: OperandCode,
        shape: Sequence[int],
        low: float = -3.0,
        high: float = 3.0,
        *,
        scale: float | None = None,
        zero_point: int | None = None,
    ) -> Tensor:
        """Elements between two limits; of quantised types, about that far apart."""
        dtype = code.traits.dtype
        if code is BOOL8:
            return Tensor(code, self.rng.integers(0, 2, shape).astype(bool))
        if code in FLOATS:
            return Tensor(code, self.rng.uniform(low, high, shape).astype(dtype))
        if code is INT32:
            return Tensor(code, self.rng.integers(int(low), int(high) + 1, shape).astype(dtype))
        lowest, highest = limits_of(code)
        if scale is None:
            scale = (high - low) / (highest - lowest) * self.rng.uniform(0.5, 1.5)
        if zero_point is None:
            zero_point = int(self.rng.integers(lowest, highest + 1))
        if code in (SYMMETRIC, SYMMETRIC16):
            zero_point = 0
        stored = self.rng.integers(lowest, highest + 1, shape).astype(dtype)
        return Tensor(code, stored, float(np.float32(scale)), zero_point)

    def like(self, other: Tensor, shape: Sequence[int]) -> Tensor:
        """A tensor of another's type and quantisation."""
        return self.tensor(other.code, shape, scale=other.scale, zero_point=other.zero_point)

    def output(
        self, code: OperandCode, real: Reals, least_scale: float = 0.0, magnitude: float = 1.0
    ) -> Expected:
        """Real results as an output, for quantised types of a scale that about fits them."""
        if not is_quantized(code):
            return Expected(code, np.asarray(real, np.float64), magnitude=magnitude)
        low, high = float(real.min()), float(real.max())
        spread = max(high - low, abs(high), 1e-2)
        scale = max(spread / self.rng.uniform(60, 400), least_scale * self.rng.uniform(1.01, 2))
        limits = limits_of(code)
        zero = limits[0] - low / scale + self.rng.uniform(-20, 20)
        zero_point = int(np.clip(round(zero), *limits))
        return Expected(code, real, float(np.float32(scale)), zero_point, magnitude)


def moved(source: Tensor, values: Array) -> Expected:
    """Elements of a tensor in other places."""
    return Expected(source.code, values, source.scale, source.zero_point)


def integer(value: int) -> Scalar:
    """An INT32."""
    return Scalar(OperandCode.INT32, value)


def boolean(value: bool) -> Scalar:
    """A BOOL."""
    return Scalar(OperandCode.BOOL, value)


def number(value: float, beside: OperandCode = FLOAT32) -> Scalar:
    """A FLOAT32, or a FLOAT16 beside tensors of that type."""
    return Scalar(OperandCode.FLOAT16 if beside is FLOAT16 else OperandCode.FLOAT32, value)


def integers(values: object) -> Tensor:
    """A TENSOR_INT32 of these elements."""
    return Tensor(INT32, np.array(values, np.int32))


@dataclass
class _Built:
    """A model that is being built, and what it is run with."""

    model: Model = field(default_factory=Model)
    inputs: list[int] = field(default_factory=list)
    arrays: list[Array] = field(default_factory=list)

    def add(self, given: Input, is_constant: bool) -> int:
        """Add an input of the operation."""
        if isinstance(given, Omitted):
            scale = 1.0 if is_quantized(given.code) else 0.0
            return self._constant(OperandType(given.code, (), scale), None)
        if isinstance(given, Scalar):
            value = np.array(given.value, given.code.traits.dtype)
            return self._constant(OperandType(given.code), value)
        assert isinstance(given, Tensor)
        kind = OperandType(given.code, given.shape, given.scale, given.zero_point)
        index = self.model.add_operand(kind)
        if given.scales:
            self.model.set_operand_symm_per_channel_quant_params(
                index, given.scales, given.channel_dim
            )
        if is_constant:
            self.model.set_operand_value(index, given.stored)
        else:
            self.inputs.append(index)
            self.arrays.append(given.stored)
        return index

    def _constant(self, kind: OperandType, value: Array | None) -> int:
        """Add an operand with a value, or with none."""
        index = self.model.add_operand(kind)
        self.model.set_operand_value(index, value)
        return index


def run(instance: Instance, draw: Draw) -> list[Array]:
    """Run an instance on the reference device.

    Notes
    -----
    Which tensors are constants, and whether the model says the outputs' dimensions, are drawn;
    the first tensor is an input of the model.
    """
    built = _Built()
    indexes: list[int] = []
    for instance_input in instance.inputs:
        is_first = not built.inputs
        indexes.append(built.add(instance_input, not is_first and draw.chance()))
    knows_shapes = draw.chance()
    outputs = []
    for wanted in instance.outputs:
        is_known = knows_shapes and wanted.code.traits.is_tensor and 0 not in wanted.values.shape
        dimensions = wanted.values.shape if is_known else ()
        kind = OperandType(wanted.code, dimensions, wanted.scale, wanted.zero_point)
        outputs.append(built.model.add_operand(kind))
    built.model.add_operation(instance.code, indexes, outputs)
    built.model.identify_inputs_and_outputs(built.inputs, outputs)
    built.model.finish()
    return run_model(built.model, built.arrays)


@cache
def _reference() -> DeviceManager:
    """The reference device alone."""
    return DeviceManager(RuntimeOptions(backends=["CpuRef"]))


def run_model(model: Model, arrays: Sequence[Array]) -> list[Array]:
    """Run a finished model on the reference device."""
    with Compilation(model, _reference()) as compilation:
        compilation.finish()
        return compilation(*arrays)


def check(instance: Instance, draw: Draw, context: str = "") -> None:
    """Run an instance and compare its outputs with the peer's."""
    shown = f"{context} {instance.code.name} of {_shown(instance.inputs)}"
    results = run(instance, draw)
    for index, (wanted, actual) in enumerate(zip(instance.outputs, results, strict=True)):
        data_type = wanted.code.traits.data_type
        assert data_type is not None
        info = TensorInfo(wanted.values.shape, data_type)
        tolerance = wanted.tolerance if wanted.is_compared else Tolerance(math.inf)
        difference = compare(wanted.stored, actual, info, tolerance)
        assert difference is None, f"{shown}: output {index}: {difference}"


def check_instances(make: Callable[[Draw], Instance], count: int = NUM_INSTANCES) -> None:
    """Check an operation on random instances."""
    for seed in range(count):
        draw = Draw(seed)
        check(make(draw), draw, f"instance {seed}:")


def _shown(inputs: Sequence[Input]) -> str:
    """Inputs for a message."""
    texts = []
    for instance_input in inputs:
        if isinstance(instance_input, Scalar):
            texts.append(f"{instance_input.value:g}")
        elif not isinstance(instance_input, Tensor):
            texts.append("none")
        elif instance_input.code is INT32 and instance_input.stored.size <= 8:
            texts.append(str(instance_input.stored.tolist()))
        else:
            quantization = (
                f" * {instance_input.scale:g} - {instance_input.zero_point}"
                if instance_input.scale
                else ""
            )
            texts.append(f"{instance_input.code.name}{list(instance_input.shape)}{quantization}")
    return ", ".join(texts)
