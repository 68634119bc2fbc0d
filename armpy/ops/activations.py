"""Activation functions that other operations apply to their output."""

from __future__ import annotations

import enum


class FusedActivation(enum.Enum):
    """Clamp applied to the output of the operation that carries it.

    References
    ----------
    NNAPI FuseCode; TFLite ``ActivationFunctionType`` (its TANH and SIGN_BIT are refused by
    every kernel and do not exist here).
    """

    NONE = 0
    RELU = 1
    RELU1 = 2
    RELU6 = 3

    @property
    def bounds(self) -> tuple[float | None, float | None]:
        """Lowest and highest real value; None where unbounded."""
        return _BOUNDS[self]


_BOUNDS: dict[FusedActivation, tuple[float | None, float | None]] = {
    FusedActivation.NONE: (None, None),
    FusedActivation.RELU: (0.0, None),
    FusedActivation.RELU1: (-1.0, 1.0),
    FusedActivation.RELU6: (0.0, 6.0),
}
