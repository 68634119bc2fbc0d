from armpy.model.batching.batcher import Batcher as Batcher
from armpy.model.batching.statistics import BatcherStatistics as BatcherStatistics

__all__: list[str]
