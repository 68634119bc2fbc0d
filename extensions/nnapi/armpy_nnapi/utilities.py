"""Utility functions for makers of drivers: versions, performance tables, sizes of types.

Notes
-----
`validate_model`, `validate_operation`, `validate_request` and `graph_dump`, which NNAPI has in
headers of their own, are in `armpy_nnapi` too.

References
----------
NNAPI ``Utils.h``, ``ValidateHal.h``, ``GraphDump.h``.
"""

from __future__ import annotations

import bisect
import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import TypeAlias, overload

from armpy.backend import PerformanceFigures
from armpy.compiler.devices import UNKNOWN_PERFORMANCE
from armpy_nnapi.capabilities import Capabilities
from armpy_nnapi.codes import (
    MAX_SIZE_BYTES,
    OPERAND_TRAITS,
    FeatureLevel,
    OperandCode,
    is_extension,
)
from armpy_nnapi.description.model_description import ModelDescription
from armpy_nnapi.errors import NnapiError
from armpy_nnapi.model.model import Model
from armpy_nnapi.results import bad_data, require_data
from armpy_nnapi.validation.described import described
from armpy_nnapi.validation.versions import convert

_log = logging.getLogger("armpy_nnapi")


def compliant_with(what: Model | ModelDescription | Capabilities, feature_level: int) -> bool:
    """Return whether a model or capabilities can be expressed in an older version of NNAPI.

    Parameters
    ----------
    what : Model, ModelDescription or Capabilities
        A finished model, or a valid one.
    feature_level : int
        27 to 30.

    Returns
    -------
    bool
        Whether `convert_to` loses nothing that matters to models of that level. That float32 may
        be computed as float16 does not: a device that computes it as float32 is right too.

    Raises
    ------
    NnapiError
        BAD_DATA if there is no such level, or it is something else.

    References
    ----------
    NNAPI ``compliantWithV1_0`` to ``compliantWithV1_3``.
    """
    level = _level(feature_level, "compliant_with")
    if isinstance(what, Capabilities):
        return _says_all(_reduced(what, level), what, level)
    description = described(what, "compliant_with", ", or Capabilities")
    try:
        convert(description, level)
    except NnapiError:
        return False
    return True


@overload
def convert_to(what: Capabilities, feature_level: int) -> Capabilities: ...


@overload
def convert_to(what: Model | ModelDescription, feature_level: int) -> ModelDescription: ...


def convert_to(
    what: Model | ModelDescription | Capabilities, feature_level: int
) -> ModelDescription | Capabilities:
    """Convert a model or capabilities to an older version of NNAPI.

    Parameters
    ----------
    what : Model, ModelDescription or Capabilities
        A finished model, or a valid one.
    feature_level : int
        27 to 30.

    Raises
    ------
    NnapiError
        OP_FAILED if the level lacks features of the model; BAD_DATA if there is no such level, or
        it is something else.

    Notes
    -----
    Losses are logged as a warning: that float32 may be computed as float16, figures of types
    that the level has not, and figures of types that it takes for one.

    References
    ----------
    NNAPI ``convertToV1_0`` to ``convertToV1_3``.
    """
    level = _level(feature_level, "convert_to")
    if isinstance(what, Capabilities):
        reduced = _reduced(what, level)
        if reduced != what:
            _log.warning(
                "convert_to: feature level %d cannot say all of the device's capabilities", level
            )
        return reduced
    description = described(what, "convert_to", ", or Capabilities")
    converted = convert(description, level)
    if description.relaxed and not converted.relaxed:
        _log.warning(
            "convert_to: feature level %d cannot say that float32 may be computed as float16", level
        )
    return converted


def _level(feature_level: int, where: str) -> FeatureLevel:
    require_data(
        feature_level in tuple(FeatureLevel),
        "unknown feature level",
        where=where,
        expected=", ".join(str(int(level)) for level in FeatureLevel),
        actual=str(feature_level),
    )
    return FeatureLevel(feature_level)


