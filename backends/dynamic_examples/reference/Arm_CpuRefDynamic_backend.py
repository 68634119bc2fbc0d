"""armpy's reference backend as a dynamic one, under another id.

A backend that exists as a package becomes a dynamic one by three functions. The package has to be
one that Python can import; to bring it along instead, see ``Example_common`` in ``../small``.

References
----------
Arm NN ``src/dynamic/reference``, whose id is that of the backend it wraps. Here that is taken.
"""

from __future__ import annotations

from collections.abc import Sequence

from armpy_reference import ReferenceBackend

from armpy.backend import DeviceInfo, IBackendInternal
from armpy.types import BackendId, DeviceType


def get_backend_id() -> str:
    """First entry point: the backend's name."""
    return "CpuRefDynamic"


def get_version() -> str:
    """Second entry point: the version that the wrapped backend says."""
    return ReferenceBackend().get_api_version()


def backend_factory() -> IBackendInternal:
    """Third entry point: make the backend."""
    return DynamicReferenceBackend()


class DynamicReferenceBackend(ReferenceBackend):
    """The reference in all but its name and its place in the order of backends."""

    def get_id(self) -> BackendId:
        """What `get_backend_id` says."""
        return get_backend_id()

    def get_devices(self) -> Sequence[DeviceInfo]:
        """After accelerators and compiled code, and before the reference itself."""
        return (DeviceInfo(device_type=DeviceType.OTHER),)
