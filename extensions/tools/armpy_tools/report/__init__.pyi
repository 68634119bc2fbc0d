from armpy_tools.report.report import (
    ReportSubject as ReportSubject,
    make_report as make_report,
)

__all__: list[str]
