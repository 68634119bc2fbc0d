"""Options of `IRuntime`, and properties of loading a network."""

from __future__ import annotations

from armpy_compat.pyarmnn import constants
from armpy_compat.pyarmnn.fields import (
    ObjectField,
    as_bool,
    as_signed,
    flag,
    text,
    unsigned,
)
from armpy_compat.pyarmnn.swig import SwigObject, wrong_arguments


class ExternalProfilingOptions(SwigObject):
    """Options of profiling by another process, which armpy does not have; see `IProfiler`."""

    m_EnableProfiling = flag()
    m_OutgoingCaptureFile = text()
    m_IncomingCaptureFile = text()
    m_FileOnly = flag()
    m_CapturePeriod = unsigned(10000)
    m_FileFormat = text("binary")
    m_TimelineEnabled = flag()


def _copy(other: ExternalProfilingOptions | None) -> ExternalProfilingOptions:
    copy = ExternalProfilingOptions()
    if other is not None:
        vars(copy).update(vars(other))
    return copy


class CreationOptions(SwigObject):
    """Options of `IRuntime`."""

    m_GpuAccTunedParameters: object = None
    m_EnableGpuProfiling = flag()
    m_DynamicBackendsPath = text()
    m_ProfilingOptions = ObjectField(
        ExternalProfilingOptions,
        "ExternalProfilingOptions *",
        _copy,
    )


class INetworkProperties(SwigObject):
    """Properties of loading a network, read-only.

    Takes asyncEnabled, inputSource, outputSource, and optionally profilingEnabled and
    detailsMethod; or, as in PyArmNN 20.08, importEnabled and exportEnabled.

    Raises
    ------
    TypeError
        For other arguments.
    """

    def __init__(self, *args: object) -> None:
        undefined = constants.MemorySource_Undefined
        try:
            if len(args) == 2:
                self._import, self._export = map(as_bool, args)
                args = (False, undefined, undefined)
            if not 3 <= len(args) <= 5:
                raise TypeError("3 to 5 arguments")
            defaults = (False, constants.ProfilingDetailsMethod_Undefined)
            settings = [*args, *defaults[len(args) - 3 :]]
            self._async_enabled, self._profiling = as_bool(settings[0]), as_bool(settings[3])
            self._sources = as_signed(settings[1]), as_signed(settings[2])
            self._details = as_signed(settings[4])
        except (TypeError, OverflowError) as error:
            raise wrong_arguments("new_INetworkProperties") from error

    _import = _export = False

    @property
    def m_AsyncEnabled(self) -> bool:
        """True if several threads are to run the network; armpy allows it for all networks."""
        return self._async_enabled

    @property
    def m_ProfilingEnabled(self) -> bool:
        """True if the network is profiled from the start."""
        return self._profiling

    @property
    def m_OutputNetworkDetailsMethod(self) -> int:
        """Details of layers in the profile, a ``ProfilingDetailsMethod_`` constant."""
        return self._details

    @property
    def m_InputSource(self) -> int:
        """Memory that inputs are in, a ``MemorySource_`` constant."""
        return self._sources[0]

    @property
    def m_OutputSource(self) -> int:
        """Memory that outputs are in, a ``MemorySource_`` constant."""
        return self._sources[1]

    @property
    def m_ImportEnabled(self) -> bool:
        """True if inputs are used where they are; a member of PyArmNN 20.08."""
        return self._import

    @property
    def m_ExportEnabled(self) -> bool:
        """True if outputs are written where they are; a member of PyArmNN 20.08."""
        return self._export