_AS_QUANT8 = (
    OperandCode.INT32,
    OperandCode.UINT32,
    OperandCode.TENSOR_INT32,
    OperandCode.TENSOR_QUANT8_ASYMM,
    OperandCode.OEM_SCALAR,
    OperandCode.TENSOR_OEM_BYTE,
)
"""Types for which the first two levels have one pair of figures."""


def _says_all(reduced: Capabilities, whole: Capabilities, level: FeatureLevel) -> bool:
    """Return whether reduced capabilities are the same for all types of the level."""
    figures = whole.operand_performance
    known = {c: pair for c, pair in figures.items() if OPERAND_TRAITS[c].feature_level <= level}
    # Below level 29 one pair of figures stands for relaxed tensors and scalars.
    one_relaxed = whole.relaxed_scalar == whole.relaxed_tensor
    return reduced.operand_performance == known and (one_relaxed or level >= FeatureLevel.LEVEL_3)


def _reduced(capabilities: Capabilities, level: FeatureLevel) -> Capabilities:
    """The capabilities that a level can express."""
    if level >= FeatureLevel.LEVEL_4:
        return capabilities
    table = {
        code: pair
        for code, pair in capabilities.operand_performance.items()
        if OPERAND_TRAITS[code].feature_level <= level
    }
    # Control flow is of level 30: nothing older has figures of it.
    reduced = replace(
        capabilities,
        operand_performance=table,
        if_performance=UNKNOWN_PERFORMANCE,
        while_performance=UNKNOWN_PERFORMANCE,
    )
    if level >= FeatureLevel.LEVEL_3:
        return reduced
    float32 = table.get(OperandCode.TENSOR_FLOAT32, UNKNOWN_PERFORMANCE)
    quant8 = table.get(OperandCode.TENSOR_QUANT8_ASYMM, UNKNOWN_PERFORMANCE)
    # Level 27 cannot say that a model is relaxed, so it computes all float32 exactly.
    relaxed = capabilities.relaxed_tensor if level >= FeatureLevel.LEVEL_2 else float32
    floats = dict.fromkeys((OperandCode.FLOAT32, OperandCode.TENSOR_FLOAT32), float32)
    both = floats | dict.fromkeys(_AS_QUANT8, quant8)
    return replace(
        reduced,
        operand_performance={
            code: pair for code, pair in both.items() if pair != UNKNOWN_PERFORMANCE
        },
        extension_performance={},
        relaxed_scalar=relaxed,
        relaxed_tensor=relaxed,
    )


PerformanceTable: TypeAlias = Mapping[OperandCode, PerformanceFigures]
"""Figures by type of operand."""


def non_extension_operand_performance(performance: PerformanceFigures) -> PerformanceTable:
    """A table with the same figures for every type of operand that is not an extension's.

    References
    ----------
    NNAPI ``nonExtensionOperandPerformance``.
    """
    codes = (code for code in OPERAND_TRAITS if code is not OperandCode.MODEL)
    return MappingProxyType(dict.fromkeys(codes, performance))


def update_performance(
    table: PerformanceTable, operand_type: OperandCode, performance: PerformanceFigures
) -> PerformanceTable:
    """A table with other figures for a type that it has.

    Raises
    ------
    NnapiError
        BAD_DATA if it has not.

    References
    ----------
    NNAPI ``update``, which changes the table in place.
    """
    require_data(
        operand_type in table,
        "the table has no such type",
        where="update_performance",
        expected=", ".join(str(int(code)) for code in table),
        actual=str(operand_type),
    )
    return MappingProxyType({**table, operand_type: performance})


