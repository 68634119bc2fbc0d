from armpy.execution.arrays import conversion as conversion
from armpy.execution.arrays import imported_tensor as imported_tensor
from armpy.execution.arrays import importing_slots as importing_slots
from armpy.execution.arrays import reshaping as reshaping
from armpy.execution.arrays import strings as strings

__all__: list[str]
