"""Operations that draw random numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from armpy.ops.operation import Operand, Operation, TypeRule, require, rule
from armpy.records import dataclass
from armpy.tensor import Shape, TensorInfo
from armpy.types import DataType

__all__ = ["RandomMultinomial"]


@dataclass(frozen=True, slots=True)
class RandomMultinomial(Operation):
    """Draw classes with probabilities that are given as logarithms.

    Attributes
    ----------
    num_samples : int
        Per row.

    Notes
    -----
    logits (b, c), logarithms of probabilities that need not add up to 1; seeds int32 (2); output
    int32 (b, num_samples). Equal seeds draw equal samples, but two seeds of 0 draw others each
    time. Classes whose logit is not finite are never drawn. Computed in float64 from
    Philox 4x32-10, two words per sample.

    References
    ----------
    NNAPI RANDOM_MULTINOMIAL; Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3",
    2011.
    """

    num_samples: int = 1

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
