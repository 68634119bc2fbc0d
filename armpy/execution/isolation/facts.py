"""Facts of a backend between processes: as the worker writes them, and as the application reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, TypeVar

from armpy.backend import BackendOption, Capability, DeviceInfo, Numerics, OptionScope
from armpy.compiler.devices.records import figures_fields, figures_from
from armpy.errors import BackendError
from armpy.plugins.proxy.facts import BackendFacts
from armpy.types import BackendId, DeviceType

T = TypeVar("T")

_NOT_ACROSS = (
    Capability.DYNAMIC_OUTPUT_SHAPES,
    Capability.PROTECTED_CONTENT_ALLOCATION,
    Capability.MULTI_AXIS_PACKING,
    Capability.SINGLE_AXIS_PACKING,
    Capability.TRACED_SIZES,
    Capability.LOOP_TIMEOUT,
    Capability.STRINGS,
)
"""Capabilities that concern what is in the application's process, where the backend is not."""


def facts_fields(facts: BackendFacts) -> dict[str, object]:
    """What a backend says of itself, in the form of JSON."""
    return {
        "backend_id": facts.backend_id,
        "api_version": facts.api_version,
        "version": facts.version,
        "devices": [
            {
                "name": device.name,
                "device_type": device.device_type.name,
                "feature_level": device.feature_level,
                "figures": device.figures and figures_fields(device.figures),
                "numerics": asdict(device.numerics),
            }
            for device in facts.devices
        ],
        "supported_extensions": list(facts.supported_extensions),
        "capabilities": {str(name): value for name, value in facts.capabilities.items()},
        "options": [asdict(option) | {"scope": option.scope.value} for option in facts.options],
    }


def facts_from(backend_id: BackendId, said: Mapping[str, Any]) -> BackendFacts:  # Any: of JSON
    """What a worker has said of its backend.

    Extensions are not among it, as their operations' code would be needed here, nor are
    capabilities that concern the application's memory.

    Raises
    ------
    BackendError
        If it is not as `facts_fields` writes it.
    """

    def read(name: str, kind: type[T]) -> T:
        value = said.get(name)
        if type(value) is not kind:
            raise unreadable(backend_id, name, value, kind.__name__)
        return value

    def devices() -> tuple[DeviceInfo, ...]:
        return tuple(
            DeviceInfo(
                device["name"],
                DeviceType[device["device_type"]],
                device["feature_level"],
                device["figures"] and figures_from(device["figures"], backend_id),
                Numerics(**device["numerics"]),
            )
            for device in read("devices", list)
        )

    def options() -> tuple[BackendOption, ...]:
        return tuple(
            BackendOption(
                **option
                | {"scope": OptionScope(option["scope"]), "choices": tuple(option["choices"])}
            )
            for option in read("options", list)
        )

    def made(name: str, make: Any) -> Any:  # Any: one of the two above
        try:
            return make()
        # A hostile worker writes what it likes; these are what reading it can raise.
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise unreadable(backend_id, name, said.get(name)) from error

    capabilities = read("capabilities", dict)
    return BackendFacts(
        read("backend_id", str),
        read("api_version", str),
        read("version", str),
        made("devices", devices),
        {str(name): value for name, value in capabilities.items() if name not in _NOT_ACROSS},
        made("options", options),
        (),
        tuple(map(str, read("supported_extensions", list))),
    )


def unreadable(backend_id: BackendId, name: str, said: object, expected: str = "") -> BackendError:
    """The error for something that a worker has said of its backend."""
    return BackendError(
        "what the process says of the backend cannot be read",
        where=f"{backend_id} / {name}",
        expected=expected,
        actual=repr(said)[:200],
    )
