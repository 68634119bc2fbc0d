"""The devices that models run on: armpy's backends."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from types import MappingProxyType, NoneType
from typing import TYPE_CHECKING

from armpy.backend import OptionScope, PreparationRequest
from armpy.compiler.devices import DeviceFacts, device_facts
from armpy.core.arguments import check_instance
from armpy.core.vlog import is_on, vlog
from armpy.errors import ArmpyError, BackendUnavailableError
from armpy.execution import Runtime, RuntimeOptions
from armpy.plugins import BackendProxy, BackendRegistry
from armpy.plugins.placers import Placers
from armpy.types import REFERENCE_BACKEND_ID, BackendId, DeviceType
from armpy_nnapi.capabilities import Capabilities, capabilities_from
from armpy_nnapi.codes import (
    LATEST_FEATURE_LEVEL,
    LOWEST_FEATURE_LEVEL,
    DeviceTypeCode,
    FeatureLevel,
)
from armpy_nnapi.extensions.allow_list import AllowList
from armpy_nnapi.extensions.extensions import TypeManager
from armpy_nnapi.lowering.lower_model import layer_levels
from armpy_nnapi.lowering.shapes import with_known_dimensions
from armpy_nnapi.lowering.support import Answer, supported_operations
from armpy_nnapi.results import (
    bad_data,
    bad_state,
    check_index,
    check_kind,
    require_data,
    result_codes,
    unexpected_null,
)
from armpy_nnapi.validation.described import IModel
from armpy_nnapi.validation.versions import Levels, operation_levels

if TYPE_CHECKING:
    from armpy_nnapi.description.model_description import ModelDescription

_SOME_DEVICES = "Pass some of DeviceManager.devices"

REFERENCE_DEVICE_NAME = "nnapi-reference"
"""Name of the device that is CpuRef."""

FAST_MATH_OPTION = "fast_math_enabled"
"""Model option, off by default, with which a backend may compute float32 less exactly.

References
----------
Arm NN's model option ``FastMathEnabled``; NNAPI ``relaxComputationFloat32toFloat16``.
"""

DEVICE_TYPES: Mapping[DeviceType, DeviceTypeCode] = MappingProxyType(
    {
        DeviceType.ACCELERATOR: DeviceTypeCode.ACCELERATOR,
        DeviceType.GPU: DeviceTypeCode.GPU,
        DeviceType.CPU_COMPILED: DeviceTypeCode.CPU,
        DeviceType.CPU_REFERENCE: DeviceTypeCode.CPU,
        DeviceType.OTHER: DeviceTypeCode.OTHER,
    }
)
"""NNAPI's names of the kinds of device that backends are for."""


