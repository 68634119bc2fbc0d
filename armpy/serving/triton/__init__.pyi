from armpy.serving.triton.config import TritonOptions as TritonOptions
from armpy.serving.triton.ensemble import EnsembleOptions as EnsembleOptions
from armpy.serving.triton.export import TritonExport as TritonExport, export_model as export_model
from armpy.serving.triton.python_model import TritonModel as TritonModel
from armpy.serving.triton.settings import InstanceSettings as InstanceSettings
from armpy.serving.triton.steps import (
    TritonPostprocess as TritonPostprocess,
    TritonPreprocess as TritonPreprocess,
)

__all__: list[str]
