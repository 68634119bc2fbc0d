from armpy_torch.compiled_graph import (
    GraphReport as GraphReport,
    reports as reports,
)
from armpy_torch.loading import load as load

__all__: list[str]
