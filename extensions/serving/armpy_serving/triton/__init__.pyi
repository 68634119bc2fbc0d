from armpy_serving.triton.config import TritonOptions as TritonOptions
from armpy_serving.triton.ensemble import EnsembleOptions as EnsembleOptions
from armpy_serving.triton.export import TritonExport as TritonExport, export_model as export_model
from armpy_serving.triton.python_model import TritonModel as TritonModel
from armpy_serving.triton.settings import InstanceSettings as InstanceSettings
from armpy_serving.triton.steps import (
    TritonPostprocess as TritonPostprocess,
    TritonPreprocess as TritonPreprocess,
)

__all__: list[str]