def lookup_performance(table: PerformanceTable, operand_type: int) -> PerformanceFigures:
    """The figures of a type; of the next larger one that the table has, if it has not.

    Returns
    -------
    PerformanceFigures
        `armpy.compiler.devices.UNKNOWN_PERFORMANCE`, the largest float32 twice, after the
        last type.

    Notes
    -----
    NNAPI searches for the first entry that is not below the type, and does not look whether it is
    the type: to devices of the first two levels, whose tables have no TENSOR_QUANT8_ASYMM, it gives
    the figures of OEM_SCALAR that way, which are the right ones.

    References
    ----------
    NNAPI ``lookup``.
    """
    codes = sorted(table)
    # Only the lower bound: NNAPI does not look whether it has found the type itself.
    place = bisect.bisect_left(codes, operand_type)
    return table[codes[place]] if place < len(codes) else UNKNOWN_PERFORMANCE


def is_extension_operand_type(operand_type: int) -> bool:
    """Return whether an operand type is a vendor extension's; NNAPI ``isExtensionOperandType``."""
    return is_extension(operand_type)


def is_extension_operation_type(operation_type: int) -> bool:
    """Return whether an operation is a vendor extension's; NNAPI ``isExtensionOperationType``."""
    return is_extension(operation_type)


def is_scalar_type(operand_type: int) -> bool:
    """Return whether operands of a type that is not an extension's have no dimensions.

    Raises
    ------
    NnapiError
        BAD_DATA if there is no such type.

    References
    ----------
    NNAPI ``nonExtensionOperandTypeIsScalar``.
    """
    return not OPERAND_TRAITS[_known(operand_type, "is_scalar_type")].is_tensor


def size_of_data(operand_type: int, dimensions: Sequence[int] = ()) -> int:
    """Bytes that an operand's elements take.

    Parameters
    ----------
    operand_type : int
        No extension's.
    dimensions : sequence of int
        Sizes of a tensor.

    Returns
    -------
    int
        0 for a tensor with dimensions that are not known.

    Raises
    ------
    NnapiError
        BAD_DATA if there is no such type, or it is more than 32 bits can count.

    References
    ----------
    NNAPI ``nonExtensionOperandSizeOfData``, ``nonExtensionOperandSizeOfDataOverflowsUInt32``.
    """
    where = "size_of_data"
    traits = OPERAND_TRAITS[_known(operand_type, where)]
    if not traits.is_tensor:
        return traits.size_bytes
    # Without dimensions the rank is open, and NNAPI counts no bytes.
    size = math.prod(dimensions) * traits.size_bytes if dimensions else 0
    require_data(
        0 <= size <= MAX_SIZE_BYTES,
        "there are too many elements",
        where=where,
        expected=f"at most {MAX_SIZE_BYTES} bytes",
        actual=f"{size} bytes for {tuple(dimensions)}",
    )
    return size


def has_unspecified_dimensions(operand_type: int, dimensions: Sequence[int]) -> bool:
    """Return whether an operand is a tensor of unknown rank, or with unknown dimensions.

    Raises
    ------
    NnapiError
        BAD_DATA if there is no such type, or it is an extension's.

    References
    ----------
    NNAPI ``tensorHasUnspecifiedDimensions``.
    """
    is_tensor = not is_scalar_type(operand_type)
    return is_tensor and (not dimensions or 0 in dimensions)


def align_bytes_needed(index: int, length: int) -> int:
    """Bytes to leave out at a place in a pool so that elements of some length are aligned.

    Notes
    -----
    Elements of 4 bytes and more begin at multiples of 4, those of 2 and 3 at even places.

    References
    ----------
    NNAPI ``alignBytesNeeded``.
    """
    alignment = 4  # NNAPI aligns to 4 bytes at most
    if length < 2:
        alignment = 1
    elif length < 4:
        alignment = 2
    return -index % alignment


def _known(operand_type: int, where: str) -> OperandCode:
    """Check that a type is NNAPI's own."""
    if operand_type not in OPERAND_TRAITS:
        raise bad_data(
            "this is not a type of NNAPI",
            where=where,
            expected="an OperandCode; what an extension's type is, only its devices know",
            actual=hex(operand_type),
        )
    return OperandCode(operand_type)
