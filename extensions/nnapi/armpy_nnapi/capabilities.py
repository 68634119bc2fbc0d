"""Capabilities: how fast, and how costly in power, a device is, by type of operand."""

from __future__ import annotations

from collections.abc import Mapping

from armpy.backend import DeviceFigures, PerformanceFigures
from armpy.compiler.devices import UNKNOWN_PERFORMANCE, lookup_performance
from armpy.core.dataclass import dataclass
from armpy_nnapi.codes import OPERAND_TRAITS, OperandCode


@dataclass(frozen=True, slots=True)
class Capabilities:
    """Figures of a device against the reference; lower is better.

    Notes
    -----
    `UNKNOWN_PERFORMANCE`, the largest float32 twice, stands for unknown figures.

    References
    ----------
    NNAPI ``V1_3::Capabilities``.
    """

    # Of FLOAT32 and TENSOR_FLOAT32 that may be computed as float16.
    relaxed_scalar: PerformanceFigures
    relaxed_tensor: PerformanceFigures
    operand_performance: Mapping[OperandCode, PerformanceFigures]
    """Performance of operations whose first input is of the type."""
    extension_performance: Mapping[str, PerformanceFigures]
    """Figures for types of vendor extensions, by name."""
    # What IF and WHILE take beside the models that they run.
    if_performance: PerformanceFigures
    while_performance: PerformanceFigures

    def lookup(self, operand_type: OperandCode | str) -> PerformanceFigures:
        """The figures of a type of operand, or of a vendor extension's type by its name.

        References
        ----------
        NNAPI ``lookup(operandPerformance, type)``, for a type that the list has.
        """
        if isinstance(operand_type, str):
            return self.extension_performance.get(operand_type, UNKNOWN_PERFORMANCE)
        return self.operand_performance.get(operand_type, UNKNOWN_PERFORMANCE)


def capabilities_from(figures: DeviceFigures | None) -> Capabilities:
    """Capabilities from a device's figures; unknown performance where there are none."""
    figures = figures or DeviceFigures()
    by_code = {code: _performance(figures, code) for code in OPERAND_TRAITS}
    # By identity: a device may declare the very figures that stand for unknown.
    known = {code: pair for code, pair in by_code.items() if pair is not UNKNOWN_PERFORMANCE}

    def float32(code: OperandCode, relaxed: PerformanceFigures | None) -> PerformanceFigures:
        # A device that says nothing of relaxed float32 takes as long as for float32.
        return relaxed or known.get(code, UNKNOWN_PERFORMANCE)

    return Capabilities(
        float32(OperandCode.FLOAT32, figures.relaxed_scalar),
        float32(OperandCode.TENSOR_FLOAT32, figures.relaxed_tensor),
        known,
        dict(figures.extensions),
        figures.if_ or UNKNOWN_PERFORMANCE,
        figures.while_ or UNKNOWN_PERFORMANCE,
    )


def _performance(figures: DeviceFigures, code: OperandCode) -> PerformanceFigures:
    traits = OPERAND_TRAITS[code]
    # MODEL operands are graphs; IF and WHILE have figures of their own.
    if traits.data_type is None:
        return UNKNOWN_PERFORMANCE
    return lookup_performance(figures, traits.data_type, is_scalar=not traits.is_tensor)
