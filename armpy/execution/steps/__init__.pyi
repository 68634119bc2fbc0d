from armpy.execution.steps.appending import AppendedElements as AppendedElements
from armpy.execution.steps.appending import find_appends as find_appends
from armpy.execution.steps.appending import with_lists as with_lists

__all__: list[str]
