"""Hashes of elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from armpy.core.dataclass import dataclass
from armpy.ops.operation import Operation, TypeRule, require, rule
from armpy.tensor import Shape, TensorInfo
from armpy.types import DataType

__all__ = ["MurmurHash3"]

_NUMBERS = (
    DataType.SIGNED32,
    DataType.UNSIGNED32,
    DataType.SIGNED64,
    DataType.UNSIGNED64,
    DataType.FLOAT32,
    DataType.FLOAT64,
)
_HASHES = (DataType.UNSIGNED32, DataType.SIGNED32)
_LARGEST_SEED = 2**32 - 1


@dataclass(frozen=True, slots=True)
class MurmurHash3(Operation):
    """Hash each element to 32 bits.

    Notes
    -----
    input (...); output as input, the hash as unsigned or signed integer. Hashed are the bytes of
    numbers, the lowest first, so that 0.0 and -0.0 differ, and those of strings in UTF-8.

    References
    ----------
    Appleby, MurmurHash3, variant x86_32; ONNX Runtime MurmurHash3.
    """

    seed: int = 0
    """Start of the hash, from 0 to 2**32 - 1."""

    type_rules: ClassVar[tuple[TypeRule, ...]] = tuple(
        rule((types,), (_HASHES,)) for types in (_NUMBERS, DataType.STRING)
    )

    def infer_shapes(self, inputs: Sequence[TensorInfo]) -> tuple[Shape | None, ...]:
        """The input's shape."""
        return (inputs[0].shape,)

    def infer_types(self, inputs: Sequence[TensorInfo]) -> tuple[DataType, ...]:
        """UNSIGNED32."""
        return (DataType.UNSIGNED32,)

    def validate(self, inputs: Sequence[TensorInfo], outputs: Sequence[TensorInfo]) -> None:
        """A seed of 32 bits."""
        require(
            0 <= self.seed <= _LARGEST_SEED,
            "the seed is not an unsigned integer of 32 bits",
            expected=f"0 to {_LARGEST_SEED}",
            actual=self.seed,
        )
