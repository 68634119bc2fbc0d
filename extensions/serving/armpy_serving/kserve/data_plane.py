"""Answers about the server itself."""

from __future__ import annotations

from kserve.protocol.dataplane import DataPlane

from armpy import __version__
from armpy_serving.kserve.repository import ArmpyModelRepository


class ArmpyDataPlane(DataPlane):
    """KServe's data plane, which is ready when its models are."""

    def __init__(self, repository: ArmpyModelRepository) -> None:
        super().__init__(repository)
        self.required: frozenset[str] = frozenset()
        """Models without which the server is not ready: those that it began to serve with."""

    async def ready(self) -> bool:
        """Return whether every model can answer; KServe's is ready whatever its models are."""
        repository = self.model_registry
        names = self.required.union(repository.get_models())
        return bool(names) and all([await repository.is_model_ready(name) for name in names])

    def metadata(self) -> dict[str, object]:
        """Name, version and extensions."""
        extensions = ["binary_tensor_data"]
        if self.model_registry.is_open:
            extensions.append("model_repository")
        return {"name": "armpy", "version": __version__, "extensions": extensions}
