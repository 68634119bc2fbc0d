"""Facts of a model, and where each layer of its file went; for people and programs."""

from armpy.inspect.describing import describe_file, describe_model, describe_network
from armpy.inspect.facts import (
    LayerFacts,
    LayerStatus,
    ModelFacts,
    ProgramFacts,
    TensorFacts,
)
from armpy.inspect.name_resolution import Linker, linker_of, with_file_names
from armpy.inspect.work import Work, family_of, work_of

__all__ = [
    "LayerFacts",
    "LayerStatus",
    "Linker",
    "ModelFacts",
    "ProgramFacts",
    "TensorFacts",
    "Work",
    "describe_file",
    "describe_model",
    "describe_network",
    "family_of",
    "linker_of",
    "with_file_names",
    "work_of",
]
