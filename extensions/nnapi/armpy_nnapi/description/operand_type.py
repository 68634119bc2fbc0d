"""Types of operands as applications give them, and their validation."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from types import MappingProxyType

import numpy as np

from armpy.core.dataclass import dataclass
from armpy.ops.operation import Array
from armpy_nnapi.codes import MAX_SIZE_BYTES, OPERAND_TRAITS, OperandCode, is_extension
from armpy_nnapi.description.model_description import ExtensionTypeInformation, Operand
from armpy_nnapi.results import bad_data, check_kind, require_data, unexpected_null


@dataclass(frozen=True, slots=True)
class OperandType:
    """Type, dimensions and quantisation of an operand.

    Raises
    ------
    NnapiError
        BAD_DATA if a field is not of its kind.
    """

    type: int  # an `OperandCode`, or the code of an extension's type
    dimensions: tuple[int, ...] = ()
    """0 where not known; empty for a scalar, and for a tensor of unknown rank."""
    scale: float = 0.0
    zero_point: int = 0

    def __post_init__(self) -> None:
        try:
            dimensions = tuple(operator.index(dim) for dim in self.dimensions)
            # The class is frozen, and __post_init__ is the one place that may still set fields.
            object.__setattr__(self, "dimensions", dimensions)
            object.__setattr__(self, "type", operator.index(self.type))
            object.__setattr__(self, "zero_point", operator.index(self.zero_point))
            object.__setattr__(self, "scale", float(self.scale))
        except (TypeError, ValueError) as error:
            raise bad_data(
                f"a field has the wrong type: {error}",
                where="OperandType",
                expected="an integer type, integer dimensions, a number as scale, an integer "
                "zero point",
            ) from error
        # Extensions' codes are in no enumeration, and stay plain numbers.
        if self.type in OPERAND_TRAITS:
            object.__setattr__(self, "type", OperandCode(self.type))

    @classmethod
    def of(
        cls,
        array: Array,
        scale: float = 0.0,
        zero_point: int = 0,
        type: int | None = None,
    ) -> OperandType:
        """Make the type of a tensor from an array.

        Parameters
        ----------
        scale, zero_point : float, int
            Needed for quantised types.
        type : OperandCode, optional
            Where several have the array's dtype; otherwise float32, float16, int32 and bool
            are what they are, and (u)int8 and (u)int16 are the quantised types: asymmetric,
            int16 symmetric.

        Raises
        ------
        NnapiError
            BAD_DATA if no type has the array's dtype.
        """
        array = np.asarray(array)
        code = TENSOR_TYPES.get(array.dtype.name) if type is None else type
        if code is None:
            raise bad_data(
                "no tensor type has the array's dtype",
                where="OperandType.of",
                expected=", ".join(TENSOR_TYPES),
                actual=array.dtype.name,
            )
        return cls(code, array.shape, scale, zero_point)

    @property
    def operand(self) -> Operand:
        """An operand of this type."""
        return Operand(self.type, self.dimensions, self.scale, self.zero_point)

    def __str__(self) -> str:
        operand = self.operand
        text = operand.type_name
        if self.dimensions:
            text += f"[{', '.join(str(dim or '?') for dim in self.dimensions)}]"
        if self.scale or self.zero_point:
            text += f" scale {self.scale:g} zero point {self.zero_point}"
        return text


TENSOR_TYPES: Mapping[str, OperandCode] = MappingProxyType(
    {
        "float32": OperandCode.TENSOR_FLOAT32,
        "float16": OperandCode.TENSOR_FLOAT16,
        "int32": OperandCode.TENSOR_INT32,
        "bool": OperandCode.TENSOR_BOOL8,
        "uint8": OperandCode.TENSOR_QUANT8_ASYMM,
        "int8": OperandCode.TENSOR_QUANT8_ASYMM_SIGNED,
        "uint16": OperandCode.TENSOR_QUANT16_ASYMM,
        "int16": OperandCode.TENSOR_QUANT16_SYMM,
    }
)
"""Default tensor types of arrays, by dtype."""


def validate_operand_type(
    operand_type: OperandType | None,
    extension: ExtensionTypeInformation | None = None,
    *,
    where: str = "OperandType",
    allow_partial: bool = True,
) -> None:
    """Check an operand's type.

    Parameters
    ----------
    extension : ExtensionTypeInformation, optional
        The description of an extension's type.
    where : str
        Name of the place, for messages.
    allow_partial : bool
        Whether dimensions, or the rank, may be unknown.

    Raises
    ------
    NnapiError
        UNEXPECTED_NULL if it is None, BAD_DATA if it breaks a rule.

    References
    ----------
    NNAPI ``validateOperandType``.
    """
    if operand_type is None:
        raise unexpected_null("the operand type", where=where, expected="an OperandType")
    check_kind(operand_type, OperandType, where)
    code = operand_type.type
    if is_extension(code):
        if extension is None:
            raise bad_data("nothing is known of the extension's type", where=where)
        is_tensor, size_bytes = extension.is_tensor, extension.size_bytes
        name = operand_type.operand.type_name
    else:
        if code not in OPERAND_TRAITS:
            raise bad_data(
                "unknown operand type",
                where=where,
                expected="an OperandCode, or the code of an extension's type",
                actual=str(code),
            )
        traits = OPERAND_TRAITS[OperandCode(code)]
        is_tensor, size_bytes = traits.is_tensor, traits.size_bytes
        name = OperandCode(code).name
    where = f"{where} / {name}"
    if is_tensor:
        _check_dimensions(operand_type.dimensions, size_bytes, where, allow_partial)
    else:
        require_data(
            not operand_type.dimensions,
            "a scalar has no dimensions",
            where=where,
            actual=str(operand_type.dimensions),
        )
    # Scale and zero point of an OEM scalar are its driver's own matter.
    if code != OperandCode.OEM_SCALAR:
        _check_quantization(operand_type, where)


def _check_dimensions(
    dimensions: tuple[int, ...], size_bytes: int, where: str, allow_partial: bool
) -> None:
    """Check a tensor's dimensions, and that its size can be counted."""
    require_data(
        all(0 <= dim <= MAX_SIZE_BYTES for dim in dimensions),
        "a dimension is out of range",
        where=where,
        expected="0 (not known) to 2**32 - 1",
        actual=str(dimensions),
    )
    require_data(
        allow_partial or (bool(dimensions) and 0 not in dimensions),
        "the dimensions are not fully given",
        where=where,
        expected="one dimension at least, none of them 0",
        actual=str(dimensions),
    )
    size = size_bytes
    for dim in dimensions:
        # Open dimensions count as 1, so that only tensors that are surely too large are refused.
        size *= dim or 1
    require_data(
        size <= MAX_SIZE_BYTES,
        "the tensor is too large",
        where=where,
        expected=f"at most {MAX_SIZE_BYTES} bytes",
        actual=f"{size} bytes",
    )


