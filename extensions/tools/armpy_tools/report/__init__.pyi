from armpy_tools.report.comparison import (
    BackendComparison as BackendComparison,
    compare_backends as compare_backends,
)
from armpy_tools.report.report import (
    Report as Report,
    ReportSubject as ReportSubject,
    make_report as make_report,
)

__all__: list[str]
