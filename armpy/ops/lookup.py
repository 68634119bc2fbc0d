"""Operations that look things up by hash or key."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import ClassVar

from armpy.core.dataclass import dataclass
from armpy.ops.data_movement import require_same_elements
from armpy.ops.operand_checks import bind_sizes
from armpy.ops.operation import NUMBER_TYPES, Operand, Operation, TypeRule, require, rule
from armpy.ops.shapes import product
from armpy.tensor import Shape, TensorInfo
from armpy.types import DataType

__all__ = ["HashtableLookup", "LshProjection", "LshProjectionType"]

_HITS = (DataType.QASYMM_U8, DataType.UNSIGNED8)


@dataclass(frozen=True, slots=True)
class HashtableLookup(Operation):
    """Copy the slices of a table that keys name.

    Notes
    -----
    lookups int32 (k); keys int32 (n), ascending; values (n, ...); output (k, ...), quantised like
    the values; hits uint8 (k), 1 where the key was found. A missing slice has stored elements of 0,
    whatever the zero point, or empty strings.

    References
    ----------
    NNAPI and TFLite HASHTABLE_LOOKUP.
    """

    requantizes: ClassVar[bool] = False
    inputs: ClassVar[tuple[Operand, ...]] = (
        Operand("lookups", ranks=(1,)),
        Operand("keys", ranks=(1,)),
        Operand("values", ranks=tuple(range(1, 9))),
    )
    outputs: ClassVar[tuple[Operand, ...]] = (Operand("output"), Operand("hits"))
    type_rules: ClassVar[tuple[TypeRule, ...]] = tuple(
        rule((DataType.SIGNED32, DataType.SIGNED32, t), (t, _HITS)) for t in DataType
    )

    def infer_shapes(self, inputs: Sequence[TensorInfo]) -> tuple[Shape | None, ...]:
        """(k, ...) and (k)."""
        sizes = bind_sizes(self, inputs, ("k", "n", "n"))
        return (sizes["k"], *(inputs[2].shape or ())[1:]), (sizes["k"],)

    def infer_types(self, inputs: Sequence[TensorInfo]) -> tuple[DataType, ...]:
        """The values' type, and plain bytes."""
        return inputs[2].data_type, DataType.UNSIGNED8

    def validate(self, inputs: Sequence[TensorInfo], outputs: Sequence[TensorInfo]) -> None:
        """The output's elements are the table's."""
        require_same_elements(inputs[2], outputs[0], "output")


class LshProjectionType(enum.Enum):
    """Type of `LshProjection`'s result; numbers are NNAPI's.

    SPARSE_DEPRECATED: one number per hash function, of its bits; DENSE: one number per bit;
    SPARSE: like the first, plus ``i * 2**bits`` for hash function ``i``.
    """

    SPARSE_DEPRECATED = 1
    DENSE = 2
    SPARSE = 3


_MAX_BITS = 32


@dataclass(frozen=True, slots=True)
class LshProjection(Operation):
    """Project a set of items to bits by locality-sensitive hashing.

    Notes
    -----
    hash_functions (hashes, bits), float seeds, at most 32 bits; input (items, ...), any type;
    weight (items), of the seeds' type, 1 if omitted; output int32 (hashes), or (hashes * bits) for
    DENSE, highest bit first. A bit is 1 if the float64 sum of weight times hash over the items is
    above 0. The hash, a signed number, is of the seed's four float32 bytes and the item's stored
    bytes.

    References
    ----------
    NNAPI LSH_PROJECTION; TFLite LSH_PROJECTION, whose SPARSE is SPARSE here; FarmHash
    ``Fingerprint64``.
    """

    projection_type: LshProjectionType = LshProjectionType.SPARSE

    inputs: ClassVar[tuple[Operand, ...]] = (
        Operand("hash_functions", ranks=(2,)),
        Operand("input", ranks=tuple(range(1, 9))),
        Operand("weight", optional=True, ranks=(1,)),
    )
    type_rules: ClassVar[tuple[TypeRule, ...]] = tuple(
        rule((t, NUMBER_TYPES, t), (DataType.SIGNED32,))
        for t in (DataType.FLOAT32, DataType.FLOAT16)
    )

    def infer_shapes(self, inputs: Sequence[TensorInfo]) -> tuple[Shape | None, ...]:
        """(hashes), or (hashes * bits)."""
        sizes = bind_sizes(self, inputs, ("hb", "i", "i"))
        hashes, bits = sizes["h"], sizes["b"]
        require(
            bits is None or 1 <= bits <= _MAX_BITS,
            "the number of bits is out of range",
            expected=f"1 to {_MAX_BITS}",
            actual=bits,
        )
        dense = self.projection_type is LshProjectionType.DENSE
        return ((product((hashes, bits)) if dense else hashes,),)

    def infer_types(self, inputs: Sequence[TensorInfo]) -> tuple[DataType, ...]:
        """SIGNED32."""
        return (DataType.SIGNED32,)
