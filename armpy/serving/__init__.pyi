from armpy.serving.metrics import (
    KernelCounter as KernelCounter,
    Metric as Metric,
    ModelMetrics as ModelMetrics,
    all_metrics as all_metrics,
)
from armpy.serving.predictor import Predictor as Predictor
from armpy.serving.protocol import (
    datatype_of as datatype_of,
    dtype_of as dtype_of,
    model_metadata as model_metadata,
)
from armpy.serving.requests import (
    InferenceRequest as InferenceRequest,
    read_request as read_request,
    write_answer as write_answer,
)
from armpy.serving.served_model import ServedModel as ServedModel
from armpy.serving.status import ErrorStatus as ErrorStatus, status_of as status_of

__all__: list[str]
