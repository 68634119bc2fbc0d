from armpy_tools.report.comparison import (
    BackendComparison as BackendComparison,
    compare_backends as compare_backends,
)
from armpy_tools.report.report import (
    ReportSubject as ReportSubject,
    report_sections as report_sections,
)

__all__: list[str]
