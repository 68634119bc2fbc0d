from armpy_tools.comparison.file_difference import (
    FileDifference as FileDifference,
    first_file_difference as first_file_difference,
)
from armpy_tools.comparison.model_difference import (
    LayerDifference as LayerDifference,
    ModelDifference as ModelDifference,
    first_difference as first_difference,
)

__all__: list[str]
