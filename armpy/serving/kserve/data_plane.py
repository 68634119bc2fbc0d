"""Answers about the server itself."""

from __future__ import annotations

from kserve.protocol.dataplane import DataPlane

from armpy import __version__


class ArmpyDataPlane(DataPlane):
    """KServe's data plane, which is ready when its models are."""

    async def ready(self) -> bool:
        """Whether every model can answer; KServe's is ready whatever its models are."""
        models = self.model_registry.get_models().values()
        return all([await model.healthy() for model in models])

    def metadata(self) -> dict[str, object]:
        """Name, version and extensions."""
        extensions = ["binary_tensor_data", "model_repository"]
        return {"name": "armpy", "version": __version__, "extensions": extensions}
