"""What the author of a plugin imports: hooks, and what they take and give."""

from armpy.hooks.front_end import FrontEnd, Magic, ModelSignature, ParseSettings
from armpy.hooks.model_file import ModelFile, ModelSource
from armpy.hooks.section import ReportSection
from armpy.hooks.specifications import hookimpl

__all__ = [
    "FrontEnd",
    "Magic",
    "ModelFile",
    "ModelSignature",
    "ModelSource",
    "ParseSettings",
    "ReportSection",
    "hookimpl",
]
