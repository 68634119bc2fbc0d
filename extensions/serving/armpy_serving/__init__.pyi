from armpy_serving.batching.batcher import Batcher as Batcher
from armpy_serving.batching.statistics import BatcherStatistics as BatcherStatistics
from armpy_serving.metrics import (
    KernelCounter as KernelCounter,
    Metric as Metric,
    ModelMetrics as ModelMetrics,
    all_metrics as all_metrics,
)
from armpy_serving.predictor import Predictor as Predictor
from armpy_serving.protocol import (
    datatype_of as datatype_of,
    dtype_of as dtype_of,
    model_metadata as model_metadata,
)
from armpy_serving.requests import (
    InferenceRequest as InferenceRequest,
    read_request as read_request,
    write_answer as write_answer,
)
from armpy_serving.served_model import ServedModel as ServedModel
from armpy_serving.status import ErrorStatus as ErrorStatus, status_of as status_of

__all__: list[str]
