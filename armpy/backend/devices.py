"""Devices of a backend: names, speed, and numerics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from armpy.types import DataType, DeviceType


@dataclass(frozen=True, slots=True)
class PerformanceFigures:
    """A device's own estimate against the reference on the same machine; lower is better.

    References
    ----------
    NNAPI PerformanceInfo.
    """

    # 1.0 is as CpuRef.
    exec_time: float = 1.0
    power_usage: float = 1.0


@dataclass(frozen=True, slots=True)
class DeviceFigures:
    """A device's execution time and power against CpuRef on the same machine, by data type.

    Notes
    -----
    A missing figure is not known.

    References
    ----------
    NNAPI ``V1_3::Capabilities``.
    """

    tensors: Mapping[DataType, PerformanceFigures] = field(default_factory=dict)
    """Operations whose first input is a tensor of the type."""
    scalars: Mapping[DataType, PerformanceFigures] = field(default_factory=dict)
    """Operations whose first input is a scalar of the type, as NNAPI has them."""
    extensions: Mapping[str, PerformanceFigures] = field(default_factory=dict)
    """By vendor extension's type, written ``com.acme.math.QUANT64``."""
    # Float32 that may be computed as float16; that of float32 if None.
    relaxed_tensor: PerformanceFigures | None = None
    relaxed_scalar: PerformanceFigures | None = None
    # What IF and WHILE take beside the graphs that they run.
    if_: PerformanceFigures | None = None
    while_: PerformanceFigures | None = None


@dataclass(frozen=True, slots=True)
class Numerics:
    """Deviations of a device's floating-point arithmetic from IEEE 754 in the tensor's own type.

    Notes
    -----
    Applications read it (``armpy devices``), and the conformance kit judges by it:
    only declared deviations are allowed.
    """

    keeps_nan: bool = True
    """Whether a result is NaN wherever the definition of the operation says so. Comparisons that
    drop NaN, as in the maximum of many processors, make it False.
    """
    sums_float16: bool = False
    """Whether sums of float16 products are rounded to float16 at each step, and not kept in float32
    until the end.
    """
    flushes_subnormals: bool = False
    """Whether numbers below the smallest normal one are taken for zero, or become zero."""
    keeps_infinity: bool = True
    """Whether a result is infinite wherever the definition of the operation says so. Devices whose
    maxima begin at the smallest finite number give that instead, and make it False.
    """


@dataclass(frozen=True, slots=True)
class DeviceInfo:
    """One device that a backend runs layers on."""

    name: str = ""  # unique among the backend's devices; may be empty for an only one
    device_type: DeviceType = DeviceType.OTHER
    """Kind of device; decides the order of backends where the application gives none."""
    feature_level: int = 30
    """The latest version of NNAPI's operations that it knows, as Android's API level, 27 to 30.
    Models of the Neural Networks API are cut or converted for a device of an older one.
    """
    figures: DeviceFigures | None = None
    """How fast it says it is; None if the core is to measure or assume."""
    numerics: Numerics = field(default_factory=Numerics)
