from armpy.serving.batching.batcher import Batcher as Batcher
from armpy.serving.batching.statistics import BatcherStatistics as BatcherStatistics

__all__: list[str]
