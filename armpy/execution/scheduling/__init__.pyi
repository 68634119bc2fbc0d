from armpy.execution.scheduling import deadlines as deadlines
from armpy.execution.scheduling.tasks import ExecutionTask as ExecutionTask

__all__: list[str]
