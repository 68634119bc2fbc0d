"""Facts of a backend: its description of itself, read once and checked."""

from __future__ import annotations

import logging
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from armpy.backend import (
    BackendOption,
    Capabilities,
    DeviceFigures,
    DeviceInfo,
    Extension,
    ExtensionOperand,
    ExtensionOperation,
    IBackendInternal,
    Numerics,
    OptionScope,
)
from armpy.core.dataclass import dataclass
from armpy.errors import ArmpyError, BackendError, InvalidArgumentError
from armpy.ops.operation import Operation
from armpy.plugins.discovery.module_files import code_digest
from armpy.plugins.proxy.guarded_call import (
    ask_backend,
    ask_method,
    call_backend,
    describe,
    read_backend,
    wrong_type,
)
from armpy.types import BackendId, DeviceType

_log = logging.getLogger("armpy.plugins")

T = TypeVar("T")

DEVICE_OPTION = "device"
"""Option by which an application chooses one of several devices."""

_DEVICE_FIELDS: dict[str, type] = {
    "name": str,
    "device_type": DeviceType,
    "feature_level": int,
    "numerics": Numerics,
}

_devices: weakref.WeakKeyDictionary[IBackendInternal, tuple[DeviceInfo, ...]]
_devices = weakref.WeakKeyDictionary()
"""By backend, as its devices are to be the same for every runtime."""


@dataclass(frozen=True, slots=True)
class BackendFacts:
    """Facts that a backend states of itself."""

    backend_id: BackendId
    api_version: str
    version: str
    code: str
    """Digest of the state of its package's files; empty for armpy's own, which have versions."""
    devices: tuple[DeviceInfo, ...]
    """At least one device, with figures that can be used or none."""
    capabilities: Capabilities
    options: tuple[BackendOption, ...]
    """Options, with `DEVICE_OPTION` where there are several devices."""
    extensions: tuple[Extension, ...]
    """The code of their operations is called through the plugin boundary."""
    supported_extensions: tuple[str, ...]


class RemoteBackend(IBackendInternal):
    """Backend whose code is in another process."""

    code = ""  # see `BackendFacts`


def read_facts(backend: IBackendInternal) -> BackendFacts:
    """Ask a backend all that it says of itself.

    Raises BackendError if it raises, or says something that cannot be.
    """
    backend_id = ask_method(type(backend).__name__, str, backend, "get_id")
    devices = _read_devices(backend_id, backend)
    extensions = _read_extensions(backend_id, backend)
    return BackendFacts(
        backend_id,
        ask_method(backend_id, str, backend, "get_api_version"),
        read_backend(backend_id, backend, "version", str),
        backend.code if isinstance(backend, RemoteBackend) else code_digest(type(backend)),
        devices,
        _read_capabilities(backend_id, backend),
        _read_options(backend_id, backend, devices),
        extensions,
        _read_extension_names(backend_id, backend, extensions),
    )


def entries_of(backend_id: BackendId, owner: object, member: str, kind: type[T]) -> tuple[T, ...]:
    """A sequence that a property is or a method returns, and its elements.

    Raises BackendError if it is not a sequence, or has something of another kind in it.
    """

    def entries() -> object:
        value = getattr(owner, member)
        value = value() if callable(value) else value
        # A string is a sequence too, but not of the required type.
        is_list = isinstance(value, Sequence) and not isinstance(value, (str, bytes))
        # Gone through here, inside the guarded call: the iterator may be the backend's code.
        return tuple(value) if is_list else value

    # Messages name the contract's member by this.
    entries.__name__ = member
    items = ask_backend(backend_id, tuple, entries)
    for item in items:
        if not isinstance(item, kind):
            raise wrong_type("an entry", kind, item, f"{backend_id} / {member}")
    return items


def _read_devices(backend_id: BackendId, backend: IBackendInternal) -> tuple[DeviceInfo, ...]:
    try:
        known = _devices.get(backend)
    except TypeError:  # it cannot be hashed or referred to weakly
        return _asked_devices(backend_id, backend)
    if known is None:
        # Of two threads that ask at once, both get the answer that was there first.
        known = _devices.setdefault(backend, _asked_devices(backend_id, backend))
    return known


def _asked_devices(backend_id: BackendId, backend: IBackendInternal) -> tuple[DeviceInfo, ...]:
    said = entries_of(backend_id, backend, "get_devices", DeviceInfo)

    # Called as this in messages, and guarded, as fields of the answer may be code.
    def get_devices() -> tuple[DeviceInfo, ...]:
        return tuple(_checked_device(backend_id, device) for device in said)

    devices = call_backend(backend_id, get_devices)
    names = [device.name for device in devices]
    if not names or len(set(names)) < len(names):
        raise BackendError(
            "several devices have one name" if names else "it has no device",
            where=f"{backend_id} / get_devices",
            expected="at least one, each with a name of its own",
            actual=describe(names),
        )
    return devices


