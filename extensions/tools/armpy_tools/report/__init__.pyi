from armpy_tools.report.comparison import (
    BackendComparison as BackendComparison,
    compare_backends as compare_backends,
)
from armpy_tools.report.figures import (
    LayerFigures as LayerFigures,
    ReportFigures as ReportFigures,
    read_figures as read_figures,
)
from armpy_tools.report.report import (
    Report as Report,
    ReportSubject as ReportSubject,
    make_report as make_report,
    measure_figures as measure_figures,
)

__all__: list[str]