class Device:
    """One device: a backend.

    Parameters
    ----------
    manager : DeviceManager
        Manager that the device belongs to.
    """

    def __init__(self, backend: BackendProxy, manager: DeviceManager) -> None:
        self._backend = backend
        self._manager = manager

    @property
    def manager(self) -> DeviceManager:
        """The manager that it belongs to."""
        return self._manager

    @property
    def backend_id(self) -> BackendId:
        """The backend's id."""
        return self._backend.get_id()

    @property
    def name(self) -> str:
        """The backend's id; ``"nnapi-reference"`` for CpuRef."""
        is_reference = self.backend_id == REFERENCE_BACKEND_ID
        return REFERENCE_DEVICE_NAME if is_reference else self.backend_id

    @property
    def type(self) -> DeviceTypeCode:
        """Kind of the device."""
        return DEVICE_TYPES[self._backend.device.device_type]

    @property
    def version(self) -> str:
        """The backend's version; ``"UNKNOWN"`` if it does not say one."""
        return self._backend.version or "UNKNOWN"

    @property
    def feature_level(self) -> FeatureLevel:
        """The latest version of NNAPI's operations that it is given; armpy's if it has more.

        Raises
        ------
        NnapiError
            BAD_STATE if the backend says a level that there is not.
        """
        if self.level < LOWEST_FEATURE_LEVEL:
            raise bad_state(f"there is no feature level {self.level}", where=self.name)
        return FeatureLevel(min(self.level, LATEST_FEATURE_LEVEL))

    @property
    def level(self) -> int:
        """The feature level as the backend says it, valid or not."""
        return self._backend.device.feature_level

    @property
    def facts(self) -> DeviceFacts:
        """Facts about it, the same as in `Runtime.devices`."""
        return device_facts(self._backend, self._manager.placers)

    @property
    def capabilities(self) -> Capabilities:
        """Speed and power by type of operand, as declared or as ``armpy calibrate`` measured.

        References
        ----------
        NNAPI ``IDevice::getCapabilities_1_3``.
        """
        return capabilities_from(self.facts.figures)

    @property
    def declares_figures(self) -> bool:
        """Return whether the backend states its speed and power, which CpuRef has by definition."""
        return self._backend.device.figures is not None

    @property
    def number_of_cache_files_needed(self) -> tuple[int, int]:
        """Numbers of model files and of data files that one prepared model is kept in.

        References
        ----------
        NNAPI ``IDevice::getNumberOfCacheFilesNeeded``.
        """
        # One for code and one for data, as `Compilation.set_caching` writes them.
        count = int(self._backend.get_programs() is not None)
        return count, count

    @property
    def supported_extensions(self) -> tuple[str, ...]:
        """Names of the vendor extensions whose operations it can run."""
        return tuple(self._backend.supported_extensions)

    @property
    def has_fast_math(self) -> bool:
        """Return whether it has the option `FAST_MATH_OPTION`."""
        return any(
            option.name == FAST_MATH_OPTION
            and option.scope is OptionScope.MODEL
            and option.default is False
            for option in self._backend.options
        )

    def get_extension_support(self, extension_name: str) -> bool:
        """Return whether it has a vendor extension that this application may use.

        Raises
        ------
        NnapiError
            UNEXPECTED_NULL without a name.

        Notes
        -----
        False for an application that the allow list forbids to use extensions.
        `supported_extensions` has the device's extensions for every application.
        """
        if extension_name is None:
            raise unexpected_null("the extension's name", where=self.name)
        is_allowed = self._manager.extensions.is_allowed
        return is_allowed and extension_name in self.supported_extensions

    def get_supported_operations(self, model: IModel) -> list[bool]:
        """Return for each operation of a finished model, in order, whether the device can run it.

        Raises
        ------
        NnapiError
            BAD_STATE if the model is not finished.
        """
        return self._manager.get_supported_operations_for_devices(model, [self])

    def wait(self) -> None:
        """Return when the device can be used.

        Raises
        ------
        NnapiError
            OP_FAILED if it does not answer.
        """
        with result_codes(f"Device '{self.name}'"):
            # Anything that the backend has to answer does; NNAPI pings the driver's service.
            self._backend.get_layer_support(PreparationRequest())

    def __repr__(self) -> str:
        return f"Device({self.name!r}, {self.type.name}, version {self.version})"


