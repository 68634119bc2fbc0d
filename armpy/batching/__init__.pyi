from armpy.batching.batcher import Batcher as Batcher
from armpy.batching.statistics import BatcherStatistics as BatcherStatistics

__all__: list[str]
