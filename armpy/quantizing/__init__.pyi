from armpy.quantizing.options import QuantizeOptions as QuantizeOptions
from armpy.quantizing.making import QuantizedModel as QuantizedModel, quantize as quantize
from armpy.quantizing.report import (
    LayerAccuracy as LayerAccuracy,
    OutputAccuracy as OutputAccuracy,
    QuantizeReport as QuantizeReport,
)

__all__: list[str]
