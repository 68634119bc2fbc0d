"""Contract checks: whether what a factory made keeps to the contract's form."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass

from armpy.backend import DeviceInfo, IBackendInternal
from armpy.plugins.discovery.candidate import RejectionError
from armpy.plugins.proxy.facts import entries_of
from armpy.plugins.proxy.guarded_call import describe, exact
from armpy.plugins.proxy.names import why_misnamed
from armpy.plugins.versions import why_incompatible
from armpy.types import BackendId, DeviceType


@dataclass(frozen=True, slots=True)
class CheckedBackend:
    """A backend that keeps to the contract's form, with what it said when it was asked."""

    backend_id: BackendId
    backend: IBackendInternal
    api_version: str
    device_type: DeviceType
    """Of its first device."""


def check_backend(backend_id: BackendId, backend: object) -> CheckedBackend:
    """Check a backend before it is registered.

    Raises
    ------
    RejectionError
        If it is of another class, calls itself otherwise, or has methods that cannot be
        called as the contract calls them.
    BaseException
        Whatever its properties raise.
    """
    if not isinstance(backend, IBackendInternal):
        raise RejectionError(f"its factory made {type(backend).__name__}, not an IBackendInternal")
    if problem := why_misnamed(type(backend)):
        raise RejectionError(problem)
    for name, member in vars(IBackendInternal).items():
        # Looked up on the class: on the backend itself it would run a property's code.
        if isinstance(member, property) and inspect.isroutine(getattr(type(backend), name)):
            raise RejectionError(f"its {name} is a method. Expected a property")
        if inspect.isfunction(member) and not name.startswith("_"):
            _check_method(backend, name, member)
    # Of a subclass of `str` the text alone: the subclass may call itself equal to any id.
    if exact(backend.get_id()) != backend_id:
        raise RejectionError(f"it calls itself {describe(backend.get_id())}")
    version = exact(backend.get_api_version())
    if not isinstance(version, str):
        raise RejectionError(f"its API version {describe(version)} is not of the form major.minor")
    if reason := why_incompatible(version):
        raise RejectionError(reason)
    first = next(iter(entries_of(backend_id, backend, "get_devices", DeviceInfo)), DeviceInfo())
    device_type = first.device_type
    if not isinstance(device_type, DeviceType):
        raise RejectionError(f"its device type {describe(device_type)} is not a DeviceType")
    return CheckedBackend(backend_id, backend, version, device_type)


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
    except (TypeError, ValueError):  # compiled code need not tell
        return
    try:
        signature.bind(*parameters)  # the core passes every argument by its place
    except TypeError:
        text = f"its {name}{_plain(signature)} cannot be called. {expected}"
        raise RejectionError(text) from None


def _plain(signature: inspect.Signature) -> str:
    """A signature without annotations, as a reader writes it."""
    parameters = [p.replace(annotation=p.empty) for p in signature.parameters.values()]
    return str(signature.replace(parameters=parameters, return_annotation=signature.empty))
