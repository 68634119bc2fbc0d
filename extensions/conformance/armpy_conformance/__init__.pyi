from armpy_conformance.case import Case as Case, CaseInput as CaseInput
from armpy_conformance.conformance import (
    all_cases as all_cases,
    cases_of as cases_of,
    run_conformance as run_conformance,
)
from armpy_conformance.pattern import Pattern as Pattern
from armpy_conformance.result import (
    CaseResult as CaseResult,
    ConformanceResult as ConformanceResult,
    Outcome as Outcome,
)
from armpy.ops.tolerance import (
    TOLERANCES as TOLERANCES,
    Tolerance as Tolerance,
    compare as compare,
)

__all__: list[str]
