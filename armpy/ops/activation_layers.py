"""Activation functions and normalisations as layers of their own."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import ClassVar

from armpy.core.dataclass import dataclass
from armpy.ops.elementwise import FLOAT_TYPES, QUANTIZED_TYPES
from armpy.ops.operation import Operation, TypeRule, require, rule, same
from armpy.ops.shapes import normalize_axis
from armpy.tensor import Shape, TensorInfo
from armpy.types import DataType

__all__ = ["Activation", "ActivationFunction", "L2Normalization", "LogSoftmax", "Softmax"]

_ACTIVATION_RULES = same(*FLOAT_TYPES, *QUANTIZED_TYPES)


class ActivationFunction(enum.Enum):
    """Function that `Activation` computes from `x`, `a` and `b`.

    SIGMOID ``1 / (1 + exp(-x))``; TANH ``a tanh(b x)``; LINEAR ``a x + b``; RELU
    ``max(0, x)``; BOUNDED_RELU ``min(a, max(b, x))``; SOFT_RELU ``log(1 + exp(x))``;
    LEAKY_RELU ``x`` where positive, ``a x`` elsewhere; ABS; SQRT; SQUARE; ELU ``x`` where
    positive, ``a (exp(x) - 1)`` elsewhere; HARD_SWISH ``x min(6, max(0, x + 3)) / 6``; GELU
    ``x`` times the probability that a standard normal variable is below it; MISH
    ``x tanh(log(1 + exp(x)))``.

    References
    ----------
    Arm NN ``ActivationFunction``.
    """

    SIGMOID = 0
    TANH = 1
    LINEAR = 2
    RELU = 3
    BOUNDED_RELU = 4
    SOFT_RELU = 5
    LEAKY_RELU = 6
    ABS = 7
    SQRT = 8
    SQUARE = 9
    ELU = 10
    HARD_SWISH = 11
    GELU = 12
    MISH = 13


@dataclass(frozen=True, slots=True)
class Activation(Operation):
    """Apply an activation function to each element.

    Notes
    -----
    input (...); output as input. Floats are computed in float32, FLOAT64 in itself. Quantised RELU,
    BOUNDED_RELU, LEAKY_RELU and 8-bit HARD_SWISH work in fixed point; 8-bit elements of the
    other functions are looked up in a table made with float32; 16-bit SIGMOID and TANH
    interpolate a table if the output's scale is 2**-15. All saturate.

    References
    ----------
    Arm NN Activation; NNAPI RELU, RELU1, RELU6, LOGISTIC, TANH, ELU, HARD_SWISH; TFLite
    RELU, RELU6, RELU_N1_TO_1, RELU_0_TO_1, LOGISTIC, TANH, LEAKY_RELU, ELU, HARD_SWISH, GELU;
    Misra, "Mish: A Self Regularized Non-Monotonic Activation Function", 2020.
    """

    function: ActivationFunction = ActivationFunction.SIGMOID
    a: float = 0.0
    b: float = 0.0
    """`a` and `b`: parameters as `ActivationFunction` says. TANH needs both (1 and 1 for the plain
    one).
    """
    approximate: bool = False
    """Whether GELU uses its approximation with tanh."""

    type_rules: ClassVar[tuple[TypeRule, ...]] = (*_ACTIVATION_RULES, *same(DataType.FLOAT64))

    def infer_shapes(self, inputs: Sequence[TensorInfo]) -> tuple[Shape | None, ...]:
        """The input's shape."""
        return (inputs[0].shape,)

    def validate(self, inputs: Sequence[TensorInfo], outputs: Sequence[TensorInfo]) -> None:
        """Parameters with which the function makes sense."""
        function = self.function
        require(
            function is not ActivationFunction.TANH or (self.a != 0 and self.b != 0),
            "TANH multiplies by 0",
            expected="a and b that are not 0",
            actual=f"a = {self.a:g}, b = {self.b:g}",
            fix="Give a=1.0, b=1.0 for the plain function",
        )
        require(
            function is not ActivationFunction.BOUNDED_RELU or self.b <= self.a,
            "the bounds of BOUNDED_RELU are the wrong way round",
            expected="b, the lower bound, not above a",
            actual=f"a = {self.a:g}, b = {self.b:g}",
        )

    def identity_of(
        self, inputs: Sequence[TensorInfo], outputs: Sequence[TensorInfo]
    ) -> int | None:
        """The input, if LINEAR has the factor 1 and nothing to add."""
        is_linear = self.function is ActivationFunction.LINEAR and (self.a, self.b) == (1, 0)
        return 0 if is_linear and inputs[0].quantization == outputs[0].quantization else None


