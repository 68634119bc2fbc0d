from armpy.execution.programs.traced import cut as cut
from armpy.execution.programs.traced import template as template

__all__: list[str]
