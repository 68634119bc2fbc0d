"""Speed and power figures of a device."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from armpy.backend.capabilities import PerformanceFigures
from armpy.types import DataType


@dataclass(frozen=True, slots=True)
class DeviceFigures:
    """A device's execution time and power against CpuRef on the same machine, by what it computes.

    Parameters
    ----------
    tensors : mapping of DataType to PerformanceFigures
        Operations whose first input is a tensor of the type.
    scalars : mapping of DataType to PerformanceFigures
        Operations whose first input is a scalar of the type, as NNAPI has them.
    extensions : mapping of str to PerformanceFigures
        By vendor extension's type, written ``com.acme.math.QUANT64``.
    relaxed_tensor, relaxed_scalar : PerformanceFigures, optional
        Float32 that may be computed as float16; that of float32 if None.
    if_, while_ : PerformanceFigures, optional
        What IF and WHILE take beside the graphs that they run.

    Notes
    -----
    Since 1.3. What is missing is not known.

    References
    ----------
    NNAPI ``V1_3::Capabilities``.
    """

    tensors: Mapping[DataType, PerformanceFigures] = field(default_factory=dict)
    scalars: Mapping[DataType, PerformanceFigures] = field(default_factory=dict)
    extensions: Mapping[str, PerformanceFigures] = field(default_factory=dict)
    relaxed_tensor: PerformanceFigures | None = None
    relaxed_scalar: PerformanceFigures | None = None
    if_: PerformanceFigures | None = None
    while_: PerformanceFigures | None = None
