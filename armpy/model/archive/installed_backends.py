"""The installed backends, asked whether they can be used, without a runtime."""

from __future__ import annotations

from collections.abc import Sequence

from armpy.errors import ArmpyError
from armpy.plugins.proxy.availability import find_unavailability
from armpy.plugins.proxy.guard import BackendProxy
from armpy.plugins.registry import BackendRegistry
from armpy.types import REFERENCE_BACKEND_ID, BackendId


class InstalledBackends:
    """Backends of a registry, and why they cannot be used.

    Parameters
    ----------
    registry : BackendRegistry, optional
        One of all that is installed if left out, which `close` closes.
    named : sequence of str, optional
        Ids of the only backends that are wanted; all if left out.
    """

    def __init__(
        self, registry: BackendRegistry | None = None, named: Sequence[BackendId] | None = None
    ) -> None:
        self._is_own = registry is None
        self._registry = BackendRegistry.discover() if registry is None else registry
        self._named = named
        self._reasons: dict[BackendId, str] = {}

    def close(self) -> None:
        """Close the registry if it is this object's own."""
        if self._is_own:
            self._registry.close()

    def get(self, backend_id: BackendId) -> BackendProxy:
        """The backend of an id; errors as of `BackendRegistry.get`."""
        return BackendProxy(self._registry.get(backend_id))

    def usable(self) -> list[BackendProxy]:
        """The backends that can be used, most preferred first."""
        named = self._named
        if named is None:
            named = [backend.get_id() for backend in self._registry.available()]
        return [self.get(name) for name in named if not self.why_unusable(name)]

    def why_unusable(self, backend_id: BackendId) -> str:
        """Why a backend cannot be used; empty if it can."""
        if backend_id not in self._reasons:
            self._reasons[backend_id] = self._why_unusable(backend_id)
        return self._reasons[backend_id]

    def _why_unusable(self, backend_id: BackendId) -> str:
        if self._named is not None and backend_id not in self._named:
            others = [name for name in self._named if name != REFERENCE_BACKEND_ID]
            return f"{', '.join(others) or REFERENCE_BACKEND_ID} is wanted"
        try:
            error = find_unavailability(self.get(backend_id))
        except ArmpyError as failure:
            error = failure
        return "" if error is None else str(error)
