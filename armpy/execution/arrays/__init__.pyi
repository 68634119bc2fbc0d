from armpy.execution.arrays import conversion as conversion
from armpy.execution.arrays import imported_tensor as imported_tensor

__all__: list[str]
