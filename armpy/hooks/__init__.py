"""What the author of a plugin imports: hooks, and what they take and give."""

from armpy.hooks.custom_operator import CustomOperator, OperatorParts
from armpy.hooks.front_end import FrontEnd, Magic, ModelSignature, ParseSettings
from armpy.hooks.model_file import ModelFile, ModelSource
from armpy.hooks.outline import FileGraph, FileOperator, FileOutline, FileTensor
from armpy.hooks.section import ReportSection
from armpy.hooks.specifications import hookimpl

__all__ = [
    "CustomOperator",
    "FileGraph",
    "FileOperator",
    "FileOutline",
    "FileTensor",
    "FrontEnd",
    "Magic",
    "ModelFile",
    "ModelSignature",
    "ModelSource",
    "OperatorParts",
    "ParseSettings",
    "ReportSection",
    "hookimpl",
]
