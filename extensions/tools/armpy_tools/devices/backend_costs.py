"""Costs that placement goes by: declared, measured, or assumed of the kind of device."""

from __future__ import annotations

from collections.abc import Mapping

from armpy.backend import DeviceFigures, IBackendInternal, PerformanceFigures
from armpy.compiler.devices import FigureSource, declared_figures
from armpy.plugins.proxy.guard import device_of
from armpy.types import REFERENCE_BACKEND_ID, BackendId, DeviceType
from armpy_tools.devices.assumptions import ASSUMED_COPY, assumed_costs
from armpy_tools.devices.costs import BackendCosts, Rate
from armpy_tools.devices.kinds import TYPE_CLASSES
from armpy_tools.devices.store import FiguresStore


def costs_of(
    backend: IBackendInternal,
    store: FiguresStore | None = None,
    *,
    shares_host_memory: bool = True,
) -> BackendCosts:
    """Return the costs of a backend's work on this machine, by the best known figures.

    Parameters
    ----------
    backend : IBackendInternal
        Guarded.
    store : FiguresStore, optional
        This machine's if left out.
    shares_host_memory : bool
        Whether it works in the host's memory, for a backend that was not measured.

    Returns
    -------
    BackendCosts
        The backend's declared figure, times the reference's time; else the measured one; else
        what its kind of device lets one assume.
    """
    store = store or FiguresStore()
    record = store.read(backend.get_id(), backend.version)
    is_reference = backend.get_id() == REFERENCE_BACKEND_ID
    # CpuRef's are 1 by definition and say nothing of this machine.
    figures = None if is_reference else declared_figures(backend)
    if figures is not None:
        reference = reference_costs(store)
        measured = record.costs if record else None
        return _declared_costs(backend.get_id(), figures, reference, measured, shares_host_memory)
    if record is not None:
        return record.costs
    return assumed_costs(
        backend.get_id(), device_of(backend).device_type, shares_host_memory=shares_host_memory
    )


def is_power_known(backend: IBackendInternal) -> bool:
    """Return whether a backend declares figures, or works on the processor, whose power is 1.

    What `armpy calibrate` measures of another device is the power of the processor beside it.
    """
    has_own_power = device_of(backend).device_type in (DeviceType.ACCELERATOR, DeviceType.GPU)
    return not has_own_power or declared_figures(backend) is not None


def reference_costs(store: FiguresStore) -> BackendCosts:
    """Return the costs of CpuRef's work; of whatever version, as declared figures name none."""
    record = store.read(REFERENCE_BACKEND_ID)
    if record is not None:
        return record.costs
    return assumed_costs(REFERENCE_BACKEND_ID, DeviceType.CPU_REFERENCE)


def _declared_costs(
    backend_id: BackendId,
    figures: DeviceFigures,
    reference: BackendCosts,
    measured: BackendCosts | None,
    shares_host_memory: bool,
) -> BackendCosts:
    """The reference's costs times a backend's own figures; the copies as they were measured."""
    by_class = _by_class(figures)
    by_name = {"If": figures.if_, "While": figures.while_}
    known = {
        f"{family}/{types}": reference.rate_of(family, types)
        for family in ("products", "elements", "moves")
        for types in ("float32", *by_class)
    }
    rates = {
        key: _scaled(rate, by_name.get(key.partition("/")[0]) or _of_class(key, by_class))
        for key, rate in {**known, **reference.rates}.items()
    }
    # Declared figures say nothing of copies.
    copies = measured or BackendCosts(
        backend_id,
        FigureSource.DECLARED,
        part_s=reference.part_s,
        copy_in=ASSUMED_COPY,
        copy_out=ASSUMED_COPY,
        shares_host_memory=shares_host_memory,
    )
    return BackendCosts(
        backend_id,
        FigureSource.DECLARED,
        rates,
        copies.part_s,
        copies.copy_in,
        copies.copy_out,
        copies.shares_host_memory,
    )


def _by_class(figures: DeviceFigures) -> Mapping[str, PerformanceFigures]:
    """Figures by class of data types; of several types, the first that is declared."""
    by_class: dict[str, PerformanceFigures] = {}
    for data_type, pair in figures.tensors.items():
        by_class.setdefault(TYPE_CLASSES.get(data_type, "int"), pair)
    return by_class


def _of_class(key: str, by_class: Mapping[str, PerformanceFigures]) -> PerformanceFigures:
    """The figures that a rate's class of data types has; float32's if it has none."""
    types = key.rpartition("/")[2]
    return by_class.get(types) or by_class.get("float32") or PerformanceFigures()


def _scaled(rate: Rate, pair: PerformanceFigures) -> Rate:
    """A rate of the reference's, as a backend with these figures would have it."""
    return rate.scaled(pair.exec_time, pair.power_usage / pair.exec_time)
