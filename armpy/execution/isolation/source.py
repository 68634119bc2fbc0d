"""Source of a worker's backend."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import dataclass, field

from armpy.backend import IBackendInternal
from armpy.errors import BackendUnavailableError
from armpy.plugins.options import PluginOptions
from armpy.plugins.registry import BackendRegistry
from armpy.store.settings import CompilationCaching
from armpy.types import BackendId


@dataclass(frozen=True, slots=True)
class BackendSource:
    """Source from which a worker loads a backend."""

    backend_id: BackendId
    options: PluginOptions
    """How it is found, with the same trust as in the application."""
    factory: bytes | None = None
    """Pickle of the callable that makes it, if it was registered by hand."""
    caching: CompilationCaching = field(default_factory=CompilationCaching)
    """Where what it compiles is kept."""

    @classmethod
    def of(
        cls, registry: BackendRegistry, backend_id: BackendId, caching: CompilationCaching
    ) -> BackendSource:
        """The source of one of a registry's backends, none of whose code is run.

        Raises
        ------
        BackendUnavailableError
            If it was registered by hand with something that cannot be pickled.
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
