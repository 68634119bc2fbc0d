"""Contract checks: whether what a factory made keeps to the contract's form."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from dataclasses import fields

from packaging.version import Version

from armpy.backend import (
    BACKEND_API_VERSION,
    DeviceInfo,
    IBackendInternal,
    NetworkResources,
    PreparationRequest,
)
from armpy.core.dataclass import dataclass
from armpy.plugins.discovery.candidate import RejectionError
from armpy.plugins.proxy.facts import entries_of
from armpy.plugins.proxy.guarded_call import describe
from armpy.plugins.proxy.names import is_later, note_declared_version, why_misnamed
from armpy.types import INVALID_BACKEND_IDS, BackendId, DeviceType

_VERSION = re.compile("(0|[1-9][0-9]*)[.](0|[1-9][0-9]*)")

_MEANT_OTHERWISE = {
    "network": {
        "registry": "register_tensor_handle_factories(registry, network)",
        **{field.name: f"network.{field.name}" for field in fields(NetworkResources)},
    },
    "request": {field.name: f"request.{field.name}" for field in fields(PreparationRequest)},
}
"""What to use instead of a method's parameter, by the contract's parameter in its place.

Arm NN and older contracts pass these objects themselves.
"""


@dataclass(frozen=True, slots=True)
class CheckedBackend:
    """A backend that keeps to the contract's form, with its answers."""

    backend_id: BackendId
    backend: IBackendInternal
    api_version: str
    device_type: DeviceType
    """Type of the backend's first device."""


@dataclass(frozen=True, slots=True)
class OpenedCandidate:
    """A candidate whose code was imported, before its backend is made."""

    backend_id: BackendId
    api_version: str
    """Empty if only the backend itself has it."""
    factory: Callable[[], object]

    def create(self) -> CheckedBackend:
        """Make the backend and check it; raises RejectionError or the backend's error."""
        checked = check_backend(self.backend_id, self.factory())
        if self.api_version not in ("", checked.api_version):
            raise RejectionError(
                f"its get_version returned {self.api_version}, and its backend's get_api_version "
                f"{checked.api_version}. Both say which version of the contract it was written for"
            )
        return checked


def check_invalid_id(backend_id: BackendId) -> None:
    """Raise RejectionError for an id that no backend may have."""
    if backend_id in INVALID_BACKEND_IDS:
        raise RejectionError(f"'{backend_id}' is not a valid backend id")


def check_backend(backend_id: BackendId, backend: object) -> CheckedBackend:
    """Check a backend before it is registered.

    Raises RejectionError if it is of another class, calls itself otherwise, or has methods that
    cannot be called as the contract calls them; BaseException (whatever its properties raise).
    """
    if not isinstance(backend, IBackendInternal):
        raise RejectionError(f"its factory made {type(backend).__name__}, not an IBackendInternal")
    # First, as all else is judged by the contract of that version.
    version = _checked_version(backend)
    if problem := why_misnamed(type(backend), version):
        raise RejectionError(problem)
    for name, member in vars(IBackendInternal).items():
        if is_later("IBackendInternal", name, version):
            continue
        # Looked up on the class: on the backend itself it would run a property's code.
        if isinstance(member, property) and inspect.isroutine(getattr(type(backend), name)):
            raise RejectionError(f"its {name} is a method. Expected a property")
        if inspect.isfunction(member) and not name.startswith("_"):
            _check_method(backend, name, member)
    if backend.get_id() != backend_id:
        raise RejectionError(f"it calls itself {describe(backend.get_id())}")
    note_declared_version(backend_id, version)
    first = next(iter(entries_of(backend_id, backend, "get_devices", DeviceInfo)), DeviceInfo())
    device_type = first.device_type
    if not isinstance(device_type, DeviceType):
        raise RejectionError(f"its device type {describe(device_type)} is not a DeviceType")
    return CheckedBackend(backend_id, backend, version, device_type)


def _checked_version(backend: IBackendInternal) -> str:
    """The version of the contract that a backend declares; RejectionError if it does not fit."""
    _check_method(backend, "get_api_version", IBackendInternal.get_api_version)
    version: object = backend.get_api_version()
    if not isinstance(version, str):
        raise RejectionError(f"its API version {describe(version)} is not of the form major.minor")
    if reason := why_incompatible(version):
        raise RejectionError(reason)
    return version


def _check_method(backend: IBackendInternal, name: str, contract: Callable[..., object]) -> None:
    own = getattr(type(backend), name)
    if own is contract:
        return
    # Without `self`, as the contract's method is not bound and the backend's is.
    parameters = [*inspect.signature(contract).parameters][1:]
    expected = f"Expected {name}({', '.join(parameters)})"
    method = getattr(backend, name)
    if not callable(method):
        raise RejectionError(
            f"its {name} is {describe(method)}, which cannot be called. {expected}"
        )
    try:
        signature = inspect.signature(method)
    except (TypeError, ValueError):  # compiled code need not have a signature
        return
    # Without annotations, as a reader writes it.
    plain = [p.replace(annotation=p.empty) for p in signature.parameters.values()]
    shown = signature.replace(parameters=plain, return_annotation=signature.empty)
    try:
        signature.bind(*parameters)  # the core passes every argument by its place
    except TypeError:
        raise RejectionError(f"its {name}{shown} cannot be called. {expected}") from None
    for parameter, own_name in zip(parameters, signature.parameters, strict=False):
        if instead := _MEANT_OTHERWISE.get(parameter, {}).get(own_name):
            raise RejectionError(
                f"its {name}{shown} would be given '{parameter}' as '{own_name}'. {expected}, and "
                f"use {instead}"
            )


def version_text(version: object) -> str:
    """A version as text, from text or a pair of integers; empty if it is neither."""
    if isinstance(version, str):
        return version
    if not isinstance(version, tuple | list) or len(version) != 2:
        return ""
    # True and False are ints to `isinstance`, and no versions.
    if any(isinstance(part, bool) or not isinstance(part, int) for part in version):
        return ""
    return f"{version[0]}.{version[1]}"


def why_incompatible(
    version: object,  # ``"major.minor"`` or ``(major, minor)``; anything else does not fit
    core: str = BACKEND_API_VERSION,
) -> str:
    """Why a backend's API version does not fit the core's; empty if it does.

    The major must be equal and the minor at most the core's.

    References
    ----------
    Arm NN backend developer guide, "Dynamic backend versioning and ABI compatibility".
    """
    text = version_text(version)
    if text == core:
        return ""
    if not _VERSION.fullmatch(text):
        return f"its API version {describe(version)} is not of the form major.minor"
    offered, present = Version(text), Version(core)
    if offered.major == present.major and offered.minor <= present.minor:
        return ""
    advice = ""
    if core == BACKEND_API_VERSION and offered.major < present.major:
        advice = ". The page 'A backend from 1.x to 2.0' of the documentation says what to change"
    elif core == BACKEND_API_VERSION:
        advice = ". Install a newer armpy, or an older version of the backend"
    return f"it is made for API version {text}, which does not fit {core}{advice}"