def _checked_device(backend_id: BackendId, device: DeviceInfo) -> DeviceInfo:
    """A device with plain values; figures that cannot be used count as none, with a warning."""
    where = f"{backend_id} / get_devices"
    for name, kind in _DEVICE_FIELDS.items():
        value = getattr(device, name)
        # True is an int to `isinstance`, and no feature level.
        if not isinstance(value, kind) or isinstance(value, bool):
            raise wrong_type(f"{name} of a device", kind, value, where)
    for name in Numerics.__slots__:
        value = getattr(device.numerics, name)
        if not isinstance(value, bool):
            raise wrong_type(f"{name} of a device", bool, value, where)
    figures: DeviceFigures | None = None
    if device.figures is not None:
        # Few backends declare any.
        from armpy.plugins.proxy.figures import check_figures  # noqa: PLC0415 - as above

        def get_devices() -> DeviceFigures:
            assert device.figures is not None
            return check_figures(device.figures, backend_id)

        try:
            figures = call_backend(backend_id, get_devices)
        except ArmpyError as error:
            # Networks run without them: figures only help to choose among backends.
            _log.warning("figures are not used: %s", error)
    return replace(device, figures=figures)


def _read_capabilities(backend_id: BackendId, backend: IBackendInternal) -> Capabilities:
    def get_capabilities() -> object:
        pairs = backend.get_capabilities()
        # Copied inside the guarded call, as reading a mapping of another class runs its code.
        if isinstance(pairs, Mapping):
            return dict(pairs)
        are_pairs = isinstance(pairs, Sequence) and not isinstance(pairs, (str, bytes))
        if are_pairs and all(isinstance(item, tuple) and len(item) == 2 for item in pairs):
            return dict(pairs)
        return pairs

    return ask_backend(backend_id, Mapping, get_capabilities)


def _read_options(
    backend_id: BackendId, backend: IBackendInternal, devices: Sequence[DeviceInfo]
) -> tuple[BackendOption, ...]:
    """The declared options, if they can be used, and the choice of the device."""
    declared = entries_of(backend_id, backend, "options", BackendOption)

    # Guarded, as an option's own check may be the backend's code.
    def options() -> str:
        return next(filter(None, map(_why_unusable, declared)), "")

    problem = call_backend(backend_id, options)
    names = [option.name for option in declared]
    if not problem and len(set(names)) < len(names):
        problem = "two options have the same name"
    if not problem and DEVICE_OPTION in names and len(devices) > 1:
        problem = f"an option of its own is called '{DEVICE_OPTION}', as the choice of a device is"
    if problem:
        raise BackendError(problem, where=f"{backend_id} / options", actual=describe(names))
    if len(devices) == 1:
        return declared
    choices = tuple(device.name for device in devices)
    text = "Device that networks run on."
    return (*declared, BackendOption(DEVICE_OPTION, choices[0], text, choices=choices))


def _why_unusable(option: BackendOption) -> str:
    """Describe the fault of an option that a backend declares; empty if there is none."""
    if not isinstance(option.name, str) or not option.name.isidentifier():
        return "the name of an option is not an identifier"
    types = ((option.scope, OptionScope), (option.help, str), (option.choices, tuple))
    for value, kind in types:
        if not isinstance(value, kind):
            return f"the option '{option.name}' has {value!r} in place of a {kind.__name__}"
    try:
        option.check(option.default)
    except InvalidArgumentError as error:
        return f"the default of an option is not allowed: {error}"
    return ""


def _read_extensions(backend_id: BackendId, backend: IBackendInternal) -> tuple[Extension, ...]:
    declared = entries_of(backend_id, backend, "extensions", Extension)
    names = [extension.name for extension in declared]
    if len(set(names)) < len(names):
        where = f"{backend_id} / extensions"
        raise BackendError("two extensions have the same name", where=where, actual=str(names))

    def guarded(operation: ExtensionOperation) -> ExtensionOperation:
        # Through the boundary as well: it is called much later, when models are built.
        def create(
            inputs: Sequence[ExtensionOperand], outputs: Sequence[ExtensionOperand]
        ) -> Operation:
            return ask_method(backend_id, Operation, operation, "create", inputs, outputs)

        return replace(operation, create=create)

    return tuple(
        replace(extension, operations=tuple(map(guarded, extension.operations)))
        for extension in declared
    )


def _read_extension_names(
    backend_id: BackendId, backend: IBackendInternal, extensions: Sequence[Extension]
) -> tuple[str, ...]:
    """The extensions whose operations it can run; those that it declares are among them."""
    names = entries_of(backend_id, backend, "supported_extensions", str)
    for extension in extensions:
        if extension.name not in names:
            raise BackendError(
                f"the extension '{extension.name}' is declared and not supported",
                where=f"{backend_id} / supported_extensions",
                expected=f"it among {describe(names)}",
            )
    return names
