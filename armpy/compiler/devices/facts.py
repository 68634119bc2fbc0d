"""Device facts: what can be asked of a backend without running anything."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field

from armpy.backend import (
    DeviceFigures,
    DeviceInfo,
    IBackendInternal,
    PerformanceFigures,
)
from armpy.compiler.devices.costs import FigureSource
from armpy.compiler.devices.store import FiguresStore
from armpy.errors import ArmpyError
from armpy.plugins.proxy.figures import check_figures
from armpy.plugins.proxy.guard import device_of, keeps_programs
from armpy.types import REFERENCE_BACKEND_ID, BackendId, DataType, DeviceType

_log = logging.getLogger("armpy.compiler")


@dataclass(frozen=True, slots=True)
class DeviceFacts:
    """Facts about the device behind a backend.

    Parameters
    ----------
    backend : str
        The backend's id, which is the device's name.
    type : DeviceType
    version : str
        The backend's own; empty if it says none.
    feature_level : int
        The latest version of NNAPI's operations that it knows, as Android's API level.
    extensions : tuple of str
        Names of the vendor extensions that it has.
    num_cache_files, num_data_cache_files : int
        In how many files the core keeps one compiled part: 1 each, or 0 if it keeps none.
    figures : DeviceFigures, optional
        Speed and power against CpuRef; None if they are not known.
    figures_source : FigureSource
        DECLARED by the backend, MEASURED here, or TYPICAL of devices of its kind; ASSUMED if there
        are none. Those of CpuRef are 1 by definition, and so DECLARED.
    device : DeviceInfo
        The device itself, and how it computes.
    others : tuple of str
        Names of the backend's other devices, which the option ``device`` chooses.
    free_bytes : int, optional
        Of its memory, now; None if the backend does not say it.
    is_isolated : bool
        Whether the backend runs in a process of its own; `Runtime.isolation` says how that is.

    References
    ----------
    NNAPI ``IDevice``: getType, getVersionString, getSupportedExtensions, getCapabilities_1_3,
    getNumberOfCacheFilesNeeded.
    """

    backend: BackendId
    type: DeviceType
    version: str = ""
    feature_level: int = 30
    extensions: tuple[str, ...] = ()
    num_cache_files: int = 0
    num_data_cache_files: int = 0
    figures: DeviceFigures | None = None
    figures_source: FigureSource = FigureSource.ASSUMED
    device: DeviceInfo = field(default_factory=DeviceInfo)
    others: tuple[str, ...] = ()
    free_bytes: int | None = None
    is_isolated: bool = False


def device_facts(backend: IBackendInternal, store: FiguresStore | None = None) -> DeviceFacts:
    """Gather the facts about a backend's device.

    Parameters
    ----------
    backend : IBackendInternal
        In its proxy, see `armpy.plugins.proxy.guard.BackendProxy`.
    store : FiguresStore, optional
        Where measured figures are; this machine's if left out.

    Raises
    ------
    BackendError
        If the backend raises.
    """
    figures, source = declared_figures(backend), FigureSource.DECLARED
    if figures is None:
        record = (store or FiguresStore()).read(backend.get_id(), backend.version)
        figures = record.figures if record else None
        source = FigureSource.MEASURED
    device, num_files = device_of(backend), int(keeps_programs(backend))
    if figures is None:
        figures = _typical_figures(backend, device.name)
        source = FigureSource.TYPICAL if figures else FigureSource.ASSUMED
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
        tuple(one.name for one in backend.get_devices() if one.name != device.name),
        backend.get_free_memory(device.name),
    )


def declared_figures(backend: IBackendInternal) -> DeviceFigures | None:
    """Speed and power that a backend declares of its device; None if it declares none."""
    if backend.get_id() == REFERENCE_BACKEND_ID:
        return _reference_figures()
    return device_of(backend).figures


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


def _reference_figures() -> DeviceFigures:
    """1 for everything, as the reference is what others are set against."""
    one = PerformanceFigures(1.0, 1.0)
    every = dict.fromkeys(DataType, one)
    return DeviceFigures(every, every, {}, one, one, one, one)
