"""Finds out whether a model file that is not compiled can be read, and what is wrong with it."""

from __future__ import annotations

import os

from armpy.core.dataclass import dataclass
from armpy.errors import ArmpyError
from armpy.graph.network import Network
from armpy.model.model_files import ModelOrigin
from armpy.plugins import BackendRegistry
from armpy.plugins.hooks.model_file import open_model_file


@dataclass(frozen=True, slots=True)
class ModelExamination:
    """Examination of a model file by the doctor."""

    path: str
    facts: dict[str, str]
    """Its format and size, as far as they are known."""
    damage: str
    """Why it cannot be read, and the fix; empty if it can."""

    @property
    def is_ok(self) -> bool:
        """Return whether it is read."""
        return not self.damage


def examine_model(path: str, registry: BackendRegistry) -> ModelExamination:
    """Read a model file with the front-end that takes it."""
    facts = {"size": f"{os.stat(path).st_size} bytes"}
    try:
        file = open_model_file(path)
        origin = ModelOrigin.find(file, path, registry)
        facts["format"] = f"{origin.front_end.title} (front-end {origin.front_end.name})"
        parsed = origin.parse(file, None)
    except ArmpyError as error:
        return ModelExamination(path, facts, str(error))
    graph = parsed.build() if isinstance(parsed, Network) else parsed
    facts["layers"] = str(len(graph.layers))
    return ModelExamination(path, facts, "")
