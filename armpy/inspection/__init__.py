"""What a model is made of, and where each layer of its file went; for people and programs."""

from armpy.inspection.describing import describe_file, describe_model, describe_network
from armpy.inspection.facts import (
    LayerFacts,
    LayerRefusal,
    LayerStatus,
    ModelFacts,
    ProgramFacts,
    TensorFacts,
)
from armpy.inspection.linking import Linker
from armpy.inspection.renaming import linker_of, with_file_names

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
