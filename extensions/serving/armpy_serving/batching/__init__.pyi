from armpy_serving.batching.batcher import Batcher as Batcher
from armpy_serving.batching.statistics import BatcherStatistics as BatcherStatistics

__all__: list[str]
