from armpy.execution.calls import async_execution as async_execution
from armpy.execution.calls.binding import Binding as Binding
from armpy.execution.calls.execution import Execution as Execution
from armpy.execution.calls.network_memory import NetworkMemory as NetworkMemory

__all__: list[str]
