"""Messages between the application and the worker of an isolated backend.

Notes
-----
Requests are tuples that begin with one of these words. Executions have sockets of their own, with
a single byte in each direction if all is well, else a line of JSON back; their tensors lie in
shared memory. What comes from a worker is JSON, and read with care: code of its backend may have
written it.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Mapping
from dataclasses import asdict, field
from typing import Any, TypeVar

from armpy.backend import (
    BackendOption,
    Capability,
    DeviceInfo,
    IBackendInternal,
    Numerics,
    OptionScope,
)
from armpy.core.dataclass import dataclass
from armpy.errors import BackendError, BackendUnavailableError
from armpy.plugins.options import PluginOptions
from armpy.plugins.proxy.facts import BackendFacts
from armpy.plugins.proxy.figures import figures_fields, figures_from
from armpy.plugins.registry import BackendRegistry
from armpy.store.settings import CompilationCaching
from armpy.types import BackendId, DeviceType

T = TypeVar("T")

LOAD = "load"
"""Load the backend and describe it, and send log records from a level on; the first request."""
CLOSE = "close"
"""Let the backend close its devices; the last request."""
CONFIGURE = "configure"
"""Set the backend up with options of scope RUNTIME."""
SUPPORT = "support"
"""Ask whether a layer can run, or the layers of a network, which comes in shared memory."""
PREPARE = "prepare"
"""Prepare a part, which comes in shared memory."""
OPEN = "open"
"""Open a place where a part is executed: a socket and shared memory."""
RELEASE = "release"
"""Forget a part."""

GO = b"\1"
"""Execute, to a worker."""
GO_TIMED = b"\2"
"""Execute, and write down how long the device took."""
DONE = b"\0"
"""All outputs are written, from a worker."""

MAX_FAILURE_BYTES = 16 << 10
"""Longest line of JSON that a worker says with what went wrong in an execution."""


def is_whole(answer: bytes) -> bool:
    """Return whether a worker's answer to an execution is to be read: nothing of it is missing.

    What cannot become one is whole, too, so that nobody waits for the rest of it.
    """
    if answer.startswith(b"{"):
        return answer.endswith(b"\n") or len(answer) > MAX_FAILURE_BYTES
    return bool(answer)


def parse_failure(line: bytes) -> object:
    """Parse a worker's report of a failed execution from JSON; None if it is not one."""
    try:
        return json.loads(line)
    # The second one comes of deep nesting, which a hostile worker can write.
    except (ValueError, RecursionError):
        return None


@dataclass(frozen=True, slots=True)
class BackendSource:
    """Source from which a worker loads a backend."""

    backend_id: BackendId
    options: PluginOptions
    """Options of discovery, with the same trust as in the application."""
    factory: bytes | None = None
    """Pickle of the callable that makes it, if it was registered by hand."""
    caching: CompilationCaching = field(default_factory=CompilationCaching)
    """Folder of its compiled parts."""

    @classmethod
    def of(
        cls, registry: BackendRegistry, backend_id: BackendId, caching: CompilationCaching
    ) -> BackendSource:
        """The source of one of a registry's backends, none of whose code is run.

        Raises BackendUnavailableError if it was registered by hand with something that cannot be
        pickled.
        """
        factory = registry.factory_by_hand(backend_id)
        if factory is None:
            return cls(backend_id, registry.options, None, caching)
        try:
            return cls(backend_id, registry.options, pickle.dumps(factory), caching)
        # What a callable's own reducer raises can be anything.
        except Exception as error:
            raise BackendUnavailableError(
                f"backend '{backend_id}' cannot be isolated: {error}",
                expected="a factory that another process can import, as of a module's function",
            ) from error

    def load(self) -> tuple[BackendRegistry, IBackendInternal]:
        """Load it, in the worker; errors as for `BackendRegistry.get`."""
        if self.factory is None:
            registry = BackendRegistry.discover(self.options)
        else:
            registry = BackendRegistry(self.options)
            # The application's own bytes; what comes from workers is never unpickled.
            factory: Callable[[], IBackendInternal] = pickle.loads(self.factory)
            registry.register(self.backend_id, factory)
        return registry, registry.get(self.backend_id)


_NOT_ACROSS = (
    Capability.DYNAMIC_OUTPUT_SHAPES,
    Capability.PROTECTED_CONTENT_ALLOCATION,
    Capability.MULTI_AXIS_PACKING,
    Capability.SINGLE_AXIS_PACKING,
    Capability.TRACED_SIZES,
    Capability.LOOP_TIMEOUT,
    Capability.STRINGS,
)
"""Capabilities about objects in the application's process, where the backend is not."""


def facts_fields(facts: BackendFacts) -> dict[str, object]:
    """Convert a backend's description of itself to JSON."""
    return {
        "backend_id": facts.backend_id,
        "api_version": facts.api_version,
        "version": facts.version,
        "code": facts.code,
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
    """Parse a worker's description of its backend.

    Extensions are not among it, as their operations' code would be needed here, nor are
    capabilities that concern the application's memory.

    Raises BackendError if it is not as `facts_fields` writes it.
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

    def parsed(name: str, make: Any) -> Any:  # Any: one of the two above
        try:
            return make()
        # A hostile worker writes anything; reading it can raise these errors.
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise unreadable(backend_id, name, said.get(name)) from error

    capabilities = read("capabilities", dict)
    return BackendFacts(
        read("backend_id", str),
        read("api_version", str),
        read("version", str),
        read("code", str),
        parsed("devices", devices),
        {str(name): value for name, value in capabilities.items() if name not in _NOT_ACROSS},
        parsed("options", options),
        (),
        tuple(map(str, read("supported_extensions", list))),
    )


def unreadable(backend_id: BackendId, name: str, said: object, expected: str = "") -> BackendError:
    """The error for something that a worker has said of its backend."""
    return BackendError(
        "the process's description of the backend cannot be read",
        where=f"{backend_id} / {name}",
        expected=expected,
        actual=repr(said)[:200],
    )
