from armpy_tools.benchmark.results import (
    BenchmarkResult as BenchmarkResult,
    LayerCost as LayerCost,
    MachineState as MachineState,
    MemoryUse as MemoryUse,
    SubjectResult as SubjectResult,
)
from armpy_tools.benchmark.runner import (
    BenchmarkProgress as BenchmarkProgress,
    benchmark as benchmark,
)
from armpy_tools.measure.latency import Latency as Latency
from armpy_tools.measure.ratio import Ratio as Ratio, compare as compare
from armpy_tools.benchmark.subjects import (
    Plan as Plan,
    Subject as Subject,
    name_subjects as name_subjects,
)

__all__: list[str]