class DeviceManager:
    """All devices, and the runtimes that run models on them.

    Parameters
    ----------
    options : RuntimeOptions, optional
        Choice and settings of the backends.
    application : str
        The application's name, for the list of those that may use extensions.
    extensions_allow_list : path, optional
        Path of the allow list; see `armpy_nnapi.extensions.allow_list`.
    compile : {"wait", "background"}
        Whether `Compilation.finish` waits until all devices have compiled, or the others answer
        until then.

    Raises
    ------
    NnapiError
        BAD_DATA if there is no such way of compiling.
    ArmpyError
        From whatever asks for devices first, if the options cannot be used.

    Notes
    -----
    Backends are looked for when a device is first asked for. All methods may be called from
    several threads. Models, compilations and executions use the default manager, see
    `default_manager`, unless they are given another one.

    References
    ----------
    NNAPI ``DeviceManager``.
    """

    def __init__(
        self,
        options: RuntimeOptions | None = None,
        *,
        application: str = "",
        extensions_allow_list: str | os.PathLike[str] | None = None,
        compile: str = "wait",
    ) -> None:
        require_data(
            compile in ("wait", "background"),
            "unknown way of compiling",
            where="DeviceManager.compile",
            expected="'wait' or 'background'",
            actual=repr(compile),
        )
        self.in_background = compile == "background"
        fix = 'Write RuntimeOptions(backends=["CpuRef"])'
        check_instance(options, "DeviceManager.options", RuntimeOptions, NoneType, fix=fix)
        self._options = RuntimeOptions() if options is None else options
        self._application = application
        self._allow_list_path = extensions_allow_list
        # Reentrant, as `devices`, `extensions` and `runtime` ask each other with it held.
        self._lock = threading.RLock()
        # By the chosen devices (None for all) and whether float32 may be relaxed: compilations that
        # ask for the same share a runtime, and so its backends and threads.
        self._runtimes: dict[tuple[frozenset[BackendId] | None, bool], Runtime] = {}
        self._registry = self._options.registry
        self._devices: tuple[Device, ...] | None = None
        self._extensions: TypeManager | None = None
        self._placers: Placers | None = None
        self._is_closed = False

    @property
    def devices(self) -> tuple[Device, ...]:
        """Every device, in the order in which armpy prefers backends; the reference last."""
        with self._lock:
            if self._devices is None:
                registry = self._found_registry()
                ids = self.runtime().get_device_spec().supported_backends
                # Stable: all others keep the order in which armpy prefers them.
                ordered = sorted(ids, key=lambda backend_id: backend_id == REFERENCE_BACKEND_ID)
                self._devices = tuple(
                    Device(BackendProxy(registry.get(backend_id)), self) for backend_id in ordered
                )
                for device in self._devices if is_on.manager else ():
                    vlog(
                        "manager",
                        "device %s, feature level %d, version '%s'",
                        device.name,
                        device.feature_level,
                        device.version,
                    )
            return self._devices

    @property
    def device_count(self) -> int:
        """Number of devices."""
        return len(self.devices)

    def get_device(self, index: int) -> Device:
        """The device of an index.

        Raises
        ------
        NnapiError
            BAD_DATA if there is none.
        """
        devices = self.devices
        return devices[check_index(index, len(devices), "device", "DeviceManager.get_device")]

    def get_device_of_backend(self, backend_id: BackendId) -> Device:
        """The device of a backend.

        Raises
        ------
        BackendUnavailableError
            If there is no such backend, or it cannot be used.
        """
        for device in self.devices:
            if device.backend_id == backend_id:
                return device
        # This raises with the reason if it is not installed or cannot be loaded.
        self._found_registry().get(backend_id)
        raise BackendUnavailableError(
            f"backend '{backend_id}' is not one of the devices",
            expected=", ".join(device.backend_id for device in self.devices),
            fix="Allow it in the options",
        )

    @property
    def placers(self) -> Placers:
        """Plugins that know measured figures and decide by preferences; armpy-tools has one."""
        with self._lock:
            if self._placers is None:
                self._placers = Placers(self._found_registry())
            return self._placers

    @property
    def extensions(self) -> TypeManager:
        """The codes and types of vendor extensions."""
        with self._lock:
            if self._extensions is None:
                self._extensions = TypeManager(
                    [device._backend for device in self.devices],
                    AllowList.configured(self._allow_list_path),
                    self._application,
                )
            return self._extensions

    def get_supported_operations_for_devices(
        self, model: IModel, devices: Sequence[Device]
    ) -> list[bool]:
        """Return for each operation of a finished model whether one of some devices can run it.

        Returns
        -------
        list of bool
            Answers in the order in which the operations were added. False also where support is
            known at execution only; a compilation for these devices decides it then.

        Raises
        ------
        NnapiError
            UNEXPECTED_NULL without a model or device; BAD_DATA without devices, or if one is
            given twice or is another manager's, also than the model's; BAD_STATE if the model is
            not finished.
        """
        where = "get_supported_operations_for_devices"
        if model is None or devices is None:
            raise unexpected_null("the model or list of devices", where=where)
        require_data(len(devices) > 0, "no device is given", where=where, fix=_SOME_DEVICES)
        order = model.check_finished(where).order
        if common_manager(devices, where) is not self:
            raise bad_data(
                "the devices are another manager's", where=where, actual=repr(devices[0])
            )
        model.check_manager(self, where)
        supported = [False] * len(order)
        answers = self.ask(model.description, devices)
        for number, answer in zip(order, answers, strict=True):
            # The description's operations are sorted, the caller's are in the order of adding.
            supported[number] = bool(answer)
        return supported

    def ask(
        self, description: ModelDescription, devices: Sequence[Device], *, is_relaxed: bool = False
    ) -> list[Answer]:
        """Ask some devices about each operation of a valid model.

        Returns
        -------
        list of (Support or None)
            See `armpy_nnapi.lowering.support.supported_operations`.
        """

        def runtime_of(level: int) -> Runtime | None:
            # A runtime of its own for those that have the level: the others may not be asked at
            # all.
            able = [device for device in devices if device.level >= level]
            return self.runtime(able, is_relaxed=is_relaxed) if able else None

        lookup = self.extensions.lookup([device.backend_id for device in devices])
        levels = self._levels(description, devices)
        return supported_operations(description, runtime_of, lookup, levels)

    def layer_levels(
        self, description: ModelDescription, devices: Sequence[Device]
    ) -> dict[str, int]:
        """The feature levels that devices need for layers; nothing if all have the latest one."""
        levels = self._levels(description, devices)
        return {} if levels is None else layer_levels(description, levels)

    def _levels(self, description: ModelDescription, devices: Sequence[Device]) -> Levels | None:
        """The feature levels of a model's operations; None if all devices have the latest one."""
        # The usual case, which needs no analysis of the model.
        if all(device.level >= LATEST_FEATURE_LEVEL for device in devices):
            return None
        # A rank that is open needs a newer level, but not where it follows from others: devices
        # are given layers of known shapes.
        lookup = self.extensions.lookup([device.backend_id for device in devices])
        return operation_levels(with_known_dimensions(description, lookup))

    def runtime(
        self, devices: Sequence[Device] | None = None, *, is_relaxed: bool = False
    ) -> Runtime:
        """The runtime of a set of devices, made when it is first asked for.

        Parameters
        ----------
        devices : sequence of Device, optional
            All that the options allow if left out.
        is_relaxed : bool
            Whether float32 may be computed as if it were float16: backends that have the option
            `FAST_MATH_OPTION` are given it, unless the manager's options say otherwise.

        Raises
        ------
        NnapiError
            BAD_STATE if the manager is closed.
        ArmpyError
            If a backend cannot be used, or there is none.
        """
        with self._lock:
            if self._is_closed:
                raise bad_state("the manager is closed", where="DeviceManager.runtime")
            # The found registry, so that no runtime looks for backends a second time.
            options = replace(self._options, registry=self._found_registry())
            if is_relaxed:
                faster = self._with_fast_math(self.devices if devices is None else devices)
                # If no device has the option, the exact runtime is used, and none is made twice.
                is_relaxed = bool(faster)
                options = replace(options, backend_options={**options.backend_options, **faster})
            chosen = None if devices is None else frozenset(d.backend_id for d in devices)
            key = chosen, is_relaxed
            if key not in self._runtimes:
                if chosen is not None:
                    # Of several that can run an operation, the one that armpy prefers does.
                    ids = [d.backend_id for d in self.devices if d.backend_id in chosen]
                    options = replace(options, backends=ids)
                self._runtimes[key] = Runtime(options)
            return self._runtimes[key]

    def _with_fast_math(self, devices: Sequence[Device]) -> dict[BackendId, Mapping[str, object]]:
        """Options that let backends compute faster and less exactly, by backend."""
        options: dict[BackendId, Mapping[str, object]] = {}
        for device in devices:
            own = self._options.backend_options.get(device.backend_id, {})
            # Models of the lowest level cannot say it, so it is lost with the conversion.
            knows_relaxed = device.level > LOWEST_FEATURE_LEVEL
            if knows_relaxed and device.has_fast_math and FAST_MATH_OPTION not in own:
                # The application's other options of the backend stay unchanged.
                options[device.backend_id] = {**own, FAST_MATH_OPTION: True}
        return options

    def _found_registry(self) -> BackendRegistry:
        if self._registry is None:
            self._registry = BackendRegistry.discover(self._options.plugin_options())
        return self._registry

    def close(self) -> None:
        """Release everything that backends have made; nothing can be run afterwards.

        Raises
        ------
        ArmpyError
            The first error of a backend; everything is closed all the same.
        """
        with self._lock:
            self._is_closed = True
            # All are closed even if one fails; its error is raised at the end.
            runtimes = [*self._runtimes.values()]
            self._runtimes.clear()
            errors = []
            for runtime in runtimes:
                try:
                    runtime.close()
                except ArmpyError as error:
                    errors.append(error)
            if self._registry is not None and self._options.registry is None:
                # A registry that came with the options belongs to the application, which closes it.
                self._registry.close()
        if errors:
            raise errors[0]

    def __enter__(self) -> DeviceManager:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()


def common_manager(devices: Sequence[Device], where: str) -> DeviceManager:
    """Check a list of devices, and give the manager that they belong to.

    Raises
    ------
    NnapiError
        UNEXPECTED_NULL if one is None; BAD_DATA if there is none, one is given twice, or they
        belong to several managers.
    """
    require_data(len(devices) > 0, "no device is given", where=where, fix=_SOME_DEVICES)
    for position, device in enumerate(devices):
        if device is None:
            raise unexpected_null(f"device {position}", where=where)
        check_kind(device, Device, where, "Take them from DeviceManager.devices")
        if device in devices[:position]:
            raise bad_data("a device is given twice", where=where, actual=device.name)
        if device not in devices[0].manager.devices:
            raise bad_data("the device is another manager's", where=where, actual=repr(device))
    return devices[0].manager


@cache
def default_manager() -> DeviceManager:
    """The default manager, with every installed backend; made at first use."""
    return DeviceManager()
