"""Operations that draw random numbers."""

from __future__ import annotations

import enum
import math
from collections.abc import Sequence
from typing import ClassVar

from armpy.core.dataclass import dataclass
from armpy.ops.data_movement import shape_of_operand
from armpy.ops.operation import Operand, Operation, TypeRule, require, rule
from armpy.tensor import Shape, TensorInfo
from armpy.types import DataType

__all__ = ["RandomBits", "RandomGenerator", "RandomMultinomial", "RandomNormal", "RandomUniform"]

_REALS = (DataType.FLOAT32, DataType.FLOAT64)
_WORDS = (DataType.SIGNED32, DataType.UNSIGNED32, DataType.SIGNED64, DataType.UNSIGNED64)
_SHAPE = Operand("shape", ranks=(1,), becomes="shape")
_RULES = (rule(((DataType.SIGNED32, DataType.SIGNED64),), (_REALS,)),)


def _given_shape(shape: tuple[int, ...] | None, inputs: Sequence[TensorInfo]) -> Shape | None:
    """The shape that the attribute says, or as many axes as the operand has elements."""
    if shape is None:
        return shape_of_operand(inputs, 0, "shape")
    require(
        all(dim >= 0 for dim in shape),
        "a size of the shape is negative",
        expected="sizes >= 0",
        actual=str(shape),
    )
    return shape


@dataclass(frozen=True, slots=True)
class RandomUniform(Operation):
    """Draw numbers from a uniform distribution.

    Notes
    -----
    shape int32 or int64 (rank of the output); output (...). A float32 has 23 random bits of one
    word of Philox 4x32-10 (key `seed`, upper half of the first counter `seed2`), a float64 52 of
    two words.

    References
    ----------
    TFLite RANDOM_UNIFORM; ONNX RandomUniform, RandomUniformLike, Bernoulli; Salmon et al.,
    "Parallel Random Numbers: As Easy as 1, 2, 3", 2011.
    """

    shape: tuple[int, ...] | None = None
    """Shape of the output."""
    low: float = 0.0
    high: float = 1.0
    """`low` and `high`: the lowest number, and the exclusive upper limit."""
    seed: int = 0
    seed2: int = 0
    """`seed` and `seed2`: equal seeds draw equal numbers, two seeds of 0 others each time.
    """
    output_type: DataType = DataType.FLOAT32
    """FLOAT32 or FLOAT64."""

    is_random: ClassVar[bool] = True
    inputs: ClassVar[tuple[Operand, ...]] = (_SHAPE,)
    type_rules: ClassVar[tuple[TypeRule, ...]] = _RULES

    def infer_shapes(self, inputs: Sequence[TensorInfo]) -> tuple[Shape | None, ...]:
        """The given shape."""
        bounds = f"{self.low:g} and {self.high:g}"
        is_finite = math.isfinite(self.low) and math.isfinite(self.high)
        require(is_finite, "a bound is not finite", expected="finite numbers", actual=bounds)
        require(
            self.low <= self.high,
            "the bounds are in the wrong order",
            expected="the lower one first",
            actual=bounds,
        )
        return (_given_shape(self.shape, inputs),)

    def infer_types(self, inputs: Sequence[TensorInfo]) -> tuple[DataType, ...]:
        """The attribute."""
        return (self.output_type,)


@dataclass(frozen=True, slots=True)
class RandomNormal(Operation):
    """Draw numbers from a normal distribution.

    Notes
    -----
    shape int32 or int64 (rank of the output); output (...). Pairs drawn as by `RandomUniform` are
    transformed by Box-Muller.

    References
    ----------
    TFLite RANDOM_STANDARD_NORMAL; ONNX RandomNormal, RandomNormalLike; Box, Muller, "A Note on
    the Generation of Random Normal Deviates", 1958.
    """

    shape: tuple[int, ...] | None = None
    """Shape of the output."""
    mean: float = 0.0
    deviation: float = 1.0
    """`mean` and `deviation`: of the distribution."""
    seed: int = 0
    seed2: int = 0
    """`seed` and `seed2`: equal seeds draw equal numbers, two seeds of 0 others each time.
    """
    output_type: DataType = DataType.FLOAT32
    """FLOAT32 or FLOAT64."""

    is_random: ClassVar[bool] = True
    inputs: ClassVar[tuple[Operand, ...]] = (_SHAPE,)
    type_rules: ClassVar[tuple[TypeRule, ...]] = _RULES

    def infer_shapes(self, inputs: Sequence[TensorInfo]) -> tuple[Shape | None, ...]:
        """The given shape."""
        require(
            math.isfinite(self.mean) and math.isfinite(self.deviation),
            "the mean or the deviation is not finite",
            expected="finite numbers",
            actual=f"{self.mean:g} and {self.deviation:g}",
        )
        require(
            self.deviation >= 0,
            "the deviation is negative",
            expected="0 or more",
            actual=f"{self.deviation:g}",
        )
        return (_given_shape(self.shape, inputs),)

    def infer_types(self, inputs: Sequence[TensorInfo]) -> tuple[DataType, ...]:
        """The attribute."""
        return (self.output_type,)


