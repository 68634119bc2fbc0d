"""Devices of backends: facts without running anything, figures and their look-up."""

from __future__ import annotations

import enum
import logging
from dataclasses import field
from typing import TYPE_CHECKING

from armpy.backend import DeviceFigures, DeviceInfo, IBackendInternal, PerformanceFigures
from armpy.core.dataclass import dataclass
from armpy.errors import ArmpyError
from armpy.plugins.proxy.figures import check_figures
from armpy.plugins.proxy.guard import device_of, keeps_programs
from armpy.types import REFERENCE_BACKEND_ID, BackendId, DataType, DeviceType

if TYPE_CHECKING:
    from armpy.plugins.placers import Placers

_log = logging.getLogger("armpy.compiler")

_LARGEST = float.fromhex("0x1.fffffep+127")
"""NNAPI's ``FLT_MAX``."""

UNKNOWN_PERFORMANCE = PerformanceFigures(_LARGEST, _LARGEST)
"""What NNAPI's look-up answers for a type of operand of which nothing is known."""


class FigureSource(enum.StrEnum):
    """Source of figures, the most reliable first."""

    MEASURED = "measured"
    DECLARED = "declared"
    TYPICAL = "typical"
    ASSUMED = "assumed"


@dataclass(frozen=True, slots=True)
class DeviceFacts:
    """Facts about a backend's device.

    References
    ----------
    NNAPI ``IDevice``: getType, getVersionString, getSupportedExtensions, getCapabilities_1_3,
    getNumberOfCacheFilesNeeded.
    """

    backend: BackendId
    """The backend's id, which is the device's name."""
    type: DeviceType
    version: str = ""
    """The backend's own; empty if it says none."""
    feature_level: int = 30
    """The latest version of NNAPI's operations that it knows, as Android's API level."""
    extensions: tuple[str, ...] = ()
    """Names of the vendor extensions that it has."""
    num_cache_files: int = 0
    """Number of files in which the core keeps one compiled part: 1, or 0 if it keeps none."""
    num_data_cache_files: int = 0
    figures: DeviceFigures | None = None
    """Speed and power against CpuRef; None if they are not known."""
    figures_source: FigureSource = FigureSource.ASSUMED
    """DECLARED by the backend, MEASURED here, or TYPICAL of devices of its kind; ASSUMED if there
    are none. Those of CpuRef are 1 by definition, and so DECLARED. With MEASURED figures, those of
    types that were not measured are the typical ones."""
    device: DeviceInfo = field(default_factory=DeviceInfo)
    """The device itself, and how it computes."""
    others: tuple[DeviceInfo, ...] = ()
    """The backend's other devices, which the option ``device`` chooses."""
    free_bytes: int | None = None
    """Free bytes of the device's memory now; None if the backend does not say it."""
    is_isolated: bool = False
    """Whether the backend runs in a process of its own; `Runtime.isolation` says how that is."""


def device_facts(backend: IBackendInternal, placers: Placers | None = None) -> DeviceFacts:
    """Gather the facts about a backend's device.

    Raises BackendError if the backend raises.

    Parameters
    ----------
    backend : IBackendInternal
        In its proxy, see `armpy.plugins.proxy.guard.BackendProxy`.
    placers : Placers, optional
        Know figures that were measured on this machine.
    """
    figures, source = declared_figures(backend), FigureSource.DECLARED
    if figures is None and placers:
        figures = placers.measured_figures(backend.get_id(), backend.version)
        source = FigureSource.MEASURED
    device, num_files = device_of(backend), int(keeps_programs(backend))
    if figures is None:
        figures = _typical_figures(backend, device.name)
        source = FigureSource.TYPICAL if figures else FigureSource.ASSUMED
    elif source is FigureSource.MEASURED:
        figures = _completed(figures, _typical_figures(backend, device.name) or DeviceFigures())
    return DeviceFacts(
        backend.get_id(),
        device.device_type,
        backend.version,
        device.feature_level,
        tuple(backend.supported_extensions),
        num_files,
        num_files,
        figures,
        source,
        device,
        tuple(sibling for sibling in backend.get_devices() if sibling.name != device.name),
        backend.get_free_memory(device.name),
    )


def declared_figures(backend: IBackendInternal) -> DeviceFigures | None:
    """Speed and power that a backend declares of its device; None if it declares none."""
    if backend.get_id() == REFERENCE_BACKEND_ID:
        # 1 for everything, as the reference is what others are set against.
        same = PerformanceFigures(1.0, 1.0)
        every = dict.fromkeys(DataType, same)
        return DeviceFigures(every, every, {}, same, same, same, same)
    return device_of(backend).figures


def _completed(figures: DeviceFigures, others: DeviceFigures) -> DeviceFigures:
    """Figures, with others for what they leave out."""
    return DeviceFigures(
        {**others.tensors, **figures.tensors},
        {**others.scalars, **figures.scalars},
        {**others.extensions, **figures.extensions},
        figures.relaxed_tensor or others.relaxed_tensor,
        figures.relaxed_scalar or others.relaxed_scalar,
        figures.if_ or others.if_,
        figures.while_ or others.while_,
    )


def _typical_figures(backend: IBackendInternal, device: str) -> DeviceFigures | None:
    """Speed and power of devices of the same kind; None if they are not known or cannot be."""
    figures = backend.get_typical_figures(device)
    if figures is None:
        return None
    try:
        return check_figures(figures, backend.get_id())
    except ArmpyError as error:
        # Networks run without them.
        _log.warning("figures are not used: %s", error)
        return None


def lookup_performance(
    figures: DeviceFigures | None,  # None if nothing is known
    data_type: DataType | str,  # the type of elements; the name of a vendor extension's type
    *,
    is_scalar: bool = False,  # of a scalar instead of a tensor
    is_relaxed: bool = False,  # for float32, that it may be computed as float16
) -> PerformanceFigures:
    """Figures of operations on one type of operand.

    Returns
    -------
    PerformanceFigures
        `UNKNOWN_PERFORMANCE` if nothing is known of the type.

    References
    ----------
    NNAPI ``lookup(operandPerformance, type)``.
    """
    if figures is None:
        return UNKNOWN_PERFORMANCE
    if isinstance(data_type, str):
        return figures.extensions.get(data_type, UNKNOWN_PERFORMANCE)
    if is_relaxed and data_type is DataType.FLOAT32:
        relaxed = figures.relaxed_scalar if is_scalar else figures.relaxed_tensor
        if relaxed is not None:
            return relaxed
    table = figures.scalars if is_scalar else figures.tensors
    return table.get(data_type, UNKNOWN_PERFORMANCE)
