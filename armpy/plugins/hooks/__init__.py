"""Imports for the author of a plugin: hooks, and the types of their arguments and results."""

from armpy.plugins.hooks.custom_operator import CustomOperator, OperatorParts
from armpy.plugins.hooks.front_end import (
    FrontEnd,
    FrontEndOptionError,
    Magic,
    ModelSignature,
    ParseSettings,
)
from armpy.plugins.hooks.model_file import ModelFile, ModelSource, open_model_file
from armpy.plugins.hooks.outline import FileGraph, FileOperator, FileOutline, FileTensor
from armpy.plugins.hooks.section import ReportSection
from armpy.plugins.hooks.specifications import hookimpl
from armpy.plugins.placement import Alternative, PlacementDecision, PlacementQuestion, Placer

__all__ = [
    "Alternative",
    "CustomOperator",
    "FileGraph",
    "FileOperator",
    "FileOutline",
    "FileTensor",
    "FrontEnd",
    "FrontEndOptionError",
    "Magic",
    "ModelFile",
    "ModelSignature",
    "ModelSource",
    "OperatorParts",
    "ParseSettings",
    "PlacementDecision",
    "PlacementQuestion",
    "Placer",
    "ReportSection",
    "hookimpl",
    "open_model_file",
]