@dataclass(frozen=True, slots=True)
class RandomMultinomial(Operation):
    """Draw classes by logarithms of probabilities.

    Notes
    -----
    logits (b, c), of probabilities of any sum; seeds int32 (2), as of ``RandomUniform``; output
    int32 (b, num_samples). Classes whose logit is not finite are never drawn. Computed in float64
    from Philox 4x32-10, two words per sample.

    References
    ----------
    NNAPI RANDOM_MULTINOMIAL; TFLite MULTINOMIAL; Salmon et al., "Parallel Random Numbers: As Easy
    as 1, 2, 3", 2011.
    """

    num_samples: int = 1
    """Number of samples per row."""

    is_random: ClassVar[bool] = True
    inputs: ClassVar[tuple[Operand, ...]] = (
        Operand("logits", ranks=(2,)),
        Operand("seeds", ranks=(1,)),
    )
    type_rules: ClassVar[tuple[TypeRule, ...]] = (
        rule(((DataType.FLOAT32, DataType.FLOAT16), DataType.SIGNED32), (DataType.SIGNED32,)),
    )

    def infer_shapes(self, inputs: Sequence[TensorInfo]) -> tuple[Shape | None, ...]:
        """(b, num_samples)."""
        require(
            self.num_samples >= 0,
            "the number of samples is negative",
            expected="0 or more",
            actual=self.num_samples,
        )
        batch, classes = (inputs[0].shape or ())[:2]
        seeds = (inputs[1].shape or ())[0]
        require(
            classes is None or classes > 0,
            "there are no classes to draw",
            expected="1 or more",
            actual=classes,
        )
        require(seeds in (None, 2), "there are not two seeds", expected="(2,)", actual=seeds)
        return ((batch, self.num_samples),)

    def infer_types(self, inputs: Sequence[TensorInfo]) -> tuple[DataType, ...]:
        """SIGNED32."""
        return (DataType.SIGNED32,)


class RandomGenerator(enum.Enum):
    """Generator of random bits of a key and a counter: Philox 4x32-10 or Threefry 2x32-20."""

    PHILOX = 0
    THREEFRY = 1


@dataclass(frozen=True, slots=True)
class RandomBits(Operation):
    """Draw integers of random bits, and return the next draw's state.

    Notes
    -----
    state uint64 (2), for Philox also (3): key, then counter, its 32-bit words lowest first; for
    Philox, the key is the upper half of a counter of one element. Outputs: the state, the counter's
    lower half increased by one per block of 4, or 2, words; integers (...), whose lower word is
    drawn first.

    References
    ----------
    StableHLO rng_bit_generator; TFLite STABLEHLO_RNG_BIT_GENERATOR; Salmon et al., "Parallel Random
    Numbers: As Easy as 1, 2, 3", 2011.
    """

    shape: tuple[int, ...] = ()
    """Shape of the drawn integers."""
    generator: RandomGenerator = RandomGenerator.PHILOX
    output_type: DataType = DataType.UNSIGNED32
    """Integers of 32 or 64 bits."""

    inputs: ClassVar[tuple[Operand, ...]] = (Operand("state", ranks=(1,)),)
    outputs: ClassVar[tuple[Operand, ...]] = (Operand("state"), Operand("output"))
    type_rules: ClassVar[tuple[TypeRule, ...]] = (
        rule((DataType.UNSIGNED64,), (DataType.UNSIGNED64, _WORDS)),
    )

    def infer_shapes(self, inputs: Sequence[TensorInfo]) -> tuple[Shape | None, ...]:
        """The state's, and the given one."""
        state = inputs[0].shape or ()
        allowed = (2, 3) if self.generator is RandomGenerator.PHILOX else (2,)
        require(
            state[0] is None or state[0] in allowed,
            "the state has the wrong length",
            expected=" or ".join(map(str, allowed)),
            actual=state[0],
        )
        return state, _given_shape(self.shape, inputs)

    def infer_types(self, inputs: Sequence[TensorInfo]) -> tuple[DataType, ...]:
        """uint64, and the attribute."""
        return DataType.UNSIGNED64, self.output_type

    def scratch_bytes(
        self, inputs: Sequence[TensorInfo | None], outputs: Sequence[TensorInfo]
    ) -> int:
        """Four copies of the words, as 64 bits each."""
        return 4 * 8 * (outputs[1].num_elements * (outputs[1].data_type.bits // 32) + 4)