def _check_axis(axis: int, inputs: Sequence[TensorInfo]) -> tuple[Shape | None, ...]:
    """Check the axis; the output has the input's shape."""
    shape = inputs[0].shape or ()
    normalize_axis(axis, len(shape))
    return (shape,)


def _check_beta(beta: float) -> None:
    """Check the factor of the exponents."""
    require(beta > 0, "beta is not positive", expected="a number above 0", actual=f"{beta:g}")


@dataclass(frozen=True, slots=True)
class Softmax(Operation):
    """Exponentials along an axis, divided by their sum.

    Notes
    -----
    input (...); output as input. ``exp(beta (x - max)) / sum``. Floats are computed in float32,
    FLOAT64 in itself. 8-bit inputs work in fixed point with 12 integer bits for the sum if the
    output has scale 2**-8 (2**-16 for 16 bits) and its lowest integer as zero point; 16-bit inputs
    interpolate tables if the output has scale 2**-15; others go through float32.

    References
    ----------
    Arm NN, NNAPI and TFLite Softmax.
    """

    beta: float = 1.0
    """Factor of the exponents."""
    axis: int = -1

    type_rules: ClassVar[tuple[TypeRule, ...]] = (
        *_ACTIVATION_RULES,
        *same(DataType.FLOAT64),
        rule((DataType.QASYMM_S8,), (DataType.QSYMM_S16,)),
        rule((DataType.QASYMM_U8,), (DataType.QSYMM_S16,)),
    )

    def infer_shapes(self, inputs: Sequence[TensorInfo]) -> tuple[Shape | None, ...]:
        """The input's shape."""
        return _check_axis(self.axis, inputs)

    def validate(self, inputs: Sequence[TensorInfo], outputs: Sequence[TensorInfo]) -> None:
        """A positive factor."""
        _check_beta(self.beta)


@dataclass(frozen=True, slots=True)
class LogSoftmax(Operation):
    """Logarithm of the softmax along an axis.

    Notes
    -----
    input (...); output as input. ``beta (x - max) - log(sum exp(beta (x - max)))``. Floats are
    computed in float32, FLOAT64 in itself. 8-bit inputs work in fixed point if the output has scale
    1/16 and its highest integer as zero point, others through float32.

    References
    ----------
    Arm NN LogSoftmax; NNAPI and TFLite LOG_SOFTMAX.
    """

    beta: float = 1.0
    """Factor of the exponents."""
    axis: int = -1

    type_rules: ClassVar[tuple[TypeRule, ...]] = (*_ACTIVATION_RULES, *same(DataType.FLOAT64))

    def infer_shapes(self, inputs: Sequence[TensorInfo]) -> tuple[Shape | None, ...]:
        """The input's shape."""
        return _check_axis(self.axis, inputs)

    def validate(self, inputs: Sequence[TensorInfo], outputs: Sequence[TensorInfo]) -> None:
        """A positive factor."""
        _check_beta(self.beta)


@dataclass(frozen=True, slots=True)
class L2Normalization(Operation):
    """Divide by the Euclidean norm along an axis.

    Notes
    -----
    input (...); output as input. Floats are computed in float32. 8-bit inputs work in fixed point
    with an int32 sum if the output has scale 2**-7 and zero point 0 (128 for QASYMM_U8), others
    through float32.

    References
    ----------
    Arm NN L2Normalization, along the channel axis; NNAPI and TFLite L2_NORMALIZATION.
    """

    axis: int = -1
    epsilon: float = 1e-12
    """Least sum of squares."""

    type_rules: ClassVar[tuple[TypeRule, ...]] = _ACTIVATION_RULES

    def infer_shapes(self, inputs: Sequence[TensorInfo]) -> tuple[Shape | None, ...]:
        """The input's shape."""
        return _check_axis(self.axis, inputs)
