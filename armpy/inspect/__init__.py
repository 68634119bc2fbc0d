"""Facts of a model, and where each layer of its file went; for people and programs."""

from armpy.inspect.describing import describe_file, describe_model, describe_network
from armpy.inspect.facts import (
    LayerFacts,
    LayerRefusal,
    LayerStatus,
    ModelFacts,
    ProgramFacts,
    TensorFacts,
)
from armpy.inspect.name_resolution import Linker
from armpy.inspect.renaming import linker_of, with_file_names

__all__ = [
    "LayerFacts",
    "LayerRefusal",
    "LayerStatus",
    "Linker",
    "ModelFacts",
    "ProgramFacts",
    "TensorFacts",
    "describe_file",
    "describe_model",
    "describe_network",
    "linker_of",
    "with_file_names",
]
