"""The table of all faults: a row each, in the files of their subjects.

A row names the fault, the rule or operation whose cases have to find it, the shape of backend that
it is planted in, what is changed there, and a pattern of what the kit says. Names that begin with
``blind-`` are of faults that were invented without a look at the kit.
"""

from __future__ import annotations

from collections.abc import Mapping

from .answers import ANSWER_FAULTS
from .caches import CACHE_FAULTS
from .control_flow import CONTROL_FLOW_FAULTS
from .declarations import DECLARATION_FAULTS
from .edge_values import EDGE_FAULTS
from .elements import ELEMENT_FAULTS
from .executions import EXECUTION_FAULTS
from .gauges import GAUGE_FAULTS
from .lifecycle import LIFECYCLE_FAULTS
from .memory import MEMORY_FAULTS
from .merging import MERGING_FAULTS
from .movement import MOVEMENT_FAULTS
from .planting import Planted, PlantedFault
from .process import PROCESS_FAULTS
from .programs import PROGRAM_FAULTS
from .settings import SETTINGS_FAULTS
from .sizes import SIZE_FAULTS
from .sums import SUM_FAULTS
from .windows import WINDOW_FAULTS

IN_BACKENDS: Mapping[str, Planted] = {
    **ANSWER_FAULTS,
    **WINDOW_FAULTS,
    **ELEMENT_FAULTS,
    **EDGE_FAULTS,
    **SUM_FAULTS,
    **MOVEMENT_FAULTS,
    **SIZE_FAULTS,
    **CONTROL_FLOW_FAULTS,
    **PROGRAM_FAULTS,
    **MERGING_FAULTS,
    **CACHE_FAULTS,
    **MEMORY_FAULTS,
    **EXECUTION_FAULTS,
    **LIFECYCLE_FAULTS,
    **DECLARATION_FAULTS,
    **GAUGE_FAULTS,
    **SETTINGS_FAULTS,
}
"""Faults of backends in this process."""

EVERY_FAULT: Mapping[str, PlantedFault] = {**IN_BACKENDS, **PROCESS_FAULTS}
"""Those of backends in modules of their own as well."""