def _check_quantization(operand_type: OperandType, where: str) -> None:
    """Check scale and zero point against the type's rules."""
    scale, zero_point = operand_type.scale, operand_type.zero_point
    lowest, highest, needs_scale = 0, 0, False
    if not is_extension(operand_type.type):
        code = OperandCode(operand_type.type)
        # Their scales are checked with the operation or the model that uses them.
        if code in _FREELY_QUANTIZED:
            return
        traits = OPERAND_TRAITS[code]
        (lowest, highest), needs_scale = traits.zero_points, bool(traits.needs_scale)
    with np.errstate(over="ignore", under="ignore"):
        # Judged as NNAPI stores it: a scale may become 0 or infinite in float32.
        stored = np.float32(scale)
    require_data(
        bool(np.isfinite(stored) and stored > 0) if needs_scale else scale == 0,
        "the scale does not fit the type",
        where=where,
        expected="a float32 above 0" if needs_scale else "0",
        actual=f"{scale:g}",
    )
    require_data(
        lowest <= zero_point <= highest,
        "the zero point does not fit the type",
        where=where,
        expected=str(lowest) if lowest == highest else f"{lowest} to {highest}",
        actual=str(zero_point),
    )


_FREELY_QUANTIZED = (OperandCode.TENSOR_INT32, OperandCode.TENSOR_OEM_BYTE)
"""Types whose scale and zero point say what an operation makes of them."""
