"""Devices of a backend: names, speed, and numerics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from armpy.core.dataclass import dataclass
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
    """Figures by the type of the first input, a tensor."""
    scalars: Mapping[DataType, PerformanceFigures] = field(default_factory=dict)
    """Figures by type of the first input if that is a scalar, as in NNAPI."""
    extensions: Mapping[str, PerformanceFigures] = field(default_factory=dict)
    """Figures by a vendor extension's type, written ``com.acme.math.QUANT64``."""
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
    """Whether results are NaN wherever the operation's definition says so; False for maxima that
    drop NaN.
    """
    sums_float16: bool = False
    """Whether sums of float16 products are rounded to float16 at each step, not at the end.
    """
    flushes_subnormals: bool = False
    """Whether subnormal numbers are taken for zero, or become zero."""
    keeps_infinity: bool = True
    """Whether results are infinite wherever the definition says so; False for maxima that begin at
    the smallest finite number.
    """


@dataclass(frozen=True, slots=True)
class DeviceInfo:
    """One device that a backend runs layers on."""

    name: str = ""  # unique among the backend's devices; may be empty for an only one
    device_type: DeviceType = DeviceType.OTHER
    """Decides the order of backends if the application gives none."""
    feature_level: int = 30
    """Latest version of NNAPI's operations that it knows, as Android's API level, 27 to 30. NNAPI's
    models are cut or converted for older ones.
    """
    figures: DeviceFigures | None = None
    """Speed and power of the device; None to have the core measure or assume them."""
    numerics: Numerics = field(default_factory=Numerics)
