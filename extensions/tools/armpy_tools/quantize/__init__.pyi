from armpy_tools.quantize.options import QuantizeOptions as QuantizeOptions
from armpy_tools.quantize.making import QuantizedModel as QuantizedModel, quantize as quantize
from armpy_tools.quantize.report import (
    LayerAccuracy as LayerAccuracy,
    OutputAccuracy as OutputAccuracy,
    QuantizeReport as QuantizeReport,
)

__all__: list[str]
