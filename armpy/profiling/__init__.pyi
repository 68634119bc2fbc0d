from armpy.profiling.armnn_json import to_armnn_json as to_armnn_json
from armpy.profiling.comparison import (
    Change as Change,
    Comparison as Comparison,
    compare_summaries as compare_summaries,
)
from armpy.profiling.counters import CounterValue as CounterValue
from armpy.profiling.current import (
    WatchedLock as WatchedLock,
    measured_execution as measured_execution,
    note_queue as note_queue,
    phase as phase,
    profiled_by as profiled_by,
    record_waiting as record_waiting,
)
from armpy.profiling.details import (
    LayerDetails as LayerDetails,
    ProfilingDetails as ProfilingDetails,
    TensorDetails as TensorDetails,
)
from armpy.profiling.events import (
    EventKind as EventKind,
    EventLabel as EventLabel,
    ProfilingEvent as ProfilingEvent,
    ProfilingStatistics as ProfilingStatistics,
)
from armpy.profiling.exports import (
    read_summary as read_summary,
    to_chrome_trace as to_chrome_trace,
    to_json as to_json,
)
from armpy.profiling.naming import TOGETHER as TOGETHER, short_names as short_names
from armpy.profiling.phases import TracePhase as TracePhase
from armpy.profiling.profiler import Profiler as Profiler
from armpy.profiling.quartiles import (
    Quartiles as Quartiles,
    percentile as percentile,
    quartiles_of as quartiles_of,
)
from armpy.profiling.summary import Share as Share, Summary as Summary

__all__: list[str]
